"""Settings as text: lines of `key=value`, as configuration requests (25, 26, 318, 319) carry them."""

from collections.abc import Mapping

from bolide.model.errors import InvalidRequest
from bolide.model.limits import SETTINGS_BYTES_MAX

COMMENT = ("#", "!")


def parse_settings(body: bytes) -> dict[str, str]:
    """Blank lines and comments are skipped, spaces around key and value too; the last of equal keys counts."""
    if len(body) > SETTINGS_BYTES_MAX:
        raise InvalidRequest(f"{len(body)} bytes of settings; {SETTINGS_BYTES_MAX} are allowed")
    try:
        lines = body.decode().splitlines()
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"the settings are not UTF-8: {error}") from error
    settings: dict[str, str] = {}
    for line in (line.strip() for line in lines):
        if not line or line.startswith(COMMENT):
            continue
        key, separator, value = line.partition("=")
        if not separator or not key.strip():
            raise InvalidRequest(f"not of the form key=value: {line[:64]!r}")
        settings[key.strip()] = value.strip()
    return settings


def format_settings(settings: Mapping[str, str]) -> bytes:
    return "".join(f"{key}={value}\n" for key, value in settings.items()).encode()
