"""Pulls that run ahead: every message of the range once and in order, whatever the broker's limits."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bolide.client.results import PullBlock, PullStatus
from bolide.model.errors import ConnectionLost, ProtocolError
from bolide.model.limits.spark import SPARK_PULLS_AHEAD_MAX
from bolide.model.offsets import GroupOffset, MessageQueue, QueueOffset
from bolide.model.topic import Subscription
from bolide.pipeline import pulls
from bolide.pipeline.errors import DataLost, OffsetsExpired, QueueRecreated
from bolide.pipeline.options import ReadOptions, parse_options
from bolide.pipeline.pulls import BlockReader
from bolide.pipeline.ranges import QueueRange

QUEUE = MessageQueue("orders", "broker-a", 0)


@dataclass
class Queue:
    """A queue on a broker.  A message is its offset in four bytes; `cap` is how many one answer may hold."""

    first: int
    last: int
    cap: Callable[[int], int] = lambda offset: 32
    asked: list[int] = field(default_factory=list)
    given: int = 0
    in_flight: int = 0
    in_flight_max: int = 0
    broken_calls: int = 0
    shown: int | None = None  # what lies behind is counted, and shown to a pull that waits

    async def pull(
        self,
        queue: MessageQueue,
        offset: GroupOffset,
        subscription: Subscription,
        *,
        messages_max: int,
        bytes_max: int | None = None,
        bulk: bool = False,
        wait_ms: int = 0,
    ) -> PullBlock:
        self.asked.append(offset)
        self.in_flight += 1
        self.in_flight_max = max(self.in_flight_max, self.in_flight)
        for _ in range(3):  # others get their turn
            await asyncio.get_running_loop().run_in_executor(None, int)
        self.in_flight -= 1
        if self.broken_calls:
            self.broken_calls -= 1
            raise ConnectionLost("gone")
        if wait_ms:
            self.shown = None
        return (
            self.answer(offset, messages_max) if subscription.takes_all else self.filter(offset, messages_max)
        )

    def filter(self, offset: int, messages_max: int) -> PullBlock:
        """Every seventh message matches; limits count only those."""
        matching = range(-(-offset // 7) * 7, self.last, 7)[: min(messages_max, self.cap(offset))]
        offset_next = matching[-1] + 1 if matching else self.last
        data = b"".join(at.to_bytes(4, "big") for at in matching)
        return self.block(PullStatus.FOUND if data else PullStatus.NO_MATCHED_MESSAGE, offset_next, data)

    def answer(self, offset: int, messages_max: int) -> PullBlock:
        last = self.last
        if self.shown is not None and self.shown <= offset < last:
            return self.block(PullStatus.NO_NEW_MESSAGE, offset)
        if offset < self.first:
            return self.block(PullStatus.OFFSET_ILLEGAL, self.first)
        if offset > last:
            return self.block(PullStatus.OFFSET_ILLEGAL, last)
        if offset == last:
            return self.block(PullStatus.NO_NEW_MESSAGE, offset)
        end = min(last, offset + max(1, min(messages_max, self.cap(offset))))
        data = b"".join(at.to_bytes(4, "big") for at in range(offset, end))
        self.given += end - offset
        return self.block(PullStatus.FOUND, end, data)

    def block(self, status: PullStatus, offset_next: int, data: bytes = b"") -> PullBlock:
        return PullBlock(
            status, GroupOffset(offset_next), QueueOffset(self.first), QueueOffset(self.last), data
        )


def options(**given: str) -> ReadOptions:
    return parse_options({"nameserver": "h:1", "subscribe": "orders"} | given)


def read(queue: Queue, begin: int, end: int, **given: str) -> list[int]:
    async def work() -> list[int]:
        reader = BlockReader(queue, QueueRange(QUEUE, begin, end), options(**given))
        found: list[int] = []
        try:
            while (piece := await reader.next()) is not None:
                for _, _, data in piece.blocks:
                    offsets = [int.from_bytes(data[at : at + 4], "big") for at in range(0, len(data), 4)]
                    found += [offset for offset in offsets if piece.begin <= offset < piece.end]
        finally:
            await reader.close()
        return found

    return asyncio.run(work())


@given(
    st.integers(0, 50),
    st.integers(0, 400),
    st.lists(st.integers(1, 60), min_size=1, max_size=10),
)
def test_the_range_arrives_once_and_in_order(begin: int, length: int, caps: list[int]) -> None:
    queue = Queue(0, begin + length + 10, cap=lambda offset: caps[offset % len(caps)])
    assert read(queue, begin, begin + length) == list(range(begin, begin + length))


def test_several_pulls_are_under_way_at_once() -> None:
    queue = Queue(0, 6000, cap=lambda offset: 32 if offset < 1000 else 100)
    assert len(read(queue, 0, 5000)) == queue.given == 5000
    assert 4 <= queue.in_flight_max <= SPARK_PULLS_AHEAD_MAX


def test_large_answers_are_not_hoarded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulls, "SPARK_AHEAD_BYTES_MAX", 4 * 32 * 3)
    queue = Queue(0, 2000)
    read(queue, 0, 2000)
    assert queue.in_flight_max == 3


class Fat(Queue):
    """Its messages are small up to offset 1000, and a hundred times as large from there on."""

    held: int = 0
    held_max: int = 0

    def answer(self, offset: int, messages_max: int) -> PullBlock:
        size = 1 if offset < 1000 else 100
        end = min(self.last, offset + max(1, min(messages_max, 100 // size)))
        self.held += (end - offset) * size
        self.held_max = max(self.held_max, self.held)
        return self.block(PullStatus.FOUND, end, bytes((end - offset) * size))


@pytest.mark.parametrize("enough", [1, 400])
def test_what_is_not_read_yet_is_bounded_in_bytes_when_messages_become_large(
    monkeypatch: pytest.MonkeyPatch, enough: int
) -> None:
    """A piece is cut for small messages; of large ones it must not gather hundreds of answers."""
    monkeypatch.setattr(pulls, "SPARK_AHEAD_BYTES_MAX", enough)
    queue = Fat(0, 3000)

    async def work() -> list[tuple[int, int]]:
        reader = BlockReader(queue, QueueRange(QUEUE, 0, 3000), options())
        found: list[tuple[int, int]] = []
        while (piece := await reader.next()) is not None:
            found.append((piece.begin, piece.end))
            queue.held -= piece.size_bytes
        return found

    found = asyncio.run(work())
    assert [begin for begin, _ in found] == [0, *(end for _, end in found[:-1])]
    assert found[-1][1] == 3000
    assert queue.held_max <= enough + (1 + SPARK_PULLS_AHEAD_MAX) * 100


def test_a_broken_connection_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulls, "PAUSE_MS", 1)
    assert read(Queue(0, 100, broken_calls=2), 0, 100) == list(range(100))
    with pytest.raises(ConnectionLost):
        read(Queue(0, 100, broken_calls=1000), 0, 100)


def test_a_message_that_shows_a_moment_later_is_waited_for() -> None:
    assert read(Queue(0, 50, shown=20), 0, 50) == list(range(50))


def test_messages_that_expire_during_the_read_are_an_error_or_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(OffsetsExpired, match="from offset 5 to 40 have expired"):
        read(Queue(40, 100), 5, 60)
    assert read(Queue(40, 100), 5, 60, failOnDataLoss="false") == list(range(40, 60))
    assert "have expired" in caplog.text


def test_a_queue_that_became_shorter_is_a_different_error(caplog: pytest.LogCaptureFixture) -> None:
    for last in (50, 10):
        with pytest.raises(QueueRecreated, match=f"ends at {last}, before offset"):
            read(Queue(0, last), 20, 100)
    assert read(Queue(0, 50), 20, 100, failOnDataLoss="false") == list(range(20, 50))
    assert "made again" in caplog.text


class Odd(Queue):
    """Answers pulls of the offsets from 10 to 30 with one status and one next offset."""

    odd: tuple[PullStatus, int]

    def answer(self, offset: int, messages_max: int) -> PullBlock:
        return self.block(*self.odd) if 10 <= offset < 30 else super().answer(offset, min(messages_max, 10))


@pytest.mark.parametrize("status", [PullStatus.NO_NEW_MESSAGE, PullStatus.NO_MATCHED_MESSAGE])
def test_a_hole_is_an_error_or_a_warning(status: PullStatus) -> None:
    """Here the broker answers with no message at all; holes between messages are in test_task.py."""
    queue = Odd(0, 100)
    queue.odd = (status, 30)
    with pytest.raises(DataLost, match="from offset 10 to 30"):
        read(queue, 0, 40)
    assert read(queue, 0, 40, failOnDataLoss="false") == [*range(10), *range(30, 40)]


@given(st.integers(0, 50), st.integers(0, 600), st.integers(1, 40))
def test_with_a_filter_the_matching_messages_arrive_once(begin: int, length: int, cap: int) -> None:
    """Answers then reach beyond what was asked for, because limits count only the messages that match."""
    queue = Queue(0, begin + length + 10, cap=lambda offset: cap)
    wanted = [offset for offset in range(begin, begin + length) if offset % 7 == 0]
    assert read(queue, begin, begin + length, tags="paid") == wanted


def test_messages_that_expire_behind_an_answer_with_messages_are_not_passed_over() -> None:
    """The answer has all that it was asked for, and says that the queue begins later by now."""
    queue = Queue(0, 100, cap=lambda offset: 10)

    def expire(offset: int) -> int:
        queue.first = 40 if offset >= 10 else 0
        return 10

    queue.cap = expire
    with pytest.raises(OffsetsExpired, match="from offset 20 to 40 have expired"):
        read(queue, 10, 60)
    queue.first = 0
    assert read(queue, 10, 60, failOnDataLoss="false") == [*range(10, 20), *range(40, 60)]


def test_one_message_alone_is_the_last_of_its_answer_with_a_filter_too() -> None:
    async def alone(**given: str) -> tuple[int, int, bytes]:
        reader = BlockReader(Queue(0, 100), QueueRange(QUEUE, 0, 100), options(**given))
        (block,) = (await reader.again(8, alone=True)).blocks
        return block

    assert asyncio.run(alone()) == (8, 9, (8).to_bytes(4, "big"))
    assert asyncio.run(alone(tags="paid")) == (8, 15, (14).to_bytes(4, "big"))


def test_a_broker_that_does_not_go_on_is_an_error() -> None:
    queue = Odd(0, 100)
    queue.odd = (PullStatus.FOUND, 10)
    with pytest.raises(ProtocolError, match="does not go on at offset 10"):
        read(queue, 0, 40)
