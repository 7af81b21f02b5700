"""The bar of a long recovery: for a person at a terminal, and gone when it is over."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from bolide.cli import recovery
from bolide.cli.recovery import recovery_bar

GIB = 1024**3


def test_without_a_terminal_there_is_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    assert recovery_bar() is None


def test_the_bar_comes_with_the_first_report_and_goes_with_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []

    @contextmanager
    def bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
        seen.append((what, total))
        yield seen.append
        seen.append("gone")

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(recovery, "progress_bar", bar)
    progress = recovery_bar()
    assert progress is not None
    progress(GIB, 5 * GIB)
    progress(3 * GIB, 5 * GIB)
    progress(4 * GIB, 4 * GIB)
    assert seen == [("recovering", 5 * GIB), GIB, 2 * GIB, "gone"]


def test_a_recovery_of_a_moment_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(recovery, "progress_bar", lambda *_: pytest.fail("a bar for nothing"))
    progress = recovery_bar()
    assert progress is not None
    progress(1000, 2000)
    progress(2000, 2000)


def test_a_segment_with_little_in_it_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first start in an empty directory: a segment of a gigabyte, and nothing to recover."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(recovery, "progress_bar", lambda *_: pytest.fail("a bar for nothing"))
    progress = recovery_bar()
    assert progress is not None
    progress(0, GIB)
    progress(0, 0)
