"""DataVersion: how new a table is.  Brokers and name servers compare two of them to see whether anything changed.

The JSON form is the one of `config/*.json` and of the registration bodies:
`{"counter":3,"stateVersion":0,"timestamp":1700000000000}`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from bolide.model.errors import InvalidRequest
from bolide.model.numbers import INT64_MAX, INT64_MIN, is_int64


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class DataVersion:
    """The order of the fields is the order of comparison: who is in charge, then how many changes, then when."""

    state_version: int = 0
    counter: int = 0
    timestamp_ms: int = 0

    def __post_init__(self) -> None:
        for number in (self.state_version, self.counter, self.timestamp_ms):
            if not INT64_MIN <= number <= INT64_MAX:
                raise InvalidRequest(f"{number} in a data version is not a 64-bit number")

    def next(self, now_ms: int) -> "DataVersion":
        """The version after one more change; a counter at its end begins again, as in Java."""
        counter = self.counter + 1 if self.counter < INT64_MAX else INT64_MIN
        return DataVersion(state_version=self.state_version, counter=counter, timestamp_ms=now_ms)

    def as_json(self) -> dict[str, int]:
        return {
            "counter": self.counter,
            "stateVersion": self.state_version,
            "timestamp": self.timestamp_ms,
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        """From parsed JSON; what is missing counts as 0, as 4.x leaves `stateVersion` out."""
        if not isinstance(value, Mapping):
            raise InvalidRequest("a data version is not a JSON object")
        return cls(
            state_version=_number(value, "stateVersion"),
            counter=_number(value, "counter"),
            timestamp_ms=_number(value, "timestamp"),
        )


def _number(members: Mapping[str, Any], name: str) -> int:
    number = members.get(name)
    if number is None:
        return 0
    if not is_int64(number):
        raise InvalidRequest(f"{name} of a data version is not a 64-bit number")
    return number
