"""What an interrupt in the middle of a step leaves behind, and another thread that iterates meanwhile."""

import asyncio
import itertools
from typing import Any, SupportsIndex

import pytest

from bolide.client import handout as handout_module
from bolide.client.handout import Handout, first_of, queue_of
from bolide.record.stored import StoredMessage
from tests.unit.client.test_dedup import stored


class Interrupting(list[StoredMessage]):
    def __delitem__(self, at: SupportsIndex | slice) -> None:
        raise KeyboardInterrupt


async def nothing_more() -> list[StoredMessage] | None:
    return None


def test_a_step_that_is_interrupted_loses_no_message_and_commits_go_on() -> None:
    handout = Handout(nothing_more)
    message = stored("1")
    handout._rest = Interrupting([message])
    with pytest.raises(KeyboardInterrupt):
        handout.next()
    handout._rest = [*handout._rest]
    assert handout.still_open(with_that_in_hand=False) == first_of([message])
    assert handout.next() is message
    assert handout.next() is None


# ---- a thread iterates while the event loop changes what is left ----------------------------------------------------


def filled(messages: list[StoredMessage]) -> Handout:
    async def more() -> list[StoredMessage] | None:
        return messages

    handout = Handout(more)
    assert asyncio.run(handout.refill())
    return handout


def rest_of(handout: Handout) -> list[StoredMessage]:
    return list(iter(handout.next, None))


GOES, STAYS = stored("0", topic="payments"), [stored(str(number)) for number in range(1, 5)]


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("moment", range(5))
def test_a_queue_that_goes_while_a_thread_iterates_brings_nothing_twice(
    moment: int, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    handout = filled([*STAYS[:2], GOES, *STAYS[2:]])
    got: list[StoredMessage | None] = []
    calls = itertools.count()

    def meanwhile(message: StoredMessage) -> object:
        if next(calls) == moment:
            got.extend(handout.next() for _ in range(steps))  # as the thread may at any call
        return queue_of(message)

    monkeypatch.setattr(handout_module, "queue_of", meanwhile)
    handout.drop(queue_of(GOES))
    assert GOES not in handout._rest
    assert [message for message in [*got, *rest_of(handout)] if message not in (GOES, None)] == STAYS


class Slow(list[StoredMessage]):
    """Whatever is taken of it, a thread that iterates comes between."""

    def __init__(self, handout: Handout) -> None:
        super().__init__(handout._rest)
        self.handout = handout
        self.got: list[StoredMessage] = []

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        if isinstance(at, slice):
            self._step()
        return found

    def pop(self, at: SupportsIndex = -1) -> StoredMessage:
        found = super().pop(at)
        self._step()
        return found

    def _step(self) -> None:
        if (message := self.handout.next()) is not None:
            self.got.append(message)


@pytest.mark.parametrize("count_max", [1, 2, 5])
def test_of_a_poll_while_a_thread_iterates_each_message_comes_to_one_of_them(count_max: int) -> None:
    handout = filled(STAYS)
    handout._rest = slow = Slow(handout)
    polled = handout.take(count_max)
    assert sorted(one.message_id for one in [*polled, *slow.got, *rest_of(handout)]) == ["1", "2", "3", "4"]
