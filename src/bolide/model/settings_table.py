"""SettingsTable: all settings of a server as one frozen value, read from text under the original's keys.

A table is a frozen dataclass whose fields are written with `setting.py`.  Reading names everything that is wrong at
once: values that cannot be, keys that nobody knows, and what the original has and the server here has not (`Foreign`).
Only settings marked `live` may change while the server runs.

The bounds hold for every table, however it was made: background work sleeps for these intervals, and answers become as
large as these sizes.
"""

import dataclasses
import difflib
import logging
from collections.abc import Collection, Iterable, Mapping
from typing import Any, ClassVar, NamedTuple, Self

from bolide.model.errors import ConfigError
from bolide.model.setting import Setting, settings_of

log = logging.getLogger(__name__)

ANYTHING = "*"

SUGGESTIONS_MAX = 20
"""For so many unknown keys something is suggested: each is compared with all that are known."""


class Foreign(NamedTuple):
    """A setting of the original that the server here does not have."""

    key: str
    defaults: tuple[str, ...]
    """None where it depends on the machine."""
    means: str
    refused: bool

    def is_default(self, given: str) -> bool:
        """Whether a value says nothing."""
        return ANYTHING in self.defaults or given.strip().lower() in map(str.lower, self.defaults)


class Finding(NamedTuple):
    """Something about one setting that its author should know."""

    key: str
    text: str


class Examined(NamedTuple):
    """What some settings come to."""

    values: dict[str, Any]
    problems: list[Finding]
    warnings: list[Finding]


class SettingsError(ConfigError):
    """Settings with which no server starts; all that is wrong with them."""

    def __init__(self, problems: Iterable[Finding]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problem.text for problem in self.problems))


class FixedSetting(ConfigError):
    """One that cannot change while the server runs."""


@dataclasses.dataclass(frozen=True)
class SettingsTable:
    SERVER: ClassVar[str]
    """What is configured, in a word."""
    FOREIGN: ClassVar[Mapping[str, Foreign]]

    def __post_init__(self) -> None:
        for name, setting in self.settings().values():
            setting.check(getattr(self, name))

    @classmethod
    def settings(cls) -> dict[str, tuple[str, Setting]]:
        """Every setting by its key, with the name of its field."""
        return settings_of(cls)

    @classmethod
    def examine(cls, settings: Mapping[str, str]) -> Examined:
        """What some settings come to, and all that is to be said of them."""
        return cls._examine(settings, ())

    @classmethod
    def _examine(cls, settings: Mapping[str, str], others: Collection[str]) -> Examined:
        """The other keys are somebody else's business."""
        own = cls.settings()
        found = Examined({}, [], [])
        for key, given in settings.items():
            if key in own:
                _read(*own[key], given, found)
            elif key in cls.FOREIGN:
                _hear(cls.FOREIGN[key], given, found)
            elif key not in others:
                known = [*own, *cls.FOREIGN, *others] if len(found.problems) < SUGGESTIONS_MAX else ()
                found.problems.append(Finding(key, _unknown(key, known)))
        return found

    @classmethod
    def from_settings(cls, settings: Mapping[str, str]) -> Self:
        """From text; `SettingsError` says which keys are wrong and how.  What has no effect is said in the log."""
        values, problems, warnings = cls.examine(settings)
        if problems:
            raise SettingsError(problems)
        for warning in warnings:
            log.warning("%s", warning.text)
        return cls(**values)

    def changed(self, settings: Mapping[str, str]) -> Self:
        """A copy with run-time changes; refuses all of them when one is refused."""
        own = self.settings()
        values: dict[str, Any] = {}
        said: list[str] = []
        for key, given in settings.items():
            if key not in own:
                raise ConfigError(_unknown(key, [key for key, (_, one) in own.items() if one.live]))
            name, setting = own[key]
            if not setting.live:
                raise FixedSetting(f"{key} cannot change while the {self.SERVER} runs; set it and restart")
            values[name], why = setting.bring(setting.read(given))
            said += [why] if why else []
        changed = dataclasses.replace(self, **values)
        for why in said:  # of what was taken, so only when nothing was refused
            log.warning("%s", why)
        return changed

    def as_settings(self) -> dict[str, str]:
        """All settings as text, under the original's keys."""
        return {key: _text(getattr(self, name)) for key, (name, _) in self.settings().items()}


def _read(name: str, setting: Setting, given: str, found: Examined) -> None:
    try:
        found.values[name], why = setting.bring(setting.read(given))
    except ConfigError as error:
        found.problems.append(Finding(setting.key, str(error)))
    else:
        found.warnings.extend([Finding(setting.key, why)] if why else [])


def _hear(foreign: Foreign, given: str, found: Examined) -> None:
    """A setting of the original's: one that says what is so there by default says nothing."""
    if foreign.is_default(given):
        return
    shown = given.strip()[:64]
    text = f"{foreign.key}={shown if shown.isprintable() else repr(shown)}: {foreign.means}"
    (found.problems if foreign.refused else found.warnings).append(Finding(foreign.key, text))


def _unknown(key: str, known: Collection[str]) -> str:
    """Suggests what was meant where that is plain: the same letters, or nearly all of them."""
    by_letters = {one.lower(): one for one in known}
    letters = key[:64].lower()
    close = (
        [letters]
        if letters in by_letters
        else difflib.get_close_matches(letters, by_letters, n=2, cutoff=0.85)
    )
    hint = f"; did you mean {' or '.join(by_letters[one] for one in close)}?" if close else ""
    return f"unknown setting {key[:64]!r}{hint}"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
