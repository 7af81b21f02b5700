"""Trouble is said once, and work that met it goes on."""

import asyncio
import logging

import pytest

from bolide.model.errors import StoreUnavailable
from bolide.net import trouble
from bolide.net.trouble import Trouble, goes_on

log = logging.getLogger("test")


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_a_trouble_is_said_when_it_begins_when_it_changes_and_when_it_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    met = Trouble(log, "cannot write")
    for error in [OSError(28, "No space left on device")] * 50 + [StoreUnavailable("no disk")] * 50:
        met.met(error)
        assert met
    for _ in range(50):
        met.over()
    assert not met
    assert lines(caplog) == [
        "cannot write: No space left on device",
        "cannot write: no disk",
        "cannot write: the trouble has passed, it works again",
    ]


def test_a_trouble_has_a_level_and_may_be_given_in_words(caplog: pytest.LogCaptureFixture) -> None:
    met = Trouble(log, "cleaning waits", logging.WARNING)
    assert met.met("the clock is ahead") == met.reason == "the clock is ahead"
    met.over()
    assert not met
    assert lines(caplog) == [
        "cleaning waits: the clock is ahead",
        "cleaning waits: the trouble has passed, it works again",
    ]
    assert [(record.levelno, record.exc_info) for record in caplog.records] == [(logging.WARNING, None)] * 2


def test_what_nobody_foresaw_is_said_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    Trouble(log, "work").met(RuntimeError("a bug"))
    Trouble(log, "work").met(OSError(5, "Input/output error"))
    assert [record.exc_info is not None for record in caplog.records] == [True, False]


class Worker:
    def __init__(self, errors: list[BaseException]) -> None:
        self.errors = errors
        self.begun = 0

    @goes_on("the work")
    async def run(self) -> None:
        self.begun += 1
        if self.errors:
            raise self.errors.pop(0)


def test_work_that_ends_with_an_error_begins_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(trouble, "AGAIN_S", 0)
    errors = [RuntimeError("a bug"), RuntimeError("a bug"), OSError(5, "Input/output error"), OverflowError()]
    worker = Worker([*errors])
    asyncio.run(worker.run())
    assert worker.begun == 5
    assert [line.rpartition(": ")[2] for line in lines(caplog)] == [
        *("a bug", "Input/output error", "OverflowError")
    ]


def test_an_error_after_a_long_time_of_work_is_said_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(trouble, "AGAIN_S", 0)
    monkeypatch.setattr(trouble, "WELL_S", 0)
    asyncio.run(Worker([RuntimeError("a bug"), RuntimeError("a bug")]).run())
    assert [line.rpartition(": ")[2] for line in lines(caplog)] == [
        "a bug",
        "the trouble has passed, it works again",
        "a bug",
    ]


def test_work_that_is_cancelled_ends() -> None:
    worker = Worker([asyncio.CancelledError()])
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(worker.run())
    assert worker.begun == 1
