"""When the messages of `bolide send` are delivered: at once, by a delay level, or at a time of their own."""

from functools import partial
from typing import Annotated, NamedTuple

import typer

from bolide.cli.ask import ask
from bolide.cli.since import parse_ahead, parse_span
from bolide.model.errors import ConfigError
from bolide.model.limits import DELAY_LEVELS_MAX

Delay = Annotated[
    str | None,
    typer.Option(
        "--delay", metavar="10s", help="Deliver it so much later: one of the brokers' delay levels."
    ),
]
DelayLevel = Annotated[
    int,
    typer.Option(
        "--level",
        "--delay-level",
        metavar="N",
        min=0,
        max=DELAY_LEVELS_MAX,
        help="The same by the level's number.",
    ),
]
At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="TIME",
        help="Deliver it then: 10:30 (the next), tomorrow, an ISO time; writes what recalls it.",
    ),
]
In = Annotated[
    str | None,
    typer.Option("--in", metavar="SPAN", help="The same, so much later: any span, 90s or 2h30m or '3 days'."),
]


class When(NamedTuple):
    """As arguments of a `Message`."""

    delay_level: int = 0
    deliver_at: int | None = None
    delay: float | None = None

    @property
    def is_timed(self) -> bool:
        """Whether it has a time of its own, and so can be recalled."""
        return self.deliver_at is not None or self.delay is not None


AT_ONCE = When()


def when(nameserver: str, delay: str | None, level: int, at: str | None, after: str | None) -> When:
    """What was asked for, in one of the ways."""
    from bolide.admin.delays import level_of
    from bolide.net.clock import SystemClock

    if sum((delay is not None, level != 0, at is not None, after is not None)) > 1:
        raise ConfigError("give one of --delay, --level, --at and --in")
    if delay is not None:
        return When(delay_level=ask(nameserver, partial(level_of, delay=delay)))
    if at is not None:
        return When(deliver_at=parse_ahead(at, SystemClock().now_ms()))
    if after is not None:
        return When(delay=parse_span(after) / 1000)
    return When(delay_level=level)
