"""How far a long command has come: a bar or a line on a terminal, and elsewhere only what is worth a line in a log."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bolide.cli.output import can_be_steered, say

LOGGED_EVERY = 15
"""Of the texts of a status line, so many make one line where there is no terminal."""


@contextmanager
def progress_bar(what: str, total: int, *, wanted: bool = True) -> Iterator[Callable[[int], None] | None]:
    """A function to call with how many more bytes are done; None where nobody watches."""
    if not wanted or not can_be_steered(sys.stderr):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    columns = (
        "{task.description}",
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.advance(task, done)


@contextmanager
def status_line() -> Iterator[Callable[[str], None]]:
    """A function to call with how things stand, again and again: one line that changes, or now and then a new one."""
    if not can_be_steered(sys.stderr):
        calls = 0

        def log(text: str) -> None:
            nonlocal calls
            if calls % LOGGED_EVERY == 0:
                say(text)
            calls += 1

        yield log
        return
    width = 0

    def show(text: str) -> None:
        nonlocal width
        sys.stderr.write(f"\r{text.ljust(width)}")
        sys.stderr.flush()
        width = len(text)

    try:
        yield show
    finally:
        if width:
            sys.stderr.write("\n")
            sys.stderr.flush()
