"""The bar of a long recovery: for a person at a terminal, and gone when it is over."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from bolide.cli import recovery
from bolide.cli.recovery import watch_recovery
from bolide.model.errors import RecoveryInterrupted

GIB = 1024**3


@pytest.fixture(autouse=True)
def terminal_that_is_more_than_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


def test_without_a_terminal_there_is_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    monkeypatch.setattr(recovery, "progress_bar", lambda *_: pytest.fail("a bar for nobody"))
    watch_recovery()(GIB, 5 * GIB)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What happens to the bar of a person at a terminal."""
    seen: list[object] = []

    @contextmanager
    def bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
        seen.append((what, total))
        yield seen.append
        seen.append("gone")

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(recovery, "progress_bar", bar)
    return seen


def test_the_bar_comes_with_the_first_report_and_goes_with_the_last(seen: list[object]) -> None:
    progress = watch_recovery()
    progress(GIB, 5 * GIB)
    progress(3 * GIB, 5 * GIB)
    progress(4 * GIB, 4 * GIB)
    assert seen == [("recovering", 5 * GIB), GIB, 2 * GIB, "gone"]


def test_the_bar_goes_with_an_interrupted_recovery(seen: list[object]) -> None:
    progress = watch_recovery()
    progress(GIB, 5 * GIB)
    progress.interrupt()
    with pytest.raises(RecoveryInterrupted):
        progress(2 * GIB, 5 * GIB)
    assert seen == [("recovering", 5 * GIB), GIB, "gone"]


def test_a_recovery_of_a_moment_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(recovery, "progress_bar", lambda *_: pytest.fail("a bar for nothing"))
    progress = watch_recovery()
    progress(1000, 2000)
    progress(2000, 2000)


def test_a_segment_with_little_in_it_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first start in an empty directory: a segment of a gigabyte, and nothing to recover."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(recovery, "progress_bar", lambda *_: pytest.fail("a bar for nothing"))
    progress = watch_recovery()
    progress(0, GIB)
    progress(0, 0)
