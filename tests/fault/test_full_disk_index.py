"""A real disk that has no room for the key index: nothing else suffers, and it comes when there is room."""

import asyncio
from pathlib import Path

from bolide import Message, Producer, PullConsumer
from bolide.admin.connection import AdminConnection
from bolide.admin.messages import find_messages
from tests.fault.test_full_disk import BY_ROOM_ONLY, SECONDS_MAX, SEGMENT_BYTES, server_on
from tests.peers.waiting import wait_until

WHOLE_INDEX = {"maxHashSlotNum": "5000000", "maxIndexNum": "20000000"}
"""RocketMQ's sizes: slots of 20 MB, which are reserved before the first key is written, and entries of 400 MB."""


def found(nameserver: str, key: str) -> list[bytes]:
    async def ask() -> list[bytes]:
        async with AdminConnection(nameserver) as servers:
            return [message.body for message in await find_messages(servers, "full", key)]

    return asyncio.run(ask())


def test_without_room_for_the_index_messages_are_taken_and_found_later(tmp_path: Path) -> None:
    """Goal: no bus error.  Method: a disk for one segment; send, read, see that nothing is found; grow it, find all."""
    settings = {"mappedFileSizeCommitLog": str(SEGMENT_BYTES), **BY_ROOM_ONLY, **WHOLE_INDEX}
    with server_on(tmp_path, 20, settings) as disk:
        with Producer(disk.nameserver, group="filler") as producer:
            receipts = [producer.send(Message("full", b"%d" % n, keys=["k"])) for n in range(20)]
        assert found(disk.nameserver, "k") == []
        with PullConsumer(disk.nameserver, group="reader") as reader:
            queue = receipts[0].queue
            pulled = reader.pull(queue, receipts[0].queue_offset)
            assert pulled.messages[0].body == b"0"
        pauses = "indexing messages pauses: No space left on device"
        wait_until(lambda: pauses in disk.log.read_text(), SECONDS_MAX, f"{pauses!r} in the log")
        assert not list(disk.inside.glob("**/index/*"))

        disk.grow_to(80)
        wanted = [b"%d" % n for n in range(20)]
        wait_until(lambda: found(disk.nameserver, "k") == wanted, SECONDS_MAX, "the messages to be found")
        (path,) = disk.inside.glob("**/index/*")
        assert path.stat().st_size == 420_000_040
