"""Large answers: a piece per turn however many ask, nothing for who has gone, and a bound for each connection."""

import asyncio
from collections.abc import Callable, Iterator

from bolide.model.limits import (
    FRAME_BYTES_MAX,
    LARGE_ANSWER_BYTES_MAX,
    LARGE_ANSWER_SMALL_BYTES,
    LARGE_ANSWERS_AT_ONCE,
    LARGE_ANSWERS_BEGUN_MAX,
    LARGE_ANSWERS_MAX,
    TURN_MS_MAX,
)
from bolide.model.response_code import ResponseCode
from bolide.net.large_answers import LargeAnswers
from bolide.net.link import Link
from bolide.net.turns import next_turn
from bolide.wire.command import Command, encode_frame
from tests.unit.net.stage import Wire, eventually, serving
from tests.unit.net.turns import counted_by_turn
from tests.unit.store.stage import HeldClock

PIECES = 50


class Maker:
    """Answers with so many pieces, which are made here."""

    def __init__(self) -> None:
        self.answers = LargeAnswers()
        self.made = 0
        self.at: dict[int, Callable[[], None]] = {}
        """What happens when so many pieces are made."""

    def make(self, number: int) -> bytes:
        self.made += 1
        self.at.get(self.made, lambda: None)()
        return b"%d " % number

    def pieces(self) -> Iterator[bytes]:
        for number in range(PIECES):
            yield self.make(number)

    async def answer(self, link: Link, request: Command) -> Command | None:
        return await self.answers.make(link, request, self.pieces)


def test_a_turn_makes_one_piece_however_many_ask() -> None:
    async def main() -> None:
        maker = Maker()
        async with serving({1: maker.answer}) as (_, _, address):
            wires = [await Wire.connect(address) for _ in range(5)]
            with counted_by_turn(maker, "make") as made:
                for wire in wires:
                    wire.send(Command(1), Command(1))
                answers = [await wire.next() for wire in wires for _ in range(2)]
            assert {answer.body for answer in answers} == {b"".join(b"%d " % n for n in range(PIECES))}
            assert (made.most, made.total) == (1, 10 * PIECES)

    asyncio.run(main())


def test_who_has_asked_for_much_else_holds_up_nobody_elses_answer() -> None:
    """Its other requests want slices of every turn; the answer that it waits for is not waited for by others."""
    requests = 200

    async def main() -> None:
        maker, clock, slices = Maker(), HeldClock(), 0

        async def endless(link: Link, request: Command) -> Command:
            nonlocal slices
            while True:
                slices += 1
                clock.ms += TURN_MS_MAX
                await next_turn()

        async with serving({1: maker.answer, 2: endless}, clock=clock) as (_, _, address):
            greedy, other = await Wire.connect(address), await Wire.connect(address)
            greedy.send(*(Command(2, flag=2) for _ in range(requests)), Command(1))
            await eventually(lambda: slices > requests)
            before = slices
            assert (await other.ask(Command(1))).code == 0
            assert slices - before < PIECES * requests // 10

    asyncio.run(main())


def test_nothing_is_made_for_who_wants_no_answer() -> None:
    async def main() -> None:
        maker = Maker()
        async with serving({1: maker.answer}) as (_, _, address):
            wire = await Wire.connect(address)
            wire.send(*(Command(1, flag=2) for _ in range(500)))
            assert (await wire.ask(Command(1, opaque=7))).opaque == 7
            assert maker.made == PIECES

    asyncio.run(main())


def test_nothing_more_is_made_for_a_connection_that_has_closed() -> None:
    async def main() -> None:
        maker = Maker()
        async with serving({1: maker.answer}) as (bench, _, address):
            gone, here = await Wire.connect(address), await Wire.connect(address)
            await eventually(lambda: len(bench.opened) == 2)
            maker.at[10] = bench.opened[0].abort
            gone.send(*(Command(1) for _ in range(LARGE_ANSWERS_MAX)))
            await eventually(lambda: bench.closed)
            assert (await here.ask(Command(1))).code == 0
            assert maker.made == 10 + PIECES

    asyncio.run(main())


