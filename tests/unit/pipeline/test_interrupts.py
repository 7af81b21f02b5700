"""Ctrl-C while Spark starts."""

import logging
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from bolide.model.errors import Interrupted
from bolide.pipeline.interrupts import STOPPED, interrupted_in_one_piece, untold_interrupts
from tests.peers.waiting import PATIENCE_SECONDS

SparkContext = pytest.importorskip("pyspark").SparkContext


@pytest.fixture(autouse=True)
def pressed_keys_are_heard() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(then: Callable[[], None], monkeypatch: pytest.MonkeyPatch, jvm: object | None = None) -> None:
    monkeypatch.setattr(SparkContext, "_gateway", jvm)
    with interrupted_in_one_piece():
        signal.raise_signal(signal.SIGINT)
        then()


def test_an_interrupt_waits_while_the_jvm_would_be_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    with pytest.raises(Interrupted, match=STOPPED):
        interrupted(lambda: steps.append("launched"), monkeypatch)
    assert steps == ["launched"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_an_interrupt_waits_no_longer_than_for_the_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes after the JVM is there may take a minute on a busy machine."""

    def launched() -> None:
        monkeypatch.setattr(SparkContext, "_gateway", object())
        Event().wait(PATIENCE_SECONDS)
        pytest.fail("it goes on starting Spark")

    with pytest.raises(Interrupted, match=STOPPED):
        interrupted(launched, monkeypatch)


def test_an_interrupt_does_not_wait_once_the_jvm_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    with pytest.raises(Interrupted, match=STOPPED):
        interrupted(lambda: steps.append("started"), monkeypatch, jvm=object())
    assert steps == []


def test_what_breaks_because_of_an_interrupt_is_the_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise RuntimeError("the gateway has gone")

    with pytest.raises(Interrupted, match=STOPPED):
        interrupted(broken, monkeypatch)
    with pytest.raises(RuntimeError, match="the gateway"), interrupted_in_one_piece():
        broken()


def test_the_handler_that_spark_sets_does_not_stay() -> None:
    """It calls the JVM while another call may be on its way."""

    def of_spark(number: int, frame: object) -> None: ...

    with interrupted_in_one_piece():
        signal.signal(signal.SIGINT, of_spark)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_only_interrupts_are_kept_from_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with untold_interrupts():
        for error in (KeyboardInterrupt(), RuntimeError("lost")):
            try:
                raise error
            except BaseException:
                logging.getLogger().exception("while sending")
    assert [str(record.exc_info[1]) for record in caplog.records if record.exc_info] == ["lost"]


def test_a_spark_that_another_thread_starts_leaves_signals_alone() -> None:
    """Only the main thread may set handlers; a service that runs a pipeline beside itself has none of ours."""
    before = signal.getsignal(signal.SIGINT)

    def start() -> object:
        with interrupted_in_one_piece(), untold_interrupts():
            return signal.getsignal(signal.SIGINT)

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(start).result() is before
