"""Pulls and the turns of a server: one that is over serves none, and only large answers make it look at the clock."""

import asyncio

from bolide.model.limits import TURN_MS_MAX
from bolide.net.link import Link
from bolide.net.round import LITTLE_PER_LOOK, MANY_BYTES
from bolide.wire.command import Command, encode_frame
from bolide.wire.pull_frame import PullFrame
from bolide.wire.send_run import SendRun
from tests.unit.broker.stage import pull_request
from tests.unit.net.stage import Wire, eventually, serving
from tests.unit.net.turns import counted_by_turn
from tests.unit.store.stage import HeldClock


class LargePulls:
    """Every pull has a large answer, for which a whole turn is used up; or a small one."""

    def __init__(self, size: int = MANY_BYTES) -> None:
        self._size = size
        self.clock = HeldClock()
        self.served = 0

    def on_pull(self, link: Link, pull: PullFrame) -> None:
        self.count()
        self.clock.ms += TURN_MS_MAX
        link.answer(Command(0, opaque=pull.opaque, flag=1, body=bytes(self._size)))

    def on_ends(self, link: Link, run: SendRun, count: int) -> int:
        raise AssertionError("nobody ends a transaction")

    def on_sends(self, link: Link, run: SendRun, requests_max: int) -> tuple[int, int]:
        raise AssertionError("nobody sends")

    def count(self) -> None:
        self.served += 1


def test_a_turn_that_is_over_serves_no_pulls_and_they_come_later() -> None:
    """In one turn each of the connections had one, whatever those of the others had taken."""
    asked = 3

    async def main() -> None:
        pulls = LargePulls()
        async with serving({}, clock=pulls.clock, hot=pulls) as (bench, server, address):
            wires = [await Wire.connect(address) for _ in range(20)]
            await eventually(lambda: len(bench.opened) == len(wires))
            frames = b"".join(encode_frame(pull_request(0, number)) for number in range(asked))
            for link in bench.opened:  # in one turn
                link.get_buffer(-1)[: len(frames)] = frames
                link.buffer_updated(len(frames))
            assert pulls.served == 1
            assert server.kept_bytes >= len(frames) * (len(wires) - 1)  # of those who wait
            with counted_by_turn(pulls, "count") as served:
                for wire in wires:
                    assert [(await wire.next()).opaque for _ in range(asked)] == list(range(asked))
            assert served.most == 1
            assert pulls.served == asked * len(wires)  # none was lost, none was served twice
            await eventually(lambda: server.kept_bytes == 0)

    asyncio.run(main())


def test_pulls_with_small_answers_do_not_look_at_the_clock_each() -> None:
    async def main() -> None:
        pulls = LargePulls(MANY_BYTES - 1)
        async with serving({}, clock=pulls.clock, hot=pulls) as (bench, server, address):
            wire = await Wire.connect(address)
            await eventually(lambda: bench.opened)
            with counted_by_turn(server._commons.round, "goes_on") as looks:
                wire.send(*(pull_request(0, number) for number in range(4 * LITTLE_PER_LOOK)))
                for number in range(4 * LITTLE_PER_LOOK):
                    assert (await wire.next()).opaque == number
            assert looks.total <= 2 * 4  # one for so many pulls, one for each turn of who waits

    asyncio.run(main())