def test_a_connection_that_asks_for_too_many_at_once_is_told_to_come_back() -> None:
    async def main() -> None:
        maker = Maker()
        async with serving({1: maker.answer}) as (_, _, address):
            wire = await Wire.connect(address)
            wire.send(*(Command(1, opaque=number) for number in range(LARGE_ANSWERS_MAX + 3)))
            answers = [await wire.next() for _ in range(LARGE_ANSWERS_MAX + 3)]
            refused = [answer for answer in answers if answer.code == ResponseCode.SYSTEM_BUSY]
            assert [answer.opaque for answer in refused] == [
                LARGE_ANSWERS_MAX + number for number in range(3)
            ]
            assert (await wire.ask(Command(1))).code == 0  # later is fine

    asyncio.run(main())


def test_an_answer_that_fails_leaves_room_for_the_next() -> None:
    def broken() -> Iterator[bytes]:
        yield b"a"
        raise KeyError("oops")

    async def main() -> None:
        maker = Maker()

        async def fail(link: Link, request: Command) -> Command | None:
            return await maker.answers.make(link, request, broken)

        async with serving({1: maker.answer, 2: fail}) as (_, _, address):
            wire = await Wire.connect(address)
            for _ in range(2 * LARGE_ANSWERS_MAX):
                assert (await wire.ask(Command(2))).remark == "KeyError: 'oops'"
            assert (await wire.ask(Command(1))).code == 0

    asyncio.run(main())


def test_who_asks_for_one_waits_for_one_of_each_other_connection() -> None:
    async def main() -> None:
        maker = Maker()
        order: list[Link] = []

        async def note(link: Link, request: Command) -> Command | None:
            answer = await maker.answer(link, request)
            order.append(link)
            return answer

        async with serving({1: note}) as (bench, _, address):
            greedy, modest = await Wire.connect(address), await Wire.connect(address)
            maker.at[1] = lambda: modest.send(Command(1))
            greedy.send(*(Command(1) for _ in range(LARGE_ANSWERS_MAX)))
            assert (await modest.next()).code == 0
            assert order.index(bench.opened[1]) <= 2  # one was in the making, and one had its turn before
            assert [(await greedy.next()).code for _ in range(LARGE_ANSWERS_MAX)] == [0] * LARGE_ANSWERS_MAX

    asyncio.run(main())


def test_who_asks_for_little_waits_for_pieces_of_others_and_not_for_whole_answers() -> None:
    async def main() -> None:
        maker = Maker()
        made_then: list[int] = []

        async def little(link: Link, request: Command) -> Command | None:
            answer = await maker.answers.make(link, request, lambda: (b"a", b"b", b"c"))
            made_then.append(maker.made)
            return answer

        async with serving({1: maker.answer, 2: little}) as (_, _, address):
            others, modest = [await Wire.connect(address) for _ in range(3)], await Wire.connect(address)
            maker.at[1] = lambda: modest.send(Command(2))
            for other in others:
                other.send(Command(1))
            assert (await modest.next()).body == b"abc"
            for other in others:
                assert (await other.next()).code == 0
            assert made_then[0] < PIECES

    asyncio.run(main())


