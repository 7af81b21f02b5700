"""Room for large frames: who fits comes in, the others wait in line, and who does not use its room loses it."""

import asyncio
from collections.abc import Callable

import pytest

from bolide.net import large_frames as module
from bolide.net.clock import SystemClock
from bolide.net.large_frames import BYTES_PER_LOOK_MIN, STOPPED_LOOKS_MAX, LargeFrames
from bolide.net.provoked import Provoked
from tests.unit.net.stage import eventually


class Receiver:
    def __init__(self, name: str) -> None:
        self.remote = name
        self.received_bytes = 0
        self.waits_for_others = False
        self.is_stopped = False
        self.rooms = 0
        self.is_gone = False

    def has_room(self) -> None:
        self.rooms += 1

    def abort(self) -> None:
        self.is_gone = True


ONE, TWO, THREE = "one", "two", "three"


def in_loop(test: Callable[[LargeFrames, dict[str, Receiver]], object]) -> None:
    async def main() -> None:
        frames = LargeFrames(100, Provoked(SystemClock()))
        outcome = test(frames, {name: Receiver(name) for name in (ONE, TWO, THREE)})
        if asyncio.iscoroutine(outcome):
            await outcome
        frames.close()

    asyncio.run(main())


def test_who_fits_comes_in_and_the_others_wait_in_the_order_in_which_they_came() -> None:
    def check(frames: LargeFrames, who: dict[str, Receiver]) -> None:
        assert frames.ask(who[ONE], 70)
        assert not frames.ask(who[TWO], 60)
        assert not frames.ask(who[THREE], 10)  # there would be room, but somebody was here before
        assert frames.kept == 70
        frames.leave(who[ONE])
        assert [receiver.rooms for receiver in who.values()] == [0, 1, 1]
        assert frames.kept == 70
        frames.leave(who[TWO])
        frames.leave(who[THREE])
        assert frames.kept == 0

    in_loop(check)


def test_who_goes_while_it_waits_makes_way_for_the_next() -> None:
    def check(frames: LargeFrames, who: dict[str, Receiver]) -> None:
        assert frames.ask(who[ONE], 70)
        assert not frames.ask(who[TWO], 60)
        assert not frames.ask(who[THREE], 10)
        frames.leave(who[TWO])
        assert [receiver.rooms for receiver in who.values()] == [0, 0, 1]
        assert frames.kept == 80

    in_loop(check)


def test_while_others_wait_who_brings_little_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_S", 0.001)

    async def check(frames: LargeFrames, who: dict[str, Receiver]) -> None:
        assert frames.ask(who[ONE], 50)
        assert frames.ask(who[TWO], 50)
        assert not frames.ask(who[THREE], 80)
        looks = 0

        def brings_enough() -> bool:
            nonlocal looks
            looks += 1
            who[ONE].received_bytes += BYTES_PER_LOOK_MIN
            who[TWO].received_bytes += 1
            return who[TWO].is_gone

        while not brings_enough():
            frames._look()
        assert looks == 3  # the first look only sees where everybody is
        assert not who[ONE].is_gone
        assert frames.kept == 50
        await eventually(lambda: who[ONE].is_gone)  # it brings nothing any more
        assert who[THREE].rooms == 1

    in_loop(check)


def test_who_is_not_served_because_others_are_keeps_its_room() -> None:
    def check(frames: LargeFrames, who: dict[str, Receiver]) -> None:
        assert frames.ask(who[ONE], 90)
        assert not frames.ask(who[TWO], 90)
        frames._look()
        who[ONE].is_stopped = who[ONE].waits_for_others = True
        for _ in range(10 * STOPPED_LOOKS_MAX):
            frames._look()
        who[ONE].is_stopped = who[ONE].waits_for_others = False
        frames._look()  # only sees where it is
        assert not who[ONE].is_gone
        frames._look()
        assert who[ONE].is_gone

    in_loop(check)


def test_who_is_stopped_by_its_own_doing_keeps_its_room_for_some_looks() -> None:
    """Its frame may be whole; it does not read what it was sent, or has much under way."""

    def check(frames: LargeFrames, who: dict[str, Receiver]) -> None:
        assert frames.ask(who[ONE], 90)
        assert not frames.ask(who[TWO], 90)
        who[ONE].is_stopped = True
        for _ in range(STOPPED_LOOKS_MAX):
            frames._look()
        assert not who[ONE].is_gone
        for _ in range(2):
            frames._look()
        assert who[ONE].is_gone
        assert who[TWO].rooms == 1

    in_loop(check)


def test_while_nobody_waits_a_frame_may_take_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(frames: LargeFrames, who: dict[str, Receiver]) -> None:
        assert frames.ask(who[ONE], 90)
        for _ in range(5):
            frames._look()
        assert not who[ONE].is_gone

    in_loop(check)
