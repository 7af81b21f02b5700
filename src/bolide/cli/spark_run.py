"""What commands that run Spark share: which master, which settings, and how signals end the work in hand."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bolide.cli.output import say

if TYPE_CHECKING:
    from bolide.pipeline.declared.run import Stop

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Master = Annotated[
    str, typer.Option("--master", metavar="URL", help="Spark's master: this machine, or any cluster.")
]
SparkSettings = Annotated[
    list[str] | None,
    typer.Option("--spark", metavar="KEY=VALUE", help="A setting of Spark; may be given often."),
]


@contextmanager
def stop_signals(stop: "Stop") -> Iterator[None]:
    """Set once Spark is there: it takes Ctrl-C for itself when it starts."""
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}

    def heard(number: int, frame: Any) -> None:
        say(
            "stopping at once"
            if stop.is_asked
            else "stopping when the batch in hand is done; again to stop at once"
        )
        stop.ask()

    for number in STOP_SIGNALS:
        signal.signal(number, heard)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
