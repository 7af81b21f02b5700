"""A delayed message is in one place: it waits, or it has come.  What a kill and power loss leave of that."""

import asyncio
import shutil
from collections import Counter
from pathlib import Path

import pytest

from bolide.broker.delivered import STEP_ENTRIES, first_undelivered
from bolide.broker.handlers.delay import Delays
from bolide.model.names import SCHEDULE_TOPIC
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from tests.unit.broker.clean_stage import TwoClocks
from tests.unit.broker.stage import copy_if_there
from tests.unit.broker.test_delay import SECOND_MS, Scene, play, told
from tests.unit.net.stage import eventually

NEVER_SYNCED = {
    "flushIntervalCommitLog": "600000",
    "flushCommitLogLeastPages": "1000000",
    "flushCommitLogThoroughInterval": "3600000",
}


def image_of(root: Path) -> Path:
    """What a kill at this moment would leave."""
    image = root.parent / f"{root.name}-killed"
    shutil.copytree(root, image, copy_function=copy_if_there)
    return image


@pytest.mark.parametrize("queues", [1, 3])
def test_after_a_kill_each_message_has_come_once(tmp_path: Path, queues: int) -> None:
    """The file says that nothing was delivered; the log knows better.  Others have sent there meanwhile."""
    root, clock = tmp_path / "store", TwoClocks()
    images: list[Path] = []

    async def life(scene: Scene) -> None:
        for number in range(12):
            await scene.send(b"%d" % number, 1 + number % 2, number, queue_id=number % queues)
        scene.live(SECOND_MS)
        await scene.send(b"between", 0, 50)
        scene.live(SECOND_MS)
        await scene.send(b"still waits", 1, 60)
        images.append(image_of(root))

    async def afterwards(scene: Scene) -> None:
        scene.live(3 * SECOND_MS)
        bodies = [body for queue in range(queues) for body in await scene.arrived("T", queue)]
        expected = [b"between", b"still waits", *(b"%d" % number for number in range(12))]
        assert Counter(bodies) == Counter(expected)

    play(root, life, {"messageDelayLevel": "1s 4s"}, clock)
    assert not (images[0] / "config" / "delayOffset.json").exists()
    play(images[0], afterwards, {"messageDelayLevel": "1s 4s"}, clock)


def test_what_came_while_the_clock_was_set_back_does_not_come_again_after_a_kill(tmp_path: Path) -> None:
    """It came after its delay, and before the time in its entry."""
    root, clock = tmp_path / "store", TwoClocks()
    images: list[Path] = []

    async def life(scene: Scene) -> None:
        await scene.send(b"before", 1, 1)
        scene.live(SECOND_MS)
        clock.wall_ms -= 3600 * SECOND_MS
        await scene.send(b"came", 1, 2)
        scene.live(0)
        scene.live(SECOND_MS)
        assert await scene.arrived() == [b"before", b"came"]
        await scene.send(b"still waits", 1, 3)
        images.append(image_of(root))

    async def afterwards(scene: Scene) -> None:
        scene.live(0)
        scene.live(SECOND_MS)
        assert await scene.arrived() == [b"before", b"came"]
        scene.live(1)
        assert await scene.arrived() == [b"before", b"came", b"still waits"]

    play(root, life, clock=clock)
    play(images[0], afterwards, clock=clock)


@pytest.mark.parametrize("sealed", ["true", "false"])
def test_a_kill_in_the_middle_of_a_level_goes_on_where_it_was(tmp_path: Path, sealed: str) -> None:
    """Equal messages are told apart by their order."""
    root, clock = tmp_path / "store", TwoClocks()
    images: list[Path] = []

    async def life(scene: Scene) -> None:
        for _ in range(3):
            await scene.send(b"equal", 1, 7)
        scene.live(500)
        for _ in range(2):
            await scene.send(b"equal", 1, 7)
        scene.live(500)
        images.append(image_of(root))

    async def afterwards(scene: Scene) -> None:
        assert scene.deliveries.places() == {1: (3, 5)}
        scene.live(500)
        assert await scene.arrived() == [b"equal"] * 5

    play(root, life, {"enabledAppendPropCRC": sealed}, clock)
    play(images[0], afterwards, clock=clock)


def test_what_was_meant_for_a_queue_that_is_gone_comes_once_in_one_that_can_be_read(tmp_path: Path) -> None:
    """The topic has fewer queues by now: some came before that, some behind it, and then the broker is killed."""
    root, clock = tmp_path / "store", TwoClocks()
    images: list[Path] = []

    async def change_queues(scene: Scene, queues: int) -> None:
        fields = {"topic": "T", "readQueueNums": str(queues), "writeQueueNums": str(queues), "perm": "6"}
        fields |= {"topicFilterType": "SINGLE_TAG", "order": "false", "defaultTopic": "TBW102"}
        answer = await scene.wire.ask(Command(RequestCode.UPDATE_AND_CREATE_TOPIC, fields))
        assert answer.code == 0, answer.remark

    async def life(scene: Scene) -> None:
        await change_queues(scene, 4)
        for number in range(2):
            await scene.send(b"%d" % number, 1, number, queue_id=3)
        scene.live(SECOND_MS)
        for number in range(2, 5):
            await scene.send(b"%d" % number, 1, number, queue_id=3)
        await change_queues(scene, 2)
        scene.live(SECOND_MS)
        assert await scene.arrived("T", 1) == [b"2", b"3", b"4"]
        await scene.send(b"still waits", 1, 5, queue_id=1)
        images.append(image_of(root))

    async def afterwards(scene: Scene) -> None:
        assert scene.deliveries.places() == {1: (5, 6)}
        scene.live(SECOND_MS)
        assert await scene.arrived("T", 1) == [b"2", b"3", b"4", b"still waits"]
        await change_queues(scene, 4)
        assert await scene.arrived("T", 3) == [b"0", b"1"]

    play(root, life, clock=clock)
    assert not (images[0] / "config" / "delayOffset.json").exists()
    play(images[0], afterwards, clock=clock)


