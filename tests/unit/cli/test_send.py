"""How items become messages, and what is said of each."""

import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from bolide import Producer, SendReceipt
from bolide.cli.main import main
from bolide.cli.outcome import Partly
from bolide.cli.sending import Sending, format_spans
from bolide.cli.sources import Line, opened, read_lines
from bolide.model.errors import (
    BolideError,
    CallTimeout,
    ConfigError,
    ConnectionLost,
    MessageIllegal,
    NoNameServer,
    ProtocolError,
    RemoteError,
)
from bolide.model.limits import LINE_BYTES_MAX
from bolide.model.message import Message


def read(
    data: bytes, on_read: Callable[[int], None] = lambda count: None, wait: Callable[[int], bool] = bool
) -> list[Line]:
    """What `read_lines` gives for bytes that come through a pipe."""
    reading, writing = os.pipe()
    try:
        os.write(writing, data)
        os.close(writing)
        return [line for some in read_lines(reading, on_read, wait) for line in some]
    finally:
        os.close(reading)


def test_lines_keep_their_numbers_when_empty_ones_are_skipped() -> None:
    assert read(b"a\r\n\n\nb\nc") == [(1, b"a"), (4, b"b"), (5, b"c")]
    assert read(b"") == []
    assert read(b"\n\n") == []


def test_progress_counts_every_byte() -> None:
    counts: list[int] = []
    read(b"one\ntwo", counts.append)
    assert sum(counts) == 7


def test_a_line_that_has_not_come_whole_when_nothing_more_is_wanted_is_no_line() -> None:
    answers = iter([True, False])
    assert read(b"one\ntw", wait=lambda descriptor: next(answers)) == [(1, b"one")]


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bolide.cli.sources.LINE_BYTES_MAX", 10)
    assert LINE_BYTES_MAX > 10
    with pytest.raises(ConfigError, match="line 2"):
        read(b"a\n" + b"x" * 11)


