"""Planted bugs: each breaks the store in one way, from outside, and must be found by the crash states.

A harness that finds nothing proves nothing unless it is known what it would find.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from bolide.store.flush import FlushPoint
from tests.crash.disk import SimDisk

Plant = Callable[[ExitStack], None]


def skip_the_sync(stack: ExitStack) -> None:
    """The sync of the log does nothing and succeeds."""
    stack.enter_context(patch.object(FlushPoint, "run", lambda point: None))


def forget_the_directory_sync(stack: ExitStack) -> None:
    """Files are made, renamed and deleted, and their folder is never synced."""
    stack.enter_context(patch.object(SimDisk, "sync_dir", lambda disk, path: None))


PLANTS: dict[str, Plant] = {
    plant.__name__.replace("_", "-"): plant for plant in (skip_the_sync, forget_the_directory_sync)
}


@contextmanager
def planted(name: str | None) -> Iterator[None]:
    """The store with this bug, or as it is."""
    with ExitStack() as stack:
        if name is not None:
            PLANTS[name](stack)
        yield
