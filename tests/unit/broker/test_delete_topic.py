"""A topic is deleted: what must be on disk before that is answered, and what a full disk does to it."""

import asyncio
import errno
import json
from pathlib import Path

import pytest

from bolide.store.disk_os import OsDisk
from bolide.wire.command import Command
from tests.unit.broker.stage import fill, send_request, serving
from tests.unit.net.stage import eventually

CREATE = {
    "topic": "T",
    "defaultTopic": "TBW102",
    "readQueueNums": "4",
    "writeQueueNums": "4",
    "perm": "6",
    "topicFilterType": "SINGLE_TAG",
    "topicSysFlag": "0",
    "order": "false",
}
DELETE = Command(215, {"topic": "T"}, opaque=9)


class NoRoomForFolders(OsDisk):
    full = False

    def make_dirs(self, path: str) -> None:
        if self.full and path.endswith("deleted"):
            raise OSError(errno.ENOSPC, "No space left on device")
        super().make_dirs(path)


def test_no_offsets_of_a_deleted_topic_are_left_on_disk_when_that_is_answered(tmp_path: Path) -> None:
    """Or a kill would bring them back, and groups would skip the first messages of a topic made again."""

    async def main() -> None:
        async with serving(tmp_path) as (broker, wire):
            await fill(wire, 3)
            broker.state.offsets.commit("g", "T", 0, 3, end=3)
            await broker.state.files.written(broker.state.offsets)
            file = tmp_path / "config" / "consumerOffset.json"
            assert "T@g" in file.read_text()
            assert (await wire.ask(DELETE)).code == 0
            assert "T@g" not in file.read_text()

    asyncio.run(main())


def test_a_topic_that_cannot_be_deleted_for_lack_of_room_stays_and_so_does_the_broker(tmp_path: Path) -> None:
    async def main() -> None:
        disk = NoRoomForFolders()
        async with serving(tmp_path, disk=disk) as (broker, wire):
            await fill(wire, 3)
            queue = broker.state.store.queues.get("T", 0)
            await eventually(lambda: queue.tail.start == queue.end)
            disk.full = True
            answer = await wire.ask(DELETE)
            assert answer.code == 14
            assert "No space left" in (answer.remark or "")
            sent = await wire.ask(send_request())
            assert (sent.code, sent.fields["queueOffset"]) == (0, "3")
            assert broker.state.store.durability.failure is None
            disk.full = False
            assert (await wire.ask(DELETE)).code == 0
            assert not (tmp_path / "consumequeue" / "T").exists()

    asyncio.run(main())


@pytest.mark.parametrize("by_hand", [False, True])
def test_no_message_is_acknowledged_before_topics_json_holds_its_topic(tmp_path: Path, by_hand: bool) -> None:
    """Method: a topic is made, on demand or by request 17, deleted, and made again, with sends all the time; whenever
    one is answered the file is looked at."""
    path = tmp_path / "config" / "topics.json"

    def is_known() -> bool:
        return "T" in json.loads(path.read_text())["topicConfigTable"]

    async def main() -> None:
        async with serving(tmp_path) as (broker, wire):
            for number in range(20):
                if by_hand:  # both in one go: the send does not wait for the answer to the other
                    wire.send(Command(17, CREATE, opaque=100 + number), send_request(opaque=number))
                else:
                    wire.send(send_request(opaque=number))
                for _ in range(2 if by_hand else 1):
                    answer = await wire.next()
                    assert answer.code == 0
                    assert is_known()
                broker.state.topics.delete("T")

    asyncio.run(main())
