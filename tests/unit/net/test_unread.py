"""What counts as kept of answers that are not read: all that was written together, until its last byte has gone."""

import asyncio
from collections.abc import Callable
from typing import Any

from bolide.model.limits import WRITE_BUFFER_BYTES_MAX
from bolide.net.commons import Commons
from bolide.net.link import Link
from bolide.net.unread import MANY_BYTES
from tests.unit.net.stage import Bench
from tests.unit.store.stage import HeldClock


class Socket(asyncio.Transport):
    """Takes as many bytes as it is told to, and says how many are left."""

    def __init__(self) -> None:
        super().__init__()
        self.left = 0
        self.takes = 0  # of the next bytes, at once

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def is_closing(self) -> bool:
        return False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        taken = min(self.takes, len(data))
        self.takes -= taken
        self.left += len(data) - taken

    def get_write_buffer_size(self) -> int:
        return self.left

    def abort(self) -> None:
        pass


def with_link(work: Callable[[Link, Socket, HeldClock], None]) -> None:
    async def main() -> None:
        clock = HeldClock()
        link, socket = Link(Commons(clock, serves=True), Bench({})), Socket()
        link.connection_made(socket)
        work(link, socket, clock)

    asyncio.run(main())


def kept(link: Link) -> int:
    link.recount()
    return link.account.kept


def test_an_answer_counts_whole_until_its_last_byte_has_gone() -> None:
    """Whoever sends it keeps all of it so long."""

    def work(link: Link, socket: Socket, clock: HeldClock) -> None:
        for size in (1_000, 100_000, 4_000_000):
            link.write_parts(b"head", bytes(size))
            assert kept(link) == 4 + size
            socket.left = 0
            socket.takes = size
            link.write_parts(b"head", bytes(size))
            assert kept(link) == 4 + size
            socket.left = 1
            assert kept(link) == 4 + size
            assert kept(link) == 4 + size  # however often it is counted
            socket.left = 0
            assert kept(link) == 0

    with_link(work)


def test_what_is_written_behind_an_answer_keeps_all_of_it() -> None:
    """Both go out with one call: the small one's last byte frees the large one."""

    def work(link: Link, socket: Socket, clock: HeldClock) -> None:
        link.write_parts(b"head", bytes(4_000_000))
        link.write(b"little")
        socket.left = 3
        assert kept(link) == 4_000_010
        socket.left = 0
        link.write(b"next")
        assert link.account.kept == 4  # and nobody had to count

    with_link(work)


def test_who_reads_steadily_is_not_charged_for_what_it_has_read() -> None:
    """It has always something left, and has read gigabytes."""

    def work(link: Link, socket: Socket, clock: HeldClock) -> None:
        most = 0
        for _ in range(10_000):
            link.write(bytes(200_000))
            most = max(most, link.account.kept)
            socket.left = min(socket.left, WRITE_BUFFER_BYTES_MAX // 2)
        assert most <= MANY_BYTES + WRITE_BUFFER_BYTES_MAX
        socket.left = 0
        assert kept(link) == 0

    with_link(work)


def test_who_reads_a_little_of_a_large_answer_now_and_then_is_not_idle() -> None:
    def work(link: Link, socket: Socket, clock: HeldClock) -> None:
        link.write_parts(b"head", bytes(4_000_000))
        link.idle_ms(clock.ms)
        for _ in range(5):
            clock.ms += 1000
            socket.left -= 1000
            link._finished = True
            assert link.idle_ms(clock.ms) == 0
        clock.ms += 1000
        assert link.idle_ms(clock.ms) == 1000

    with_link(work)
