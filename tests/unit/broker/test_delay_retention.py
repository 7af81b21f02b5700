"""How long a message that waits stays in the log."""

import os
from pathlib import Path

from bolide.broker.handlers.cleaning import Cleaning
from tests.unit.broker.stage import fill
from tests.unit.broker.test_delay import SECOND_MS, Scene, play


def test_a_segment_in_which_a_message_waits_does_not_go_for_its_age(tmp_path: Path) -> None:
    """The original deletes it, and the message never comes."""
    settings = {
        "messageDelayLevel": "10d",
        "fileReservedTime": "24",
        "deleteWhen": ";".join(f"{hour:02}" for hour in range(24)),
        "diskSpaceCleanForciblyRatio": "85",
        "cleanFileForciblyEnable": "false",
        "mappedFileSizeCommitLog": "16384",
        "deleteCommitLogFilesInterval": "0",
    }

    async def act(scene: Scene) -> None:
        cleaner = scene.broker.part(Cleaning).cleaner
        await fill(scene.wire, 100, body=bytes(1000))
        await scene.send(b"waits", 1, 777)
        await fill(scene.wire, 100, body=bytes(1000))
        (waits_at, _, _) = scene.entry(1)
        for _ in range(5 * 24):
            scene.live(3600 * SECOND_MS)
            cleaner.look()
        for path in (tmp_path / "commitlog").iterdir():
            os.utime(path, (1, 1))
        scene.broker.state.store.sync_now()
        while await cleaner.clean():
            pass
        start = scene.broker.state.store.log.start
        assert 0 < start <= waits_at < start + 16384
        for _ in range(5 * 24):
            scene.live(3600 * SECOND_MS)
            cleaner.look()
        assert scene.deliveries.places() == {1: (1, 1)}
        while await cleaner.clean():
            pass
        assert scene.broker.state.store.log.start > waits_at

    play(tmp_path, act, settings)