def test_a_topic_that_was_deleted_since_makes_nothing_come_twice(tmp_path: Path) -> None:
    root, clock = tmp_path / "store", TwoClocks()
    images: list[Path] = []

    async def life(scene: Scene) -> None:
        for number, topic in enumerate(("Gone", "T", "Gone", "T")):
            await scene.send(b"%d" % number, 1, number, topic=topic)
        scene.live(SECOND_MS)
        await scene.wire.ask(Command(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "Gone"}))
        images.append(image_of(root))

    async def afterwards(scene: Scene) -> None:
        assert scene.deliveries.places() == {1: (4, 4)}
        assert await scene.arrived() == [b"1", b"3"]

    play(root, life, clock=clock)
    play(images[0], afterwards, clock=clock)


def test_messages_of_a_deleted_topic_are_not_looked_for_in_the_one_made_since(tmp_path: Path) -> None:
    """Each would be compared with all that have come there, and many such keep a start busy for minutes."""
    turn = STEP_ENTRIES // 8

    async def act(scene: Scene) -> None:
        for number in range(3 * turn):
            await scene.send(b"waits", 1, number, topic="Gone")
        await scene.wire.ask(Command(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "Gone"}))
        scene.clock.live(SECOND_MS)
        await scene.send(b"new", 0, topic="Gone")
        store = scene.broker.state.store
        queue = store.queues.find(SCHEDULE_TOPIC, 0)
        assert queue is not None
        steps = list(first_undelivered(store, scene.broker.state.topics, queue, 0, scene.clock.now_ms()))
        assert len(steps) == 3  # a search is one at least

    play(tmp_path, act)


def test_after_a_long_rest_what_was_due_meanwhile_comes_once(tmp_path: Path) -> None:
    """DE-01: across restarts."""
    root, clock = tmp_path / "store", TwoClocks()
    images: list[Path] = []

    async def life(scene: Scene) -> None:
        for number in range(40):
            await scene.send(b"%d" % number, 3, number)
        images.append(image_of(root))

    async def afterwards(scene: Scene) -> None:
        scene.deliver()
        got = [*await scene.arrived()]
        assert got == [b"%d" % number for number in range(32)]

    play(root, life, clock=clock)
    clock.live(3600 * SECOND_MS)
    play(images[0], afterwards, clock=clock)
    play(images[0], afterwards, clock=clock)
    assert told(images[0])["offsetTable"] == {"3": 40}


def test_the_file_says_no_more_than_what_is_durable(tmp_path: Path) -> None:
    """Power loss may take what was delivered and not synced; it would be lost if the file said that it was."""

    async def life(scene: Scene) -> None:
        scene.broker.state.store.sync_now()
        await scene.send(b"x", 1)
        scene.broker.state.store.sync_now()
        scene.live(SECOND_MS)
        assert await scene.arrived() == [b"x"]
        table = scene.broker.part(Delays).table
        scene.deliveries.tell_table()
        assert not table.get(1)
        scene.broker.state.store.sync_now()
        scene.deliveries.tell_table()
        assert table.get(1) == 1

    play(tmp_path, life, NEVER_SYNCED)


def test_the_file_is_written_while_the_broker_runs(tmp_path: Path) -> None:
    async def life(scene: Scene) -> None:
        await scene.send(b"x", 1)
        scene.live(SECOND_MS)
        scene.broker.state.store.sync_now()
        await eventually((tmp_path / "config" / "delayOffset.json").exists)
        assert told(tmp_path)["offsetTable"] == {"1": 1}

    play(tmp_path, life, {"flushDelayOffsetInterval": "10"})


def test_a_log_that_takes_nothing_loses_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def life(scene: Scene) -> None:
        await scene.send(b"x", 1)
        await scene.send(b"y", 1, 2)
        scene.broker.state.store.disk_refusal = "the disk is too full"
        scene.live(SECOND_MS)
        assert "delayed messages cannot be delivered" in caplog.text
        assert scene.deliveries.places() == {1: (0, 2)}
        scene.broker.state.store.disk_refusal = None
        async with asyncio.timeout(10):
            while await scene.arrived() != [b"x", b"y"]:
                scene.deliver()

    play(tmp_path, life)


def test_what_is_larger_than_a_segment_together_is_appended_one_by_one(tmp_path: Path) -> None:
    async def life(scene: Scene) -> None:
        for number in range(6):
            await scene.send(b"x" * 1200, 1, number)
        scene.live(SECOND_MS)
        assert scene.broker.state.store.queues.end_of("T", 0) == 6

    play(tmp_path, life, {"mappedFileSizeCommitLog": "4096"})
