"""Shares: what one connection can take of a server's time and memory, and what all of them together."""

import asyncio

import pytest

from bolide.model.limits import REQUESTS_PER_TURN, TURN_BYTES_MAX, TURN_MS_MAX
from bolide.net import commons as commons_module
from bolide.net import link as link_module
from bolide.net.link import Link
from bolide.net.round import MANY_BYTES, Round
from bolide.wire.command import Command, encode_frame
from bolide.wire.peer import Peer
from bolide.wire.pull_frame import PullFrame
from bolide.wire.send_run import SendRun
from tests.unit.broker.stage import pull_request, send_request
from tests.unit.net.stage import Wire, eventually, next_turn, serving
from tests.unit.net.turns import counted_by_turn
from tests.unit.store.stage import HeldClock

LARGE = encode_frame(Command(1, body=bytes(900_000)))
SMALL = encode_frame(Command(1, body=bytes(200_000)))


class Desk:
    """Every request takes a millisecond, or as many as it says."""

    def __init__(self) -> None:
        self.clock = HeldClock()
        self.order: list[str] = []

    def serve(self, link: Link, request: Command) -> Command:
        self.note(request.fields["who"])
        self.clock.ms += int(request.fields.get("ms", 1))
        return request.answer()

    def note(self, who: str) -> None:
        self.order.append(who)


def echo(link: Link, request: Command) -> Command:
    return request.answer(body=request.body)


# ---- time -------------------------------------------------------------------------------------------------------


def test_a_connection_gets_some_milliseconds_then_others_have_their_turn() -> None:
    async def main() -> None:
        desk = Desk()
        async with serving({1: desk.serve}, clock=desk.clock) as (_, _, address):
            flood, other = await Wire.connect(address), await Wire.connect(address)
            with counted_by_turn(desk, "note") as served:
                flood.send(*(Command(1, {"who": "flood"}, flag=2) for _ in range(50)))
                other.send(Command(1, {"who": "other"}))
                assert (await other.next()).code == 0
                assert (await flood.ask(Command(1, {"who": "flood"}, opaque=7))).opaque == 7
            assert len(desk.order) == 52  # none was lost, none was served twice
            assert served.most <= 2 * TURN_MS_MAX  # for who waits, and for who comes
            assert desk.order.index("other") <= 4 * TURN_MS_MAX

    asyncio.run(main())


def test_however_many_connections_want_much_a_turn_does_as_much_as_for_one() -> None:
    """Their requests take a whole share each; who asks for little is served after a few of them, not after all."""
    greedy = 30

    async def main() -> None:
        desk = Desk()
        async with serving({1: desk.serve}, clock=desk.clock) as (_, server, address):
            wires = [await Wire.connect(address) for _ in range(greedy)]
            honest = await Wire.connect(address)
            slow = {"who": "greedy", "ms": str(TURN_MS_MAX)}
            with counted_by_turn(desk, "note") as served:
                for wire in wires:
                    wire.send(*(Command(1, slow, opaque=number) for number in range(10)))
                assert (await wires[0].next()).code == 0
                for _ in range(5):
                    before = len(desk.order)
                    assert (await honest.ask(Command(1, {"who": "honest"}))).code == 0
                    assert len(desk.order) - before <= 10
                for wire in wires[1:]:
                    assert [(await wire.next()).opaque for _ in range(10)] == list(range(10))
            assert served.most <= 2
            await eventually(lambda: server.kept_bytes == 0)

    asyncio.run(main())


def test_however_many_connections_bring_large_frames_a_turn_receives_as_much_as_for_a_few() -> None:
    """But for who has brought little with its last read: nobody knows that it brings many now."""
    greedy, frames = 20, 4

    async def main() -> None:
        last: dict[Link, int] = {}

        def bytes_of(link: Link, count: int) -> int:
            before, last[link] = last.get(link, 0), count
            return count if before >= MANY_BYTES else 0

        async with serving({1: lambda _, request: request.answer()}) as (_, server, address):
            wires = [await Wire.connect(address) for _ in range(greedy)]
            with counted_by_turn(Link, "buffer_updated", bytes_of) as received:
                for wire in wires:
                    wire.send(LARGE * frames)
                for wire in wires:
                    assert [(await wire.next()).code for _ in range(frames)] == [0] * frames
            assert received.total > greedy * len(LARGE)
            assert received.most <= TURN_BYTES_MAX
            await eventually(lambda: server.kept_bytes == 0)

    asyncio.run(main())


