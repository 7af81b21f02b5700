"""Setting: one line of a server's configuration.  Its key in the original's files, what it may be, what it does.

A setting reads its value from text and checks one that is given as it is; `ConfigError` names the key and says what
is possible.  Every number has both bounds, and none is looked at that could not be one.  The tables are
`BrokerConfig` and `NameServerConfig`; docs/settings.md is written from them.
"""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from bolide.model.errors import ConfigError
from bolide.model.numbers import INT64_MAX, INT64_MIN, parse_whole

_SHOWN_MAX = 64
"""Characters of a wrong value that are repeated to whoever gave it."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Setting(ABC):
    key: str
    about: str
    """What it does, in a sentence."""
    live: bool
    """Whether it may change while the server runs."""
    hint: str = ""
    """What to say to who wants something else."""

    @abstractmethod
    def read(self, text: str) -> Any:
        """The value that the text stands for."""

    @abstractmethod
    def check(self, value: Any) -> None:
        """Whether this can be its value."""

    @property
    @abstractmethod
    def allowed(self) -> str:
        """What it may be, in words."""

    def bring(self, value: Any) -> tuple[Any, str]:
        """The value that is taken for one that was read, and why it is another one."""
        return value, ""

    def _refuse(self, value: object) -> ConfigError:
        return ConfigError(f"{self.key} must be {self.allowed}, not {_shown(value)}{self.hint}")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Number(Setting):
    low: int
    high: int
    taken: tuple[int, int]
    """What lies outside of these is brought to the nearer one, as the original does."""

    def __post_init__(self) -> None:
        assert INT64_MIN <= self.low <= self.taken[0] <= self.taken[1] <= self.high <= INT64_MAX

    def read(self, text: str) -> int:
        number = parse_whole(text.strip())
        if number is None:
            raise self._refuse(text)
        self.check(number)
        return number

    def check(self, value: Any) -> None:
        if type(value) is not int or not self.low <= value <= self.high:
            raise self._refuse(value)

    @property
    def allowed(self) -> str:
        if self.low == self.high:
            return f"{self.low}"
        taken = (
            ""
            if self.taken == (self.low, self.high)
            else f", taken as one from {self.taken[0]} to {self.taken[1]}"
        )
        return f"a whole number from {self.low} to {self.high}{taken}"

    def bring(self, value: Any) -> tuple[Any, str]:
        least, most = self.taken
        nearest = min(max(value, least), most)
        why = f"{self.key} is from {least} to {most}: taking {nearest} instead of {value}"
        return nearest, "" if nearest == value else why


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Flag(Setting):
    def read(self, text: str) -> bool:
        word = text.strip().lower()
        if word not in ("true", "false"):
            raise self._refuse(text)
        return word == "true"

    def check(self, value: Any) -> None:
        if type(value) is not bool:
            raise self._refuse(value)

    @property
    def allowed(self) -> str:
        return "true or false"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Choice(Setting):
    among: tuple[str, ...]

    def read(self, text: str) -> str:
        self.check(word := text.strip())
        return word

    def check(self, value: Any) -> None:
        if value not in self.among:
            raise self._refuse(value)

    @property
    def allowed(self) -> str:
        return " or ".join(self.among)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Text(Setting):
    length_min: int
    length_max: int
    more: Callable[[str], object] | None
    """Raises `ConfigError` for a text that it does not like."""

    def read(self, text: str) -> str:
        self.check(text := text.strip())
        return text

    def check(self, value: Any) -> None:
        if not isinstance(value, str) or not value.isprintable():
            raise self._refuse(value)
        if len(value) < self.length_min:
            raise ConfigError(f"{self.key} is empty")
        if len(value) > self.length_max:
            raise ConfigError(f"{self.key} has {len(value)} characters; {self.length_max} are allowed")
        if self.more is not None:
            self.more(value)

    @property
    def allowed(self) -> str:
        return f"text of at most {self.length_max} characters"


# ---- how a table of settings is written ------------------------------------------------------------------------


def number(
    key: str,
    default: int,
    low: int,
    high: int,
    about: str,
    *,
    live: bool = False,
    taken: tuple[int, int] | None = None,
    hint: str = "",
) -> Any:
    return _field(
        default,
        Number(key=key, about=about, live=live, hint=hint, low=low, high=high, taken=taken or (low, high)),
    )


def flag(key: str, default: bool, about: str, *, live: bool = False) -> Any:
    return _field(default, Flag(key=key, about=about, live=live))


def choice(key: str, among: tuple[str, ...], about: str, *, hint: str = "") -> Any:
    """The first one is the default."""
    return _field(among[0], Choice(key=key, about=about, live=False, hint=hint, among=among))


def text(
    key: str,
    default: str,
    about: str,
    *,
    live: bool = False,
    length: tuple[int, int] = (0, 4096),
    more: Callable[[str], object] | None = None,
) -> Any:
    low, high = length
    return _field(default, Text(key=key, about=about, live=live, length_min=low, length_max=high, more=more))


def settings_of(table: type) -> dict[str, tuple[str, Setting]]:
    """The settings of such a table by key, each with the name of its field."""
    found = [(field.name, field.metadata["setting"]) for field in dataclasses.fields(table)]
    return {setting.key: (name, setting) for name, setting in found}


def _field(default: Any, setting: Setting) -> Any:
    return dataclasses.field(default=default, metadata={"setting": setting})


def _shown(value: object) -> str:
    """A wrong value, as far as it is worth repeating."""
    if isinstance(value, int) and not INT64_MIN <= value <= INT64_MAX:
        return "a number of more than 64 bits"
    return repr(str(value)[:_SHOWN_MAX])
