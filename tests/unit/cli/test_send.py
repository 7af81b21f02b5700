"""How lines become requests."""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import cast

import pytest

from bolide.aio import Producer
from bolide.cli.main import main
from bolide.cli.outcome import Partly
from bolide.cli.send import MESSAGES_PER_REQUEST, Line, _batches, _Sending, read_lines
from bolide.model.errors import (
    BolideError,
    CallTimeout,
    ConfigError,
    ConnectionLost,
    NoNameServer,
    ProtocolError,
    RemoteError,
)
from bolide.model.limits import LINE_BYTES_MAX
from bolide.model.message import Message


def read(data: bytes, *, pieces: int = 1) -> list[Line]:
    """What `read_lines` gives for bytes that come through a pipe in several pieces."""

    async def run() -> list[Line]:
        reading, writing = os.pipe()
        size = -(-len(data) // pieces)
        lines: list[Line] = []
        try:
            for at in range(0, len(data), size or 1):
                os.write(writing, data[at : at + size])
            os.close(writing)
            async for some in read_lines(reading, lambda count: None):
                lines += some
        finally:
            os.close(reading)
        return lines

    return asyncio.run(run())


def test_lines_keep_their_numbers_when_empty_ones_are_skipped() -> None:
    assert read(b"a\r\n\n\nb\nc") == [(1, b"a"), (4, b"b"), (5, b"c")]
    assert read(b"") == []
    assert read(b"\n\n") == []


def test_progress_counts_every_byte() -> None:
    counts: list[int] = []

    async def run() -> None:
        reading, writing = os.pipe()
        os.write(writing, b"one\ntwo")
        os.close(writing)
        async for _ in read_lines(reading, counts.append):
            pass
        os.close(reading)

    asyncio.run(run())
    assert sum(counts) == 7


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bolide.cli.send.LINE_BYTES_MAX", 10)
    assert LINE_BYTES_MAX > 10
    with pytest.raises(ConfigError, match="line 2"):
        read(b"a\n" + b"x" * 11)


def test_neighbours_share_a_request_up_to_a_limit() -> None:
    messages = [(number, Message("t", b"x")) for number in range(MESSAGES_PER_REQUEST + 1)]
    batches = list(_batches(messages))
    assert [len(batch) for batch in batches] == [MESSAGES_PER_REQUEST, 1]
    assert [number for batch in batches for number, _ in batch] == list(range(MESSAGES_PER_REQUEST + 1))


def test_large_messages_and_those_with_properties_go_alone_and_in_order() -> None:
    bodies = [b"a", b"b", b"x" * 5000, b"c", b"d"]
    messages = [(number, Message("t", body)) for number, body in enumerate(bodies)]
    messages.append((5, Message("t", b"e", properties={"DELAY": "3"})))
    messages.append((6, Message("t", b"f", delay_level=3)))
    messages += [(number, Message("t", b"g", deliver_at=1_700_000_000_000)) for number in (7, 8)]
    messages += [(number, Message("t", b"h", delay=0)) for number in (9, 10)]
    numbers = [[number for number, _ in batch] for batch in _batches(messages)]
    assert numbers == [[0, 1], [2], [3, 4], [5], [6], [7], [8], [9], [10]]
    sized = [(number, Message("t", b"x" * 4000)) for number in range(20)]
    assert [len(batch) for batch in _batches(sized)] == [16, 4]


class _Silent:
    """A producer whose broker answers some requests, and then fails."""

    def __init__(self, answered: int, error: BolideError) -> None:
        self._answered = answered
        self._error = error

    async def send(self, message: Message) -> None:
        if self._answered == 0:
            raise self._error
        self._answered -= 1


def _sent_until(error: BolideError) -> str:
    """What is said of six large lines of which four are acknowledged."""

    async def lines() -> AsyncIterator[list[Line]]:
        yield [(number, b"x" * 5000) for number in range(1, 7)]

    async def same(error: BolideError) -> BolideError:
        return error

    async def run() -> None:
        sending = _Sending(lambda line: Message("t", line), "line", None, same)
        await sending.run(cast("Producer", _Silent(4, error)), lines())

    with pytest.raises(Partly) as failed:
        asyncio.run(run())
    return str(failed.value)


@pytest.mark.parametrize("error", [CallTimeout("x"), ConnectionLost("x"), ProtocolError("x")])
def test_what_was_not_answered_is_not_said_to_be_lost(error: BolideError) -> None:
    said = _sent_until(error)
    assert "line 5 failed, 4 messages are acknowledged, line 5 and later ones may be stored or not: x" in said


@pytest.mark.parametrize("error", [RemoteError(1, "x"), NoNameServer("x")])
def test_what_was_refused_or_never_sent_is_not_said_to_be_stored_perhaps(error: BolideError) -> None:
    assert "line 5 failed, 4 messages are stored: " in _sent_until(error)


def test_an_illegal_topic_is_refused_before_anything_is_read(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bolide.cli.send.read_lines", None)
    assert main(["send", "orders x", "-n", "127.0.0.1:1"]) == 2
    assert "topic" in capfd.readouterr().err