def test_a_directory_is_no_file_to_send(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a directory"), opened(tmp_path):
        pass


class _Answering:
    """A producer whose broker answers some messages, and then fails; what is flushed has its outcome."""

    def __init__(self, answered: int, error: BolideError) -> None:
        self._left = answered
        self._error = error
        self._waiting: list[Callable[[], object]] = []
        self.on_flush: Callable[[], object] = lambda: None

    def send_soon(
        self, message: Message, *, callback: Callable[[SendReceipt | None, Exception | None], object]
    ) -> None:
        self._left -= 1
        outcome = (cast("SendReceipt", message), None) if self._left >= 0 else (None, self._error)
        self._waiting.append(partial(callback, *outcome))

    def flush(self) -> None:
        self.on_flush()
        while self._waiting:
            self._waiting.pop(0)()


def text(line: bytes) -> Message:
    if line == b"bad":
        raise MessageIllegal("it is bad")
    return Message("t", line)


def _sent_until(error: BolideError) -> str:
    """What is said of six lines of which four are acknowledged."""
    producer = _Answering(4, error)
    with pytest.raises(Partly) as failed:
        Sending(text, "line", can_be_cut=True).run(
            cast("Producer", producer), [[(number, b"x") for number in (1, 2, 3, 4, 6, 7)]]
        )
    return str(failed.value)


@pytest.mark.parametrize("error", [CallTimeout("x"), ConnectionLost("x"), ProtocolError("x")])
def test_what_was_not_answered_is_named_and_not_said_to_be_lost(error: BolideError) -> None:
    said = _sent_until(error)
    assert "line 6 failed, 4 messages are acknowledged, lines 6-7 may be stored or not" in said
    assert "nothing behind line 7 was sent: x" in said


@pytest.mark.parametrize("error", [RemoteError(1, "x"), NoNameServer("x")])
def test_what_was_refused_or_never_sent_is_not_said_to_be_stored_perhaps(error: BolideError) -> None:
    assert "line 6 failed, 4 messages are stored, lines 6-7 are not, nothing" in _sent_until(error)


def test_of_several_failures_the_first_of_the_input_is_told_of_and_not_the_first_that_was_seen() -> None:
    """A line that is no message is known at once, and what a broker says of one before it comes later."""
    with pytest.raises(Partly) as failed:
        Sending(text, "line").run(
            cast("Producer", _Answering(2, NoNameServer("nobody there"))),
            [[(number, b"bad" if number == 5 else b"x") for number in (1, 2, 3, 4, 5)]],
        )
    said = str(failed.value)
    assert "line 3 failed, 2 messages are stored, lines 3-5 are not" in said
    assert "nobody there" in said


@pytest.mark.parametrize("error", [CallTimeout("x"), NoNameServer("x")])
def test_who_sends_lines_hears_from_which_one_to_go_on(error: BolideError) -> None:
    assert (
        "`tail -n +6` of the same input goes on there; what is stored behind it comes twice"
        in _sent_until(error)
    )
    whole = Sending(text, "line", can_be_cut=True)
    with pytest.raises(Partly) as failed:
        whole.run(cast("Producer", _Answering(0, error)), [[(1, b"x"), (2, b"x")]])
    assert "tail -n" not in str(failed.value)  # all of it, again


@pytest.mark.parametrize(("skips", "stored"), [(False, 1), (True, 2)])
def test_a_line_that_is_no_message_ends_it_or_is_named_and_skipped(
    skips: bool, stored: int, capfd: pytest.CaptureFixture[str]
) -> None:
    sending = Sending(text, "line", skips=skips)
    with pytest.raises(Partly) as failed:
        sending.run(cast("Producer", _Answering(9, CallTimeout("x"))), [[(1, b"a"), (2, b"bad"), (3, b"c")]])
    assert (sending.sent, sending.skipped) == (stored, int(skips))
    said = capfd.readouterr().err + str(failed.value)
    assert ("line 2 is skipped: it is bad" if skips else "line 2 failed, 1 message is stored") in said


def test_a_message_that_the_broker_calls_illegal_is_a_bad_line_too() -> None:
    sending = Sending(text, "line", skips=True)
    with pytest.raises(Partly, match="2 lines were no messages, 1 message is stored"):
        sending.run(cast("Producer", _Answering(1, RemoteError(13, "no"))), [[(n, b"x") for n in (1, 2, 3)]])


def test_every_receipt_is_handed_over_in_the_thread_that_sends() -> None:
    got: list[Any] = []
    sending = Sending(text, "line", on_receipt=got.append)
    sending.run(cast("Producer", _Answering(9, CallTimeout("x"))), [[(1, b"a"), (2, b"b")]])
    assert [message.body for message in got] == [b"a", b"b"]


def test_an_interrupt_waits_for_what_is_under_way_and_says_what_is_stored(
    capfd: pytest.CaptureFixture[str],
) -> None:
    sending = Sending(text, "line")

    def runs() -> Any:
        yield [(1, b"a"), (2, b"b")]
        signal.raise_signal(signal.SIGINT)
        yield [(3, b"c")]

    with pytest.raises(KeyboardInterrupt):
        sending.run(cast("Producer", _Answering(9, CallTimeout("x"))), runs())
    said = capfd.readouterr().err
    assert "waiting for what is under way" in said
    assert (
        "interrupted; 2 messages are stored, nothing behind line 2 was sent, and nothing is under way" in said
    )


def test_a_second_interrupt_does_not_wait(capfd: pytest.CaptureFixture[str]) -> None:
    producer = _Answering(9, CallTimeout("x"))
    producer.on_flush = lambda: signal.raise_signal(signal.SIGINT)

    def runs() -> Any:
        yield [(1, b"a")]
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        Sending(text, "line").run(cast("Producer", producer), runs())
    assert "0 messages acknowledged by then, perhaps some more under way" in capfd.readouterr().err


def test_many_spans_are_told_in_one_bounded_text() -> None:
    assert format_spans([4]) == "4"
    assert len(format_spans(range(0, 100_000, 2))) < 100


def test_an_illegal_topic_is_refused_before_anything_is_read(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bolide.cli.sources.read_lines", None)
    assert main(["send", "orders x", "-n", "127.0.0.1:1"]) == 2
    assert "topic" in capfd.readouterr().err