def test_a_request_that_waits_for_its_turn_is_charged() -> None:
    async def main() -> None:
        desk = Desk()
        async with serving({1: desk.serve}, clock=desk.clock) as (bench, server, address):
            first, second = await Wire.connect(address), await Wire.connect(address)
            await eventually(lambda: len(bench.opened) == 2)
            request = encode_frame(Command(1, {"who": "x", "ms": str(TURN_MS_MAX)}))
            for link in bench.opened:  # in one turn
                link.get_buffer(-1)[: len(request)] = request
                link.buffer_updated(len(request))
            assert desk.order == ["x"]
            assert server.kept_bytes == len(request)
            assert (await first.next()).code == (await second.next()).code == 0
            assert server.kept_bytes == 0

    asyncio.run(main())


def test_a_connection_whose_one_request_took_too_long_waits_before_it_is_read_from_again() -> None:
    async def main() -> None:
        desk = Desk()
        async with serving({1: desk.serve}, clock=desk.clock) as (_, server, address):
            wire = await Wire.connect(address)
            with counted_by_turn(server._commons.round, "wait") as waits:
                assert (await wire.ask(Command(1, {"who": "x", "ms": str(TURN_MS_MAX)}))).code == 0
                assert (await wire.ask(Command(1, {"who": "x"}))).code == 0
            assert waits.total == 1

    asyncio.run(main())


