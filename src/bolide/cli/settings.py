"""Settings as a user writes them: `--set key=value`, a `broker.conf` of the original, or TOML.

All three become text under the original's key names; what the keys mean is the business of `BrokerConfig` and
`NameServerConfig`.
"""

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bolide.model.errors import ConfigError
from bolide.model.limits import SETTINGS_FILE_BYTES_MAX
from bolide.model.numbers import is_int64

SUFFIXES = (".conf", ".properties", ".toml")
NAMED_MAX = 3

_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_PAIR = re.compile(r"((?:\\.|[^\\=:\s])+)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_TOML_TABLE = re.compile(r"\s*\[\s*([A-Za-z0-9_-]+)\s*\]")
_TOML_KEY = re.compile(r"""\s*["']?([A-Za-z0-9_-]+)["']?\s*=""")


class FileSettings(dict[str, str]):
    """What a file says.  The last of equal keys counts."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[str, int] = {}
        """Where each key stands, as far as that can be told."""
        self.overruled: list[tuple[int, str]] = []
        """Lines that a later one with the same key made void."""

    def note(self, key: str, line: int) -> None:
        if key in self.lines:
            self.overruled.append((self.lines[key], key))
        self.lines[key] = line


def parse_assignments(words: Iterable[str], what: str = "--set") -> dict[str, str]:
    """From `--set` options, or what else is written so; the last one of a key wins."""
    settings: dict[str, str] = {}
    for word in words:
        key, separator, value = word.partition("=")
        if not separator or not key.strip():
            raise ConfigError(f"{what} wants key=value, not {word[:64]!r}")
        settings[key.strip()] = value.strip()
    return settings


def read_settings(path: Path, table: str) -> FileSettings:
    """From a file: TOML when its name ends so, else properties.

    In TOML the keys stand at the top or in `[broker]` and `[nameserver]`, of which `table` is ours and the other is
    left alone.
    """
    try:
        with path.open("rb") as file:
            data = file.read(SETTINGS_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}{_nearby(path)}") from error
    if len(data) > SETTINGS_FILE_BYTES_MAX:
        raise ConfigError(f"{path} is larger than {SETTINGS_FILE_BYTES_MAX} bytes: is it a settings file?")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text") from error
    return _parse_toml(path, text, table) if path.suffix == ".toml" else parse_properties_file(text)


def _nearby(path: Path) -> str:
    """What may have been meant by a path where nothing is: a file of a close name, or settings beside it."""
    folder = path.absolute().parent
    if path.exists():
        return ""
    if not folder.is_dir():
        return f"; there is no directory {folder}"
    names = sorted(entry.name for entry in folder.iterdir() if entry.suffix in SUFFIXES)
    near = difflib.get_close_matches(path.name, names, n=1) or names[:NAMED_MAX]
    return f"; there is {', '.join(map(repr, near))} in {folder}" if near else ""


def parse_properties_file(text: str) -> FileSettings:
    r"""Java's properties: `#` and `!` comments, `=` or `:`, a `\` at the end goes on in the next line.

    >>> parse_properties_file("# ours\nbrokerName = a\nnamesrvAddr=x:1;\\\n  y:2")
    {'brokerName': 'a', 'namesrvAddr': 'x:1;y:2'}
    """
    settings = FileSettings()
    for number, line in _logical_lines(text):
        pair = _PAIR.match(line)
        if pair is not None:
            key = _unescape(pair[1])
            settings.note(key, number)
            settings[key] = _unescape(pair[2].rstrip())
    return settings


def _logical_lines(text: str) -> Iterable[tuple[int, str]]:
    """Lines that belong together as one, with the number of the first of them."""
    begun, first = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        line = line.lstrip()
        if not begun:
            if not line or line[0] in "#!":
                continue
            first = number
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            begun += line[:-1]
        else:
            yield first, begun + line
            begun = ""
    if begun:
        yield first, begun


def _unescape(text: str) -> str:
    return _ESCAPED.sub(
        lambda found: chr(int(found[1], 16)) if found[1] else _CONTROLS.get(found[2], found[2]), text
    )


def _parse_toml(path: Path, text: str, table: str) -> FileSettings:
    try:
        members = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of thousands of digits is a plain ValueError
        raise ConfigError(f"{path} is not TOML: {error}") from error
    found: dict[str, Any] = {}
    for key, value in members.items():
        if not isinstance(value, Mapping):
            found[key] = value
        elif key == table:
            found.update(value)
        elif key not in ("broker", "nameserver"):
            raise ConfigError(f"{path} has a table [{key}]; known are [broker] and [nameserver]")
    settings = FileSettings()
    settings.update({key: _toml_text(path, key, value) for key, value in found.items()})
    current = table
    for number, line in enumerate(text.splitlines(), 1):
        if header := _TOML_TABLE.match(line):
            current = header[1]
        elif current == table and (pair := _TOML_KEY.match(line)) and pair[1] in settings:
            settings.note(pair[1], number)
    return settings


def _toml_text(path: Path, key: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | float) or is_int64(value):
        return str(value)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ";".join(value)
    raise ConfigError(f"{path}: {key} must be text, a number of 64 bits, true or false, or a list of texts")
