"""How long a timed message that waits stays in the log."""

import os
from pathlib import Path

from bolide.broker.handlers.cleaning import Cleaning
from bolide.broker.handlers.timer import Timers
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from tests.unit.broker.stage import fill, serving
from tests.unit.broker.test_timer import HeldClock, on_loop, send, settled, timed
from tests.unit.net.stage import eventually

HOUR_MS = 3_600_000
SETTINGS = {
    "deleteWhen": ";".join(f"{hour:02}" for hour in range(24)),
    "cleanFileForciblyEnable": "false",
    "mappedFileSizeCommitLog": "16384",
    "deleteCommitLogFilesInterval": "0",
    "timerFlushIntervalMs": "10",
}


@on_loop
async def test_a_segment_in_which_a_timed_message_waits_does_not_go_for_its_age(tmp_path: Path) -> None:
    """`fileReservedTime` is lowered while it waits.  The original deletes the segment, and the message never comes."""
    clock = HeldClock()
    async with serving(tmp_path, SETTINGS, clock=clock) as (broker, wire):
        cleaner, timer, log = (
            broker.part(Cleaning).cleaner,
            broker.part(Timers).timer,
            broker.state.store.log,
        )

        async def live(hours: int) -> None:
            for _ in range(hours):
                clock.ms += HOUR_MS
                await settled(broker)
                cleaner.look()
            for path in (tmp_path / "commitlog").iterdir():
                os.utime(path, (1, 1))
            broker.state.store.sync_now()
            while await cleaner.clean():
                pass

        await fill(wire, 60, body=bytes(1000))
        await send(wire, timed(1, TIMER_DELAY_SEC=1), timed(2, TIMER_DELAY_SEC=40 * 3600))
        waits_at = int(log.end)
        await fill(wire, 60, body=bytes(1000))
        await settled(broker)
        update = Command(RequestCode.UPDATE_BROKER_CONFIG, {}, b"fileReservedTime=24", opaque=7)
        assert (await wire.ask(update)).code == 0
        clock.ms += 2_000
        await settled(broker)
        await eventually(lambda: (timer.oldest_waiting() or 0) > 0)
        await live(39)
        assert timer.delivered == 1
        assert 0 < log.start <= waits_at - 1 < log.start + 16384
        await live(2)
        assert timer.delivered == 2
        await eventually(lambda: timer.oldest_waiting() is None)
        await live(1)
        assert log.start > waits_at
