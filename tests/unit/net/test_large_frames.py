"""Room for large frames: who fits comes in, the others wait in line, and who does not use its room loses it."""

import asyncio
from collections.abc import Callable

import pytest

from bolide.model.limits import FRAME_BYTES_MAX, ORDINARY_FRAME_BYTES_MAX
from bolide.net import large_frames as module
from bolide.net.clock import SystemClock
from bolide.net.large_frames import LOOK_S, LOOKS_PER_FRAME_MAX, STOPPED_LOOKS_MAX, LargeFrames, Room
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


def in_loop(test: Callable[[Room, dict[str, Receiver]], object]) -> None:
    async def main() -> None:
        frames = Room(100, Provoked(SystemClock()))
        outcome = test(frames, {name: Receiver(name) for name in (ONE, TWO, THREE)})
        if asyncio.iscoroutine(outcome):
            await outcome
        frames.close()

    asyncio.run(main())


def test_a_short_frame_is_let_in_before_long_ones_and_every_fourth_is_who_has_waited_longest() -> None:
    def check(frames: Room, who: dict[str, Receiver]) -> None:
        assert frames.ask(who[ONE], 100)
        waiting = {f"{size}-{number}": Receiver(str(number)) for size in (80, 51) for number in range(6)}
        for name, receiver in waiting.items():
            assert not frames.ask(receiver, int(name.partition("-")[0]))
        order: list[str] = []
        frames.leave(who[ONE])
        while len(order) < len(waiting):
            let_in = [name for name, receiver in waiting.items() if receiver.rooms and name not in order]
            assert len(let_in) == 1
            order += let_in
            for name in let_in:
                frames.leave(waiting[name])
        assert order[:8] == ["51-0", "51-1", "51-2", "80-0", "51-3", "51-4", "51-5", "80-1"]
        assert frames.kept == 0
        assert not frames._by_class

    in_loop(check)


def test_who_fits_comes_in_and_the_others_wait() -> None:
    def check(frames: Room, who: dict[str, Receiver]) -> None:
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
    def check(frames: Room, who: dict[str, Receiver]) -> None:
        assert frames.ask(who[ONE], 70)
        assert not frames.ask(who[TWO], 60)
        assert not frames.ask(who[THREE], 10)
        frames.leave(who[TWO])
        assert [receiver.rooms for receiver in who.values()] == [0, 0, 1]
        assert frames.kept == 80

    in_loop(check)


def test_while_others_wait_who_brings_little_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_S", 0.001)

    async def check(frames: Room, who: dict[str, Receiver]) -> None:
        assert frames.ask(who[ONE], 64)
        assert frames.ask(who[TWO], 32)
        assert not frames.ask(who[THREE], 80)
        looks = 0

        def brings_enough() -> bool:
            nonlocal looks
            looks += 1
            who[ONE].received_bytes += 64 // LOOKS_PER_FRAME_MAX - 1  # of the larger one more is due
            who[TWO].received_bytes += 32 // LOOKS_PER_FRAME_MAX
            return who[ONE].is_gone

        while not brings_enough() and looks < 1000:
            frames._look()
        assert looks == 3  # the first look only sees where everybody is
        assert not who[TWO].is_gone
        assert frames.kept == 32
        await eventually(lambda: who[TWO].is_gone)  # it brings nothing any more
        assert who[THREE].rooms == 1

    in_loop(check)


def test_forty_slow_frames_keep_an_honest_one_out_for_some_looks_only() -> None:
    """Each brings 64 KiB a second, and would need a minute."""
    slow = [Receiver(str(number)) for number in range(40)]
    honest = Receiver("honest")

    async def main() -> None:
        frames = LargeFrames(Provoked(SystemClock()))
        for receiver in [*slow, honest]:
            frames.ask(receiver, 4 * 1024**2)
        looks = 0
        while not honest.rooms and looks < 1000:
            looks += 1
            for receiver in slow:
                receiver.received_bytes += int(64 * 1024 * LOOK_S)
            frames._ordinary._look()
        frames.close()
        assert looks <= 2 * 40 // 12

    asyncio.run(main())


def test_a_message_does_not_wait_for_frames_that_are_longer_than_messages() -> None:
    async def main() -> None:
        frames = LargeFrames(Provoked(SystemClock()))
        longer = [Receiver(str(number)) for number in range(4)]
        assert [frames.ask(one, FRAME_BYTES_MAX + 4) for one in longer] == [True, False, False, False]
        messages = [Receiver(str(number)) for number in range(4)]
        assert all(frames.ask(one, ORDINARY_FRAME_BYTES_MAX) for one in messages)
        for receiver in longer + messages:
            frames.leave(receiver)
        assert [receiver.rooms for receiver in longer] == [0, 1, 1, 1]
        assert frames.kept == 0
        frames.close()

    asyncio.run(main())


def test_who_is_not_served_because_others_are_keeps_its_room() -> None:
    def check(frames: Room, who: dict[str, Receiver]) -> None:
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

    def check(frames: Room, who: dict[str, Receiver]) -> None:
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
    def check(frames: Room, who: dict[str, Receiver]) -> None:
        assert frames.ask(who[ONE], 90)
        for _ in range(5):
            frames._look()
        assert not who[ONE].is_gone

    in_loop(check)
