"""TopicRemover: the loop only moves a folder, and what was deleted goes for good."""

import asyncio
import errno
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from bolide.broker.table_files import TableFiles
from bolide.broker.topic_remover import TopicRemover
from bolide.net.surroundings import Surroundings
from bolide.store.store import MessageStore
from bolide.store.tables import OffsetTable
from bolide.store.trash import NAMES_PER_PIECE
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from tests.unit.broker.stage import send_request, serving
from tests.unit.net.stage import DEADLINE_S, eventually
from tests.unit.store.stage import WatchedDisk, bodies, killed, make_durable, message, opened, put, put_many


class FolderDisk(WatchedDisk):
    """Syncing the folder of all queues fails as a test says."""

    error = 0

    def sync_dir(self, path: str) -> None:
        if self.error and path.endswith("consumequeue"):
            raise OSError(self.error, os.strerror(self.error), path)
        super().sync_dir(path)


class Scene:
    def __init__(self, root: Path) -> None:
        self.root, self.disk = root, FolderDisk()
        self.store: MessageStore = opened(root, disk=self.disk)
        self.failures = 0
        surroundings = Surroundings()
        self.files = TableFiles(self.disk, str(root), surroundings.clock, surroundings.threads("tables"))
        self.offsets = self.files.open(OffsetTable, "consumerOffset.json", 1)
        self.remover = TopicRemover(self.store, self.offsets, self.files, surroundings, self._failed)

    def _failed(self) -> None:
        self.failures += 1

    def trash(self) -> list[str]:
        return self.disk.list(str(self.root / "deleted"))


def play(root: Path, act: Callable[[Scene], Awaitable[None]]) -> None:
    async def main() -> None:
        scene = Scene(root)
        work = [scene.remover.run(), *(run for _, run in scene.files.work())]
        tasks = list(map(asyncio.create_task, work))
        try:
            await act(scene)
        finally:
            for task in tasks:
                task.cancel()
            scene.remover.close()
            scene.files.close()

    asyncio.run(main())


def test_deleted_topics_leave_no_files(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        for topic in ("A", "B", "C"):
            put_many(scene.store, 30, topic)
        await asyncio.gather(scene.remover.delete("A"), scene.remover.delete("B"))
        assert scene.store.queues.trash.is_settled
        await eventually(lambda: not scene.trash())
        assert os.listdir(tmp_path / "consumequeue") == ["C"]

    play(tmp_path, act)


WIDE = 8 * NAMES_PER_PIECE


class OnFirst:
    """Has something done when the first folder of a deleted topic's queue has gone, and counts those that go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.gone = 0
        self.then: Callable[[], object] = lambda: None
        self._rmdir = os.rmdir
        monkeypatch.setattr(os, "rmdir", self._count)

    def _count(self, *args: Any, **options: Any) -> None:
        self._rmdir(*args, **options)
        self.gone += 1
        if self.gone == 1:
            self.then()


def fill_wide(store: MessageStore) -> None:
    for queue_id in range(WIDE):
        put(store, message(topic="Wide", queue_id=queue_id))
    make_durable(store)


def test_a_deletion_does_not_wait_until_a_wide_topic_before_it_is_cleared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = OnFirst(monkeypatch)

    async def act(scene: Scene) -> None:
        loop = asyncio.get_running_loop()
        fill_wide(scene.store)
        put_many(scene.store, 3, "Small")
        asked: asyncio.Future[asyncio.Future[None]] = loop.create_future()

        async def ask() -> None:
            asked.set_result(scene.remover.delete("Small"))

        # The piece under way ends when somebody has asked.
        folders.then = lambda: asyncio.run_coroutine_threadsafe(ask(), loop).result(DEADLINE_S)
        await scene.remover.delete("Wide")
        await (await asked)
        assert folders.gone <= 3 * NAMES_PER_PIECE
        await eventually(lambda: not scene.trash())
        assert folders.gone >= WIDE

    play(tmp_path, act)


def test_a_stop_does_not_wait_until_a_wide_topic_is_cleared_and_the_next_start_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = OnFirst(monkeypatch)
    stores: list[MessageStore] = []

    async def stop_early(scene: Scene) -> None:
        loop = asyncio.get_running_loop()
        fill_wide(scene.store)
        stores.append(scene.store)
        stopping = asyncio.Event()
        folders.then = lambda: loop.call_soon_threadsafe(stopping.set)
        await scene.remover.delete("Wide")
        await stopping.wait()

    async def wait(scene: Scene) -> None:
        await eventually(lambda: not scene.trash())

    play(tmp_path, stop_early)
    assert folders.gone <= 3 * NAMES_PER_PIECE
    killed(stores[0])
    play(tmp_path, wait)
    assert folders.gone >= WIDE


def test_what_a_killed_process_has_left_goes_after_the_next_start(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 30)
    store.delete_topic("T")
    killed(store)
    assert os.listdir(tmp_path / "deleted") == ["1"]

    async def act(scene: Scene) -> None:
        await eventually(lambda: not scene.trash())

    play(tmp_path, act)


def test_without_descriptors_it_waits_and_with_a_failing_disk_the_store_takes_nothing_more(
    tmp_path: Path,
) -> None:
    async def act(scene: Scene) -> None:
        put_many(scene.store, 30)
        scene.disk.error = errno.EMFILE
        gone = scene.remover.delete("T")
        await eventually(lambda: scene.remover._trouble is not None)
        assert not gone.done()
        scene.disk.error = 0
        await asyncio.wait_for(gone, 60)
        put_many(scene.store, 30)
        assert len(bodies(scene.store)) == 30
        scene.disk.error = errno.EIO
        gone = scene.remover.delete("T")
        await eventually(lambda: scene.failures == 1)
        assert not gone.done()
        assert scene.store.durability.failure is not None

    play(tmp_path, act)


def test_a_topic_that_a_broker_deletes_can_be_used_again_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as (_, wire):
            for round_ in range(5):
                for number in range(3):
                    answer = await wire.ask(send_request(b"x", 10 * round_ + number))
                    assert (answer.code, answer.fields["queueOffset"]) == (0, str(number))
                await eventually(
                    (tmp_path / "consumequeue" / "T").exists
                )  # entries are written a moment later
                fields = {"topic": "T"}
                answer = await wire.ask(Command(RequestCode.DELETE_TOPIC_IN_BROKER, fields=fields))
                assert answer.code == 0
            await eventually(lambda: not os.listdir(tmp_path / "deleted"))

    asyncio.run(main())
