"""Registry: which handler serves which request, and what right a caller needs for it.

The rights are those of the table in `wire/codes.py`; a request that it does not list has no right, and no handler.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from bolide.net.link import Link
from bolide.wire.codes import REQUESTS, Need, RequestCode
from bolide.wire.command import Command

Outcome = Command | None
Handler = Callable[[Link, Command], Outcome | Awaitable[Outcome]]

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Row:
    need: Need
    handler: Handler


class Registry:
    """Handlers by request code."""

    def __init__(self, handlers: Mapping[RequestCode, Handler] | None = None) -> None:
        self._rows: dict[int, Row] = {}
        self.add(handlers or {})

    def add(self, handlers: Mapping[RequestCode, Handler]) -> None:
        for code, handler in handlers.items():
            kind = REQUESTS.get(code)
            if kind is None:
                raise ValueError(
                    f"{code!r} is not in the table of requests, so nobody knows what right it needs"
                )
            if code in self._rows:
                raise ValueError(f"{code!r} has a handler already")
            self._rows[code] = Row(kind.need, handler)

    def find(self, code: int) -> Row | None:
        return self._rows.get(code)

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows)


def bound(
    state: S, handlers: Mapping[RequestCode, Callable[[S, Link, Command], Outcome | Awaitable[Outcome]]]
) -> dict[RequestCode, Handler]:
    """Handlers that work on a state, as handlers of a connection and a request."""

    def bind(handle: Callable[[S, Link, Command], Outcome | Awaitable[Outcome]]) -> Handler:
        return lambda link, request: handle(state, link, request)

    return {code: bind(handle) for code, handle in handlers.items()}
