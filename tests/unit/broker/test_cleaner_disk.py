"""The cleaner on a disk that fills up: warnings, forced cleaning, refusal and recovery (RT-02)."""

import asyncio
import logging
from pathlib import Path

import pytest

from bolide.model.errors import StoreUnavailable
from tests.unit.broker.clean_stage import Scene, play, segments_in
from tests.unit.net.stage import eventually
from tests.unit.store.stage import bodies, message, put_many


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
        with pytest.raises(StoreUnavailable, match=r"disk is 91.0% full, above diskSpaceWarningLevelRatio"):
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
        with pytest.raises(StoreUnavailable):
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
