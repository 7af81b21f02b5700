"""Delayed messages that cannot go where they were sent, and those that can after all."""

import errno
from pathlib import Path

import pytest

from bolide.model.names import SCHEDULE_TOPIC
from bolide.store.new_message import NewMessage
from bolide.store.queue_index import ConsumeQueue
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from tests.unit.broker.stage import send_request
from tests.unit.broker.test_delay import SECOND_MS, Scene, play


def test_a_topic_that_is_deleted_takes_its_waiting_messages_along_and_one_made_again_has_its_own(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def act(scene: Scene) -> None:
        scene.wire.send(send_request(b"now"))
        await scene.wire.next()
        await scene.send(b"x", 1, 2, queue_id=3)
        scene.wire.send(Command(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "T"}))
        assert (await scene.wire.next()).code == 0
        assert (await scene.send(b"made again", 1, 3, queue_id=3)).code == 0
        scene.live(SECOND_MS)
        assert await scene.arrived("T", 3) == [b"made again"]
        assert "messages of T that waited are dropped" in caplog.text

    play(tmp_path, act)


def test_so_does_a_topic_that_has_had_no_other_messages(tmp_path: Path) -> None:
    """It has no queue yet by which anybody could tell that there was one."""

    async def act(scene: Scene) -> None:
        await scene.send(b"x", 1, 2, queue_id=3)
        scene.wire.send(Command(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "T"}))
        assert (await scene.wire.next()).code == 0
        assert (await scene.send(b"made again", 1, 3, queue_id=3)).code == 0
        scene.live(SECOND_MS)
        assert await scene.arrived("T", 3) == [b"made again"]

    play(tmp_path, act)


def test_a_message_comes_though_the_table_has_forgotten_its_topic(tmp_path: Path) -> None:
    """A topic that nobody has deleted is no reason to lose what waits for it: a table may be lost, too."""

    async def act(scene: Scene) -> None:
        await scene.send(b"x", 1, 2, queue_id=3)
        scene.broker.state.topics.delete("T")
        scene.live(SECOND_MS)
        scene.wire.send(send_request(b"again", 5))
        assert (await scene.wire.next()).code == 0
        assert await scene.arrived("T", 3) == [b"x"]

    play(tmp_path, act)


@pytest.mark.parametrize(
    "real", ["", "REAL_TOPIC\x01../up\x02REAL_QID\x010\x02", "REAL_TOPIC\x01T\x02REAL_QID\x01x\x02"]
)
def test_what_cannot_go_anywhere_is_passed_over_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, real: str
) -> None:
    async def act(scene: Scene) -> None:
        await scene.send(b"x", 1, 1)
        odd = NewMessage(SCHEDULE_TOPIC, 0, b"odd", ("DELAY\x011\x02" + real).encode(), 0, 0, 0, bytes(8))
        scene.broker.state.door.append([odd])
        await scene.send(b"y", 1, 2)
        scene.live(SECOND_MS)
        assert await scene.arrived() == [b"x", b"y"]

    play(tmp_path, act)
    assert "message 1 of delay level 1 is passed over" in caplog.text


def test_what_is_due_is_not_late_because_the_queue_of_another_level_could_not_be_read(tmp_path: Path) -> None:
    """Level 1 is taken first, and its next message is due later; then level 2 fails."""

    def read(queue: ConsumeQueue, first: int, count: int) -> bytes:
        if queue.tail.key == (SCHEDULE_TOPIC, 1):
            raise OSError(errno.EMFILE, "too many open files")
        return whole(queue, first, count)

    async def act(scene: Scene) -> None:
        await scene.send(b"level 2", 2, 1)
        scene.live(4 * SECOND_MS - 1)
        await scene.send(b"due", 1, 2)
        scene.live(SECOND_MS - 2)
        await scene.send(b"later", 1, 3)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ConsumeQueue, "read", read)
            with pytest.raises(OSError, match="too many"):
                scene.live(1)
        scene.deliver()
        assert sorted(await scene.arrived()) == [b"due", b"level 2"]

    whole = ConsumeQueue.read
    play(tmp_path, act)
