"""The cleaner on a real store: hours, ages, clocks that step and files that cannot be deleted (RT-01 to RT-03)."""

import asyncio
import logging
import os
from pathlib import Path

import pytest

from bolide.broker.cleaner import local_hour
from bolide.broker.handlers.cleaning import retention_state
from bolide.store import cleaning
from bolide.store.retention import HOUR_MS, MANUAL_RUNS
from bolide.store.store import MessageStore
from tests.unit.broker.clean_stage import DAY_MS, Scene, play, segments_in
from tests.unit.net.stage import eventually
from tests.unit.net.turns import counted_by_turn
from tests.unit.store.stage import SEGMENT_BYTES, bodies, message, put, put_many

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


def test_no_turn_of_the_loop_looks_at_more_than_a_slice_of_the_queues(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        for number in range(300):
            put(scene.store, message("T", b"x" * 100, queue_id=number))
        scene.fill()
        scene.live(4 * DAY_MS)
        scene.hour = 4
        with counted_by_turn(cleaning, "_expire") as looks:
            await scene.cleaner.clean()
        assert looks.total >= 300
        assert looks.most <= cleaning.SLICE_QUEUES

    play(tmp_path, act)


def state_of(scene: Scene) -> dict[str, str]:
    return retention_state(scene.cleaner.figures())


def test_the_state_says_what_an_operator_looks_for(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        assert state_of(scene)["earliestMessageTimeStamp"] == "-1"
        scene.fill(3)
        state = state_of(scene)
        assert state["earliestMessageTimeStamp"] == str(scene.clock.wall_ms - 2000)
        assert state[f"commitLogDiskRatio_{tmp_path / 'commitlog'}"] == "0.1000"
        assert "putMessageRefusal" not in state
        scene.disk.others = 0.93
        scene.cleaner.look()
        assert "93.0% full" in state_of(scene)["putMessageRefusal"]

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
