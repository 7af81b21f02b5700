"""The cleaner on a real store: hours, ratios, a full disk and files that cannot be deleted (RT-01 to RT-03)."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from bolide.broker.cleaner import Cleaner, local_hour
from bolide.broker.config import BrokerConfig
from bolide.model.errors import ServiceUnavailable
from bolide.store.disk_os import OsDisk
from bolide.store.retention import HOUR_MS, MANUAL_RUNS
from bolide.store.store import MessageStore
from tests.unit.net.stage import eventually
from tests.unit.store.stage import SEGMENT_BYTES, bodies, make_durable, message, opened, put, put_many

DAY_MS = 24 * HOUR_MS
FAST = {"deleteCommitLogFilesInterval": "0", "deleteConsumeQueueFilesInterval": "0"}


class TwoClocks:
    """A wall clock that can be stepped, and a monotonic one that cannot."""

    def __init__(self) -> None:
        self.wall_ms = 1_700_000_000_000
        self.mono_ms = 5_000

    def now_ms(self) -> int:
        return self.wall_ms

    def monotonic_ms(self) -> int:
        return self.mono_ms

    def live(self, ms: int) -> None:
        self.wall_ms += ms
        self.mono_ms += ms


class SmallDisk(OsDisk):
    """A disk whose fullness a test sets: so much without the log, and so much for each of its segments."""

    def __init__(self) -> None:
        self.others = 0.10
        self.each_segment = 0.0
        self.stuck = False
        self.root: Path | None = None

    def used_ratio(self, path: str) -> float:
        assert self.root is not None
        return self.others + self.each_segment * len(segments_in(self.root))

    def delete(self, path: str) -> None:
        if self.stuck:
            raise PermissionError(1, "Operation not permitted", path)
        super().delete(path)


class Scene:
    """A store with eight segments or more, and the cleaner under test."""

    def __init__(self, root: Path, settings: Mapping[str, str]) -> None:
        self.root = root
        self.clock, self.disk = TwoClocks(), SmallDisk()
        self.disk.root = root
        self.store = opened(root, clock=self.clock, disk=self.disk)  # type: ignore[arg-type]
        self.config = BrokerConfig.from_settings({**FAST, **settings})
        self.hour = 12
        self.checkpoints = 0
        self.cleaner = self.new_cleaner()

    def new_cleaner(self) -> Cleaner:
        return Cleaner(
            self.store,
            self.disk,
            str(self.root),
            lambda: self.config,
            self.clock,
            self.checkpoint,
            lambda _: self.hour,
        )

    async def checkpoint(self) -> None:
        self.checkpoints += 1
        make_durable(self.store)

    def fill(self, count: int = 200, every_ms: int = 1000) -> None:
        for number in range(count):
            self.clock.live(every_ms)
            put(self.store, message(body=b"%05d" % number))
        make_durable(self.store)

    def live(self, ms: int) -> None:
        """Time passes, and the cleaner sees it pass."""
        for _ in range(ms // HOUR_MS):
            self.clock.live(HOUR_MS)
            self.cleaner.look()


def play(root: Path, act: Callable[[Scene], Awaitable[None]], settings: Mapping[str, str] = {}) -> None:
    async def main() -> None:
        scene = Scene(root, settings)
        try:
            await act(scene)
        finally:
            scene.cleaner.close()
            scene.store.close()

    asyncio.run(main())


def segments_in(root: Path) -> list[int]:
    return sorted(int(path.name) for path in (root / "commitlog").iterdir())


# ---- the hour, the operator, the age ---------------------------------------------------------------------------


def test_old_segments_go_in_the_hour_of_delete_when_and_in_no_other(tmp_path: Path) -> None:
    """RT-01."""

    async def act(scene: Scene) -> None:
        scene.fill()
        newest = segments_in(tmp_path)[-1]
        scene.live(4 * DAY_MS)
        for scene.hour in (0, 3, 5, 23):
            assert await scene.cleaner.clean() == 0
        scene.hour = 4
        assert await scene.cleaner.clean() == len(range(0, newest, SEGMENT_BYTES))
        assert segments_in(tmp_path) == [newest]
        assert scene.store.log.start == newest
        start, end = scene.store.reader.queue_range("T", 0)
        assert bodies(scene.store) == [b"%05d" % number for number in range(start, end)]
        assert await scene.cleaner.clean() == 0  # the newest never

    play(tmp_path, act)


def test_young_segments_stay_in_that_hour_too(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        scene.fill(100)
        scene.live(2 * DAY_MS)
        between = int(scene.store.log.end) // SEGMENT_BYTES * SEGMENT_BYTES
        scene.fill(100)
        scene.live(DAY_MS)
        scene.hour = 4
        assert await scene.cleaner.clean() > 0
        assert segments_in(tmp_path)[0] == between

    play(tmp_path, act)


def test_a_disk_above_its_ratio_deletes_old_segments_at_any_hour(tmp_path: Path) -> None:
    """RT-02."""

    async def act(scene: Scene) -> None:
        scene.fill()
        scene.disk.others = 0.76
        assert await scene.cleaner.clean() == 0  # young
        scene.live(3 * DAY_MS + HOUR_MS)
        scene.disk.others = 0.75
        assert await scene.cleaner.clean() == 0
        scene.disk.others = 0.76
        assert await scene.cleaner.clean() > 0

    play(tmp_path, act)


def test_a_clean_asks_for_a_checkpoint_when_it_needs_one_and_only_then(tmp_path: Path) -> None:
    """Queues must know their numbers on disk before the records go that would tell them."""

    async def act(scene: Scene) -> None:
        put_many(scene.store, 200)
        scene.live(4 * DAY_MS)
        scene.hour = 4
        assert await scene.cleaner.clean() == 0
        assert scene.checkpoints == 0  # nothing is durable: a checkpoint would not help
        sync_log(scene.store)
        assert await scene.cleaner.clean() > 0
        assert scene.checkpoints == 1
        assert await scene.cleaner.clean() == 0
        assert scene.checkpoints == 1

    play(tmp_path, act)


def sync_log(store: MessageStore) -> None:
    point = store.durability.next_point()
    assert point is not None
    point.run()
    store.durability.reached(point)


def test_an_operator_s_word_is_good_for_twenty_runs(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        scene.fill()
        scene.live(4 * DAY_MS)
        segments = len(segments_in(tmp_path))
        scene.cleaner.ask()
        assert await scene.cleaner.clean() == 1  # deleteFileBatchMax
        for _ in range(MANUAL_RUNS - 1):
            await scene.cleaner.clean()
        assert len(segments_in(tmp_path)) == max(1, segments - MANUAL_RUNS)
        scene.fill()
        scene.live(4 * DAY_MS)
        assert await scene.cleaner.clean() == 0

    play(tmp_path, act, {"deleteFileBatchMax": "1"})


def test_an_operator_s_word_does_not_make_messages_older(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        scene.fill()
        scene.cleaner.ask()
        assert await scene.cleaner.clean() == 0

    play(tmp_path, act)


def test_a_clock_that_steps_deletes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def act(scene: Scene) -> None:
        scene.fill()
        scene.hour = 4
        scene.clock.wall_ms += 5 * 365 * DAY_MS
        with caplog.at_level(logging.WARNING):
            for _ in range(3):
                assert await scene.cleaner.clean() == 0
        assert caplog.text.count("the clock is ahead of the time that has passed") == 1
        scene.live(3 * DAY_MS - HOUR_MS)
        assert await scene.cleaner.clean() == 0
        scene.live(2 * HOUR_MS)  # by now they are old indeed
        assert await scene.cleaner.clean() > 0

    play(tmp_path, act)


def test_a_clock_that_stepped_while_the_broker_was_down_deletes_nothing(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        scene.fill()
        scene.hour = 4
        scene.cleaner.close()
        scene.clock.wall_ms += 365 * DAY_MS
        scene.cleaner = scene.new_cleaner()
        assert await scene.cleaner.clean() == 0
        scene.live(3 * DAY_MS + HOUR_MS)
        assert await scene.cleaner.clean() > 0

    play(tmp_path, act)


def test_a_shorter_retention_set_while_running_counts_at_once(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        scene.fill()
        scene.hour = 4
        scene.live(3 * HOUR_MS)
        assert await scene.cleaner.clean() == 0
        scene.config = scene.config.changed({"fileReservedTime": "2"})
        assert await scene.cleaner.clean() > 0

    play(tmp_path, act)


# ---- the disk --------------------------------------------------------------------------------------------------


def test_forced_cleaning_deletes_young_messages_but_not_one_segment_more_than_needed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """RT-02: 0.86 deletes without regard to age."""

    async def act(scene: Scene) -> None:
        scene.fill()
        segments = len(segments_in(tmp_path))
        scene.disk.each_segment = 0.01
        scene.disk.others = 0.869 - 0.01 * segments
        with caplog.at_level(logging.INFO):
            assert await scene.cleaner.clean() == 2
        assert scene.cleaner.used_ratio <= 0.85
        assert len(segments_in(tmp_path)) == segments - 2
        assert "fuller than diskSpaceCleanForciblyRatio; messages that nobody had consumed" in caplog.text
        assert await scene.cleaner.clean() == 0

    play(tmp_path, act)


def test_forced_cleaning_can_be_switched_off(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        scene.fill()
        scene.disk.others = 0.95
        assert await scene.cleaner.clean() == 0

    play(tmp_path, act, {"cleanFileForciblyEnable": "false"})


def test_when_something_else_fills_the_disk_it_is_said_and_the_newest_segment_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def act(scene: Scene) -> None:
        scene.fill()
        scene.disk.others = 0.99
        while await scene.cleaner.clean():
            pass
        assert len(segments_in(tmp_path)) == 1
        assert "something else fills the disk" in caplog.text

    play(tmp_path, act)


def test_above_the_warning_level_sends_are_refused_and_reads_go_on(tmp_path: Path) -> None:
    """RT-02: 0.91 refuses."""

    async def act(scene: Scene) -> None:
        scene.fill(20)
        scene.disk.others = 0.91
        scene.cleaner.look()
        with pytest.raises(ServiceUnavailable, match=r"disk is 91.0% full, above diskSpaceWarningLevelRatio"):
            scene.store.append([message()])
        assert len(bodies(scene.store)) == 20
        scene.disk.others = 0.90
        scene.cleaner.look()
        assert put_many(scene.store, 1)[0].queue_offset == 20

    play(tmp_path, act)


def test_a_broker_that_starts_on_a_full_disk_refuses_from_the_beginning(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        scene.cleaner.close()
        scene.disk.others = 0.91
        scene.cleaner = scene.new_cleaner()
        with pytest.raises(ServiceUnavailable):
            scene.store.append([message()])
        scene.disk.others = 0.5
        tasks = [asyncio.create_task(work) for work in scene.cleaner.work()]
        await eventually(lambda: scene.store.disk_refusal is None)  # by itself
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    play(tmp_path, act)


def test_it_warns_before_it_stops_and_not_all_the_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def act(scene: Scene) -> None:
        def warnings_at(ratio: float) -> int:
            before = caplog.text.count(
                "free some space, give the file system more, or lower fileReservedTime"
            )
            scene.disk.others = ratio
            scene.cleaner.look()
            return caplog.text.count("or lower fileReservedTime") - before

        assert [warnings_at(ratio) for ratio in (0.5, 0.76, 0.77, 0.86, 0.87)] == [0, 1, 0, 1, 0]
        scene.clock.live(600_000)
        assert [warnings_at(ratio) for ratio in (0.87, 0.87, 0.5, 0.76)] == [1, 0, 0, 1]

    play(tmp_path, act)


def test_a_disk_that_does_not_tell_changes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def act(scene: Scene) -> None:
        scene.disk.others = 0.95
        scene.cleaner.look()

        def fails(path: str) -> float:
            raise OSError(5, "Input/output error")

        scene.disk.used_ratio = fails  # type: ignore[method-assign]
        scene.cleaner.look()
        assert scene.store.disk_refusal is not None
        assert "cannot tell how full the disk" in caplog.text

    play(tmp_path, act)


# ---- files -----------------------------------------------------------------------------------------------------


def test_a_file_that_cannot_be_deleted_is_tried_again_later_and_nothing_behind_it_goes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def act(scene: Scene) -> None:
        scene.fill()
        scene.live(4 * DAY_MS)
        scene.hour, scene.disk.stuck = 4, True
        before = segments_in(tmp_path)
        assert await scene.cleaner.clean() == 0
        assert "cannot delete" in caplog.text
        scene.disk.stuck = False
        scene.clock.live(119_000)
        assert await scene.cleaner.clean() == 0
        assert segments_in(tmp_path) == before
        scene.clock.live(1_000)
        assert await scene.cleaner.clean() > 0

    play(tmp_path, act)


def test_queue_files_follow_the_log_in_the_background(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        scene.fill()
        scene.live(4 * DAY_MS)
        scene.hour = 4
        folder = tmp_path / "consumequeue" / "T" / "0"
        tasks = [asyncio.create_task(work) for work in scene.cleaner.work()]
        assert len(list(folder.iterdir())) == 20
        await scene.cleaner.clean()
        start, _ = scene.store.reader.queue_range("T", 0)
        await eventually(lambda: sorted(os.listdir(folder))[0] == f"{start * 20 // 200 * 200:020d}")
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    play(tmp_path, act)


def test_the_first_run_comes_after_six_intervals_and_then_one_by_one(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        scene.fill()
        scene.live(4 * DAY_MS)
        scene.hour = 4
        loop = asyncio.get_running_loop()
        began = loop.time()
        tasks = [asyncio.create_task(work) for work in scene.cleaner.work()]
        before = len(segments_in(tmp_path))
        await eventually(lambda: len(segments_in(tmp_path)) <= before - 2)
        assert loop.time() - began >= 7 * 0.05
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    play(tmp_path, act, {"cleanResourceInterval": "50", "deleteFileBatchMax": "1"})


def test_segments_are_deleted_with_pauses(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        scene.fill()
        scene.live(4 * DAY_MS)
        scene.hour = 4
        began = asyncio.get_running_loop().time()
        count = await scene.cleaner.clean()
        assert asyncio.get_running_loop().time() - began >= count * 0.02

    play(tmp_path, act, {"deleteCommitLogFilesInterval": "20"})


def test_the_loop_serves_others_while_queues_are_brought_in_step(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        put(scene.store, *(message("T", b"x" * 100, queue_id=number) for number in range(300)))
        scene.fill()
        scene.live(4 * DAY_MS)
        scene.hour = 4
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)  # noqa: TID251

        task = asyncio.create_task(others())
        await scene.cleaner.clean()
        task.cancel()
        assert turns > 20

    play(tmp_path, act)


def test_the_state_says_what_an_operator_looks_for(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        assert scene.cleaner.runtime()["earliestMessageTimeStamp"] == "-1"
        scene.fill(3)
        state = scene.cleaner.runtime()
        assert state["earliestMessageTimeStamp"] == str(scene.clock.wall_ms - 2000)
        assert state[f"commitLogDiskRatio_{tmp_path / 'commitlog'}"] == "0.1000"
        assert "putMessageRefusal" not in state
        scene.disk.others = 0.93
        scene.cleaner.look()
        assert "93.0% full" in scene.cleaner.runtime()["putMessageRefusal"]

    play(tmp_path, act)


def test_the_hour_is_local(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    noon_utc_ms = 1_699_963_200_000
    for zone, hour in (("UTC", 12), ("Asia/Shanghai", 20), ("America/New_York", 7)):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        assert local_hour(noon_utc_ms) == hour
    monkeypatch.undo()
    time.tzset()


def test_cleaning_a_store_that_is_in_use_loses_nothing_of_what_is_left(tmp_path: Path) -> None:
    """Goal: readers and writers never notice.  Method: append and read in between every step of a forced clean."""

    async def act(scene: Scene) -> None:
        scene.fill()
        sent = [b"%05d" % number for number in range(200)]
        scene.disk.others = 0.86
        scene.config = scene.config.changed({"deleteFileBatchMax": "3"})

        async def use(store: MessageStore) -> None:
            number = 1000
            while True:
                put(store, message(body=b"%05d" % number))
                sent.append(b"%05d" % number)
                number += 1
                start, _ = store.reader.queue_range("T", 0)
                assert bodies(store) == sent[start:]
                await asyncio.sleep(0)  # noqa: TID251

        task = asyncio.create_task(use(scene.store))
        assert await scene.cleaner.clean() == 3
        assert not task.done()
        task.cancel()
        start, _ = scene.store.reader.queue_range("T", 0)
        assert bodies(scene.store) == sent[start:]

    play(tmp_path, act)