def test_of_answers_that_become_long_a_few_are_in_the_making_and_all_count_as_kept() -> None:
    piece = bytes(LARGE_ANSWER_SMALL_BYTES // 2)
    answers = LargeAnswers()
    long_ones: list[int] = []  # so many at the same time
    making: dict[Link, int] = {}

    def pieces(link: Link) -> Iterator[bytes]:
        for number in range(20):
            making[link] = number * len(piece)
            long_ones.append(sum(size > LARGE_ANSWER_SMALL_BYTES + len(piece) for size in making.values()))
            assert making[link] <= link.account.kept <= making[link] + 256  # and the request
            yield piece
        del making[link]

    async def answer(link: Link, request: Command) -> Command | None:
        return await answers.make(link, request, lambda: pieces(link))

    async def main() -> None:
        async with serving({1: answer}) as (_, server, address):
            wires = [await Wire.connect(address) for _ in range(3 * LARGE_ANSWERS_AT_ONCE)]
            for wire in wires:
                wire.send(Command(1))
            assert {len((await wire.next()).body) for wire in wires} == {20 * len(piece)}
            assert max(long_ones) == LARGE_ANSWERS_AT_ONCE
            await eventually(lambda: server.kept_bytes == 0)

    asyncio.run(main())


def test_who_waits_for_an_answer_has_no_copy_of_what_it_tells() -> None:
    """Neither in the line of its connection, nor before others, nor when it has become long and others are, too."""
    piece = bytes(LARGE_ANSWER_SMALL_BYTES // 2)
    answers = LargeAnswers()
    copies, most, waiting = 0, 0, 0

    def pieces() -> Iterator[bytes]:
        nonlocal copies, most
        copies += 1
        most = max(most, copies)
        try:
            for _ in range(4):
                yield piece
        finally:
            copies -= 1

    async def answer(link: Link, request: Command) -> Command | None:
        nonlocal waiting
        waiting += 1
        return await answers.make(link, request, pieces)

    async def main() -> None:
        async with serving({1: answer}) as (_, server, address):
            wires = [await Wire.connect(address) for _ in range(2 * LARGE_ANSWERS_BEGUN_MAX)]
            for wire in wires:
                wire.send(*(Command(1) for _ in range(4)))
            for wire in wires:
                assert [len((await wire.next()).body) for _ in range(4)] == [4 * len(piece)] * 4
            assert waiting == 4 * len(wires)
            assert LARGE_ANSWERS_AT_ONCE < most <= LARGE_ANSWERS_AT_ONCE + LARGE_ANSWERS_BEGUN_MAX
            assert copies == 0
            await eventually(lambda: server.kept_bytes == 0)

    asyncio.run(main())


ASKED = 6


def test_nothing_is_made_for_a_connection_that_has_not_read_what_it_has() -> None:
    """What it asked for at once, and before anything was there to be read."""

    async def main() -> None:
        answers, made = LargeAnswers(), 0

        def pieces() -> Iterator[bytes]:
            nonlocal made
            made += 1
            yield bytes(8_000_000)

        async def answer(link: Link, request: Command) -> Command | None:
            return await answers.make(link, request, pieces)

        async with serving({1: answer, 2: lambda _, request: request.answer()}) as (bench, server, address):
            deaf, other = await Wire.connect(address), await Wire.connect(address)
            deaf.reader._transport.pause_reading()  # type: ignore[attr-defined]
            deaf.send(*(Command(1) for _ in range(ASKED)))
            await eventually(lambda: bench.opened and bench.opened[0].is_congested)
            before = made
            for _ in range(5):
                assert (await other.ask(Command(1))).code == 0
            assert made == before + 5 <= ASKED + 4
            assert server.kept_bytes <= before * 8_100_000
            deaf.reader._transport.resume_reading()  # type: ignore[attr-defined]
            assert [(await deaf.next()).code for _ in range(ASKED)] == [0] * ASKED
            assert (await deaf.ask(Command(2))).code == 0
            await eventually(lambda: server.kept_bytes == 0)

    asyncio.run(main())


def test_an_answer_that_no_client_would_take_is_an_error_in_words() -> None:
    """The largest one fits into a frame; of a larger one no more is made than shows that it is too large."""
    piece = bytes(LARGE_ANSWER_BYTES_MAX // 16)
    answers, made = LargeAnswers(), 0

    def pieces(number: int) -> Iterator[bytes]:
        nonlocal made
        for _ in range(number):
            made += 1
            yield piece

    async def answer(link: Link, request: Command) -> Command | None:
        return await answers.make(link, request, lambda: pieces(request.opaque))

    async def main() -> None:
        async with serving({1: answer}) as (_, _, address):
            wire = await Wire.connect(address)
            largest = await wire.ask(Command(1, opaque=16))
            assert (largest.code, len(largest.body)) == (0, LARGE_ANSWER_BYTES_MAX)
            assert len(encode_frame(largest)) <= FRAME_BYTES_MAX
            refused = await wire.ask(Command(1, opaque=400))
            assert (refused.code, refused.body) == (ResponseCode.SYSTEM_ERROR, b"")
            assert f"more than {LARGE_ANSWER_BYTES_MAX} bytes" in (refused.remark or "")
            assert made == 16 + 17

    asyncio.run(main())
