"""Answers of one turn go out in one write; none waits longer, and their order stays."""

import asyncio
from collections.abc import Callable

from bolide.net.commons import Commons
from bolide.net.link import Link
from bolide.net.outbox import APART_BYTES, HELD_BYTES_MAX
from bolide.wire.command import Command, encode_frame
from tests.unit.net.stage import Bench
from tests.unit.net.test_unread import Socket
from tests.unit.store.stage import HeldClock


class Paper(Socket):
    """A socket that takes everything and shows what was written to it, write by write."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writes.append(bytes(data))

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = True

    def pause_reading(self) -> None:
        pass


def brought(link: Link, *frames: bytes) -> None:
    """The connection brings these with one read."""
    data = b"".join(frames)
    link.get_buffer(-1)[: len(data)] = data
    link.buffer_updated(len(data))


def with_paper(
    handler: Callable[[Link, Command], Command | None], work: Callable[[Link, Paper], None]
) -> None:
    async def main() -> None:
        link, paper = Link(Commons(HeldClock(), serves=True), Bench({1: handler})), Paper()
        link.connection_made(paper)
        work(link, paper)

    asyncio.run(main())


def asked(number: int, length: int = 10) -> bytes:
    return encode_frame(Command(1, {"length": str(length)}, opaque=number))


def answered(link: Link, request: Command) -> Command:
    return request.answer(body=b"x" * int(request.fields["length"]))


def answer_to(number: int, length: int = 10) -> bytes:
    return encode_frame(Command(1, opaque=number).answer(body=b"x" * length))


def test_the_answers_to_one_read_are_one_write_in_the_order_of_the_requests() -> None:
    def work(link: Link, paper: Paper) -> None:
        brought(link, *(asked(number) for number in range(5)))
        assert paper.writes == [b"".join(answer_to(number) for number in range(5))]

    with_paper(answered, work)


def test_what_is_written_between_two_reads_goes_at_once() -> None:
    def work(link: Link, paper: Paper) -> None:
        brought(link, asked(1))
        link.write(b"later")
        assert paper.writes == [answer_to(1), b"later"]

    with_paper(answered, work)


def test_much_goes_out_while_the_rest_is_still_being_served() -> None:
    def work(link: Link, paper: Paper) -> None:
        half = HELD_BYTES_MAX // 2
        brought(link, asked(1, half), asked(2, half), asked(3))
        assert paper.writes == [answer_to(1, half) + answer_to(2, half), answer_to(3)]

    with_paper(answered, work)


def test_a_very_large_body_is_not_joined_and_keeps_its_place() -> None:
    def work(link: Link, paper: Paper) -> None:
        brought(link, asked(1), asked(2, APART_BYTES), asked(3))
        assert paper.writes[1] == b"x" * APART_BYTES
        assert b"".join(paper.writes) == answer_to(1) + answer_to(2, APART_BYTES) + answer_to(3)

    with_paper(answered, work)


def test_what_was_answered_before_the_connection_is_closed_goes_out() -> None:
    """Closed by a handler, or given up for a frame that is none."""

    def closes(link: Link, request: Command) -> Command | None:
        if request.opaque == 2:
            link.close()
            return None
        return answered(link, request)

    def by_handler(link: Link, paper: Paper) -> None:
        brought(link, asked(1), asked(2), asked(3))
        assert paper.writes == [answer_to(1)]

    def by_bad_frame(link: Link, paper: Paper) -> None:
        brought(link, asked(1), b"\xff" * 64)
        assert paper.writes == [answer_to(1)]
        assert paper.is_closed

    with_paper(closes, by_handler)
    with_paper(answered, by_bad_frame)


def test_answers_that_are_held_are_charged_when_they_are_written() -> None:
    def work(link: Link, paper: Paper) -> None:
        paper.left = 1  # the socket does not take all
        brought(link, asked(1), asked(2))
        assert link.account.kept == len(answer_to(1) + answer_to(2))

    with_paper(answered, work)