class Pulls:
    """Every pull takes a millisecond."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def on_pull(self, link: Link, pull: PullFrame) -> None:
        self._desk.note("pull")
        self._desk.clock.ms += 1

    def on_ends(self, link: Link, run: SendRun, count: int) -> int:
        raise AssertionError("nobody ends a transaction")

    def on_sends(self, link: Link, run: SendRun, requests_max: int) -> tuple[int, int]:
        raise AssertionError("nobody sends")


def test_the_time_of_pulls_counts_as_that_of_other_requests() -> None:
    """Who asks for as much as each of those who flood the server with pulls has as much of it, and is not the last."""
    flooders, asked = 10, 30

    async def main() -> None:
        desk = Desk()
        async with serving({1: desk.serve}, clock=desk.clock, hot=Pulls(desk)) as (bench, _, address):
            wires = [await Wire.connect(address) for _ in range(flooders)]
            for wire in wires:
                wire.send(*(pull_request(number) for number in range(20 * asked)))
            honest = await Wire.connect(address)
            await eventually(lambda: len(bench.opened) == flooders + 1)
            honest.send(*(Command(1, {"who": "honest"}, opaque=number) for number in range(asked)))
            assert [(await honest.next()).opaque for _ in range(asked)] == list(range(asked))
            last = len(desk.order) - desk.order[::-1].index("honest")
            assert desk.order[desk.order.index("honest") : last].count("pull") <= 2 * flooders * asked
            await eventually(lambda: len(desk.order) == (20 * flooders + 1) * asked)

    asyncio.run(main())


class Somebody:
    """Always waits for a turn, until it goes."""

    def __init__(self, round_: Round) -> None:
        self._round = round_
        self.used_ms = self.waited_ms = 0
        self.brought_many = False
        self.is_here = True
        self.rested()

    def rested(self) -> None:
        if self.is_here:
            self._round.wait(self, 0)


def test_a_request_that_leaves_time_for_others_is_charged_while_they_wait() -> None:
    async def main() -> None:
        desk = Desk()
        async with serving({1: desk.serve}, clock=desk.clock) as (bench, server, address):
            wire = await Wire.connect(address)
            await eventually(lambda: bench.opened)
            link, round_ = bench.opened[0], server._commons.round
            request = Command(1, {"who": "x", "ms": str(TURN_MS_MAX - 1)})
            assert (await wire.ask(request)).code == 0
            assert link.used_ms == 0
            somebody = Somebody(round_)
            assert (await wire.ask(request)).code == 0
            assert link.used_ms == TURN_MS_MAX - 1
            somebody.is_here = False

    asyncio.run(main())


class SlowSends(Pulls):
    """Every send is one that is not plain, and takes a whole share."""

    def on_ends(self, link: Link, run: SendRun, count: int) -> int:
        raise AssertionError("nobody ends a transaction")

    def on_sends(self, link: Link, run: SendRun, requests_max: int) -> tuple[int, int]:
        self._desk.note("send")
        self._desk.clock.ms += TURN_MS_MAX
        return 1, 1


def test_a_send_that_turns_out_not_to_be_plain_counts_from_its_beginning() -> None:
    """Two in the same turn, and nothing before them: the first one uses it up, and pays."""

    async def main() -> None:
        desk = Desk()
        async with serving({}, clock=desk.clock, hot=SlowSends(desk)) as (bench, server, address):
            wires = [await Wire.connect(address) for _ in range(2)]
            await eventually(lambda: len(bench.opened) == len(wires))
            request = encode_frame(send_request())
            bench.opened[0].get_buffer(-1)[: len(request)] = request
            bench.opened[0].buffer_updated(len(request))
            assert desk.order == ["send"]
            assert server._commons.round.is_over
            assert (bench.opened[0].waits_for_others, bench.opened[0].used_ms) == (True, TURN_MS_MAX)

    asyncio.run(main())


def test_what_it_takes_to_scan_sends_that_are_not_plain_counts_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        desk, whole = Desk(), Peer.next

        def slow(peer: Peer) -> object:
            desk.clock.ms += 2
            return whole(peer)

        async with serving({}, clock=desk.clock, hot=SlowSends(desk)) as (bench, _, address):
            wire = await Wire.connect(address)
            await eventually(lambda: bench.opened)
            (link,) = bench.opened
            request = encode_frame(send_request())
            monkeypatch.setattr(Peer, "next", slow)
            link.get_buffer(-1)[: len(request)] = request
            link.buffer_updated(len(request))
            assert link.used_ms == TURN_MS_MAX + 2
            wire.close()

    asyncio.run(main())


def test_the_time_that_a_request_takes_in_slices_counts_while_others_wait() -> None:
    """Half of the slices are made while somebody waits for its turn; what passes between them is not charged."""

    async def main() -> None:
        clock, turns = HeldClock(), asyncio.Semaphore(0)

        async def sliced(link: Link, request: Command) -> Command:
            for _ in range(10):
                clock.ms += 3
                await turns.acquire()
            return request.answer()

        async with serving({1: sliced}, clock=clock) as (bench, server, address):
            wire = await Wire.connect(address)
            round_ = server._commons.round
            wire.send(Command(1))
            await eventually(lambda: clock.ms and bench.opened[0]._in_flight)
            link = bench.opened[0]
            for number in range(10):
                if number == 4:
                    somebody = Somebody(round_)
                clock.ms += 100
                turns.release()
                await next_turn()
                await next_turn()  # it hears of it in the first, and goes on in the second
            assert link.used_ms == 5 * 3
            somebody.is_here = False
            assert (await wire.next()).code == 0

    asyncio.run(main())


def test_answers_that_nobody_asked_for_take_their_share_and_no_more() -> None:
    async def main() -> None:
        async with serving({1: echo}, clock=HeldClock()) as (bench, _, address):
            wire, other = await Wire.connect(address), await Wire.connect(address)
            with counted_by_turn(Peer, "next") as taken:
                wire.send(*(Command(0, flag=1, opaque=number) for number in range(5 * REQUESTS_PER_TURN)))
                assert (await other.ask(Command(1))).code == 0
                assert (await wire.ask(Command(1, opaque=9))).opaque == 9
            assert taken.most <= REQUESTS_PER_TURN + 2
            assert all(not link._peer._pending for link in bench.opened)

    asyncio.run(main())


def test_requests_under_way_are_bounded_for_each_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "IN_FLIGHT_OF_ONE_MAX", 10)
    began = 0

    async def main() -> None:
        gate = asyncio.Event()

        async def wait(link: Link, request: Command) -> Command:
            nonlocal began
            began += 1
            await gate.wait()
            return request.answer()

        async with serving({1: wait, 2: echo}, clock=HeldClock()) as (_, server, address):
            greedy, other = await Wire.connect(address), await Wire.connect(address)
            frames = b"".join(
                encode_frame(Command(1, body=bytes(1000), opaque=number)) for number in range(35)
            )
            greedy.send(frames)
            await eventually(lambda: began == 10)
            assert (await other.ask(Command(2))).code == 0
            assert began == 10
            assert server.kept_bytes == len(frames)  # what is under way, and what was received behind it
            gate.set()
            assert sorted([(await greedy.next()).opaque for _ in range(35)]) == list(range(35))
            assert server.kept_bytes == 0

    asyncio.run(main())


# ---- memory -----------------------------------------------------------------------------------------------------


def test_the_beginning_of_a_frame_is_charged_until_it_is_whole_or_nobody_brings_the_rest() -> None:
    async def main() -> None:
        async with serving({1: echo}) as (_, server, address):
            wire = await Wire.connect(address)
            wire.send(SMALL[:100_000])
            await eventually(lambda: server.kept_bytes == 100_000)
            wire.send(SMALL[100_000:])
            assert len((await wire.next()).body) == 200_000
            await eventually(lambda: server.kept_bytes == 0)
            wire.send(SMALL[:100_000])
            await eventually(lambda: server.kept_bytes == 100_000)
            wire.close()
            await eventually(lambda: server.kept_bytes == 0)

    asyncio.run(main())


ROOM_FOR_TWO = 2 * len(LARGE) // 3 * 4 + 8


def test_large_frames_that_fit_come_in_and_the_others_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commons_module, "LARGE_FRAMES_BYTES_MAX", ROOM_FOR_TWO)

    async def main() -> None:
        async with serving({1: echo}) as (_, server, address):
            wires = [await Wire.connect(address) for _ in range(5)]
            for wire in wires:
                wire.send(LARGE[:-1])
            await eventually(lambda: all(link._large for link in server.links))
            assert server._commons.large_frames.kept == 2 * len(LARGE)
            assert server.kept_bytes < 2 * len(LARGE) + 3 * 256 * 1024
            other = await Wire.connect(address)
            assert (await other.ask(Command(1))).code == 0  # small ones need no room
            for wire in wires:
                wire.send(LARGE[-1:])
            for wire in wires:
                assert len((await wire.next()).body) == 900_000
            await eventually(lambda: server.kept_bytes == 0)

    asyncio.run(main())


def test_a_large_frame_that_stands_still_makes_way_for_those_that_wait(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(commons_module, "LARGE_FRAMES_BYTES_MAX", 0)  # room for one
    monkeypatch.setattr("bolide.net.large_frames.LOOK_S", 0.05)

    async def main() -> None:
        async with serving({1: echo}) as (_, server, address):
            stuck, honest = await Wire.connect(address), await Wire.connect(address)
            stuck.send(LARGE[:-1])
            await eventually(lambda: server._commons.large_frames.kept)
            honest.send(LARGE)
            assert len((await honest.next()).body) == 900_000
            assert await stuck.closed()
            assert "too slowly while others wait" in caplog.text
            await eventually(lambda: server.kept_bytes == 0)

    asyncio.run(main())


def test_a_whole_large_frame_that_waits_for_its_turn_is_not_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(commons_module, "LARGE_FRAMES_BYTES_MAX", 0)  # room for one

    async def main() -> None:
        async with serving({1: echo}, clock=HeldClock()) as (bench, server, address):
            frames, round_ = server._commons.large_frames._ordinary, server._commons.round
            wire, other = await Wire.connect(address), await Wire.connect(address)
            wire.send(LARGE[:-1])
            await eventually(lambda: bench.opened[0].received_bytes == len(LARGE) - 1)
            other.send(LARGE)
            await eventually(lambda: frames._waiting)
            with monkeypatch.context() as patch:
                patch.setattr(
                    round_, "_turn_soon", lambda: None
                )  # others have their turn, for as long as this takes
                round_.is_over = True
                wire.send(LARGE[-1:])
                await eventually(lambda: bench.opened[0].waits_for_others)
                assert bench.opened[0].received_bytes == len(LARGE)
                for _ in range(100):
                    frames._look()
            round_._turn_soon()
            assert len((await wire.next()).body) == len((await other.next()).body) == 900_000

    asyncio.run(main())


def test_unfinished_frames_of_many_connections_stay_within_the_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    budget = 1_000_000
    monkeypatch.setattr(commons_module, "KEPT_BYTES_MAX", budget)

    async def main() -> None:
        async with serving({1: echo}) as (bench, server, address):
            honest = await Wire.connect(address)
            assert (await honest.ask(Command(1))).code == 0
            honest.send(SMALL[:150_000])
            await eventually(lambda: server.kept_bytes == 150_000)
            wires = [await Wire.connect(address) for _ in range(30)]
            for wire in wires:
                wire.send(SMALL[:190_000])
                await eventually(lambda: len(bench.opened) == 31)
                assert server.kept_bytes <= budget
            await eventually(lambda: len(bench.closed) > 20)
            assert server.kept_bytes <= budget
            honest.send(SMALL[150_000:])
            assert len((await honest.next()).body) == 200_000  # it was seen to bring whole ones

    asyncio.run(main())


def test_answers_that_nobody_reads_stay_within_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    budget = 20_000_000
    monkeypatch.setattr(commons_module, "KEPT_BYTES_MAX", budget)

    async def main() -> None:
        handlers = {1: lambda _, request: request.answer(body=bytes(8_000_000)), 2: echo}
        async with serving(handlers) as (bench, server, address):
            honest = await Wire.connect(address)
            deaf = [await Wire.connect(address) for _ in range(10)]
            for wire in deaf:
                wire.reader._transport.pause_reading()  # type: ignore[attr-defined]
                wire.send(*(Command(1) for _ in range(5)))
                assert (await honest.ask(Command(2))).code == 0
                assert server.kept_bytes <= budget
            await eventually(lambda: bench.closed)
            assert (await honest.ask(Command(2))).code == 0
            assert bench.opened[0] not in bench.closed

    asyncio.run(main())


def test_answers_that_are_read_are_not_charged_for_long() -> None:
    async def main() -> None:
        handlers = {1: lambda _, request: request.answer(body=bytes(8_000_000)), 2: echo}
        async with serving(handlers) as (_, server, address):
            wire = await Wire.connect(address)
            for _ in range(3):
                assert len((await wire.ask(Command(1))).body) == 8_000_000
            assert (await wire.ask(Command(2))).code == 0
            await eventually(lambda: server.kept_bytes == 0)

    asyncio.run(main())
