"""Cleaner: watches the disk, deletes what has expired, and stops the intake before the disk is full.

Three pieces of background work share one thread for what may take long (unlinking and closing large files, syncing
folders); all state is changed on the event loop.

- `look`, every second: how full is the disk?  Warns early, refuses messages above diskSpaceWarningLevelRatio and
  takes them again as soon as there is room.  The hot path only looks at the flag that is set here.
- `clean`, every cleanResourceInterval: delete segments of the log (`store/retention.py` decides, `store/cleaning.py`
  does), one by one with a pause in between.
- `trim`, after that: delete queue files that hold nothing any more.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from bolide.broker.config import BrokerConfig
from bolide.model.numbers import INT64_MAX
from bolide.net.surroundings import Surroundings
from bolide.net.ticks import pause, ticks
from bolide.net.trouble import Trouble, goes_on
from bolide.net.turns import in_turns
from bolide.store.cleaning import StoreCleaning
from bolide.store.disk import Disk
from bolide.store.retention import (
    MANUAL_RUNS,
    RetentionSettings,
    Trigger,
    count_expired,
    is_full,
    must_force,
    why_clean,
)
from bolide.store.segment import Segment
from bolide.store.store import MessageStore
from bolide.store.trusted_time import TrustedTime

log = logging.getLogger(__name__)

T = TypeVar("T")

LOOK_S = 1.0
FIRST_RUN_INTERVALS = 6
"""The first run comes after so many intervals: a minute, unless cleanResourceInterval was changed."""

WARN_AGAIN_MS = 600_000
"""While the disk stays too full it is said again, but not more often than this."""

DOUBT_MS = 60_000
"""A clock is worth a line in the log when it is so much ahead of what can be believed."""


def local_hour(wall_ms: int) -> int:
    """The hour of day here; deleteWhen is in local time."""
    return datetime.fromtimestamp(wall_ms / 1000).astimezone().hour


@dataclass(frozen=True, slots=True)
class RetentionFigures:
    earliest_stored_ms: int | None
    log_folder: str
    disk_used_ratio: float
    refusal: str | None


class Cleaner:
    def __init__(
        self,
        store: MessageStore,
        disk: Disk,
        root: str,
        settings: Callable[[], BrokerConfig],
        surroundings: Surroundings,
        checkpoint: Callable[[], Awaitable[None]],
        hour_of: Callable[[int], int] = local_hour,
        kept_from: Callable[[], int] = lambda: INT64_MAX,
    ) -> None:
        """`kept_from` tells from where on the log keeps messages that still wait, however old they are."""
        self._store = store
        self._cleaning = StoreCleaning(disk, root, store)
        self._settings = settings
        self._clock = surroundings.clock
        self._checkpoint = checkpoint
        self._hour_of = hour_of
        self._kept_from = kept_from
        self._time = TrustedTime(self._clock.monotonic_ms(), store.newest_stored_ms)
        self._thread = surroundings.threads("bolide-clean")
        self._trim_wanted = asyncio.Event()
        self._asked_runs = 0
        self._stuck_until_ms: int | None = None
        self._level = 0
        self._warned_ms = 0
        self._nothing_left = Trouble(
            log, "the disk is too full, and nothing is left to delete", logging.WARNING
        )
        self._doubted = Trouble(log, "messages that look older than fileReservedTime stay", logging.WARNING)
        self._blind = Trouble(log, f"cannot tell how full the disk of {self._cleaning.log_folder} is")
        self._stuck = Trouble(log, "cleaning failed and is tried again")
        self._stuck_queues = Trouble(
            log, "cannot delete an expired queue file, trying again after the next run"
        )
        self.used_ratio = 0.0
        self.trusted_ms = 0
        self.look()

    def work(self) -> list[Coroutine[None, None, None]]:
        """What the broker runs as tasks."""
        return [self._watch(), self._clean_regularly(), self._trim_when_wanted()]

    def close(self) -> None:
        self._thread.shutdown(wait=True)

    def ask(self) -> None:
        """An operator wants what is expired to go now, at whatever hour."""
        self._asked_runs = MANUAL_RUNS

    def topics(self) -> list[str]:
        """Topics that have queues, known or not."""
        return self._cleaning.topics()

    def has_messages(self, topic: str) -> bool:
        """Whether messages of the topic are left."""
        return self._cleaning.has_messages(topic)

    def figures(self) -> RetentionFigures:
        """What retention has left, and how full the disk is."""
        return RetentionFigures(
            self._cleaning.earliest_stored_ms(),
            self._cleaning.log_folder,
            self.used_ratio,
            self._store.disk_refusal,
        )

    # ---- the disk ------------------------------------------------------------------------------------------

    def look(self) -> None:
        """See how full the disk is and how late it is, and whether messages can be taken."""
        rules = self._settings().retention
        wall_ms, monotonic_ms = self._clock.now_ms(), self._clock.monotonic_ms()
        self.trusted_ms = self._time.read(wall_ms, monotonic_ms, rules.reserved_ms)
        try:
            self.used_ratio = self._cleaning.used_ratio()
        except OSError as error:
            self._blind.met(error)
            return
        self._blind.over()
        self._say_level(rules, monotonic_ms)
        refusal = self._refusal(rules) if is_full(rules, self.used_ratio) else None
        if refusal is None and self._store.disk_refusal is not None:
            log.warning("the disk is %.1f %% full; messages are taken again", self.used_ratio * 100)
        elif refusal is not None and self._store.disk_refusal is None:
            log.error("%s; free some space or give the file system more", refusal)
        self._store.disk_refusal = refusal

    def _refusal(self, rules: RetentionSettings) -> str:
        return (
            f"the broker's disk is {self.used_ratio:.1%} full, above diskSpaceWarningLevelRatio"
            f" ({rules.full_percent} %): no messages are taken until there is room; reading goes on"
        )

    def _say_level(self, rules: RetentionSettings, monotonic_ms: int) -> None:
        """Warn before messages are deleted early, and before no more are taken."""
        used = self.used_ratio * 100
        level = sum(used > limit for limit in (rules.clean_percent, rules.force_percent))
        again = level > 0 and monotonic_ms - self._warned_ms >= WARN_AGAIN_MS
        if level > self._level or again:
            self._warned_ms = monotonic_ms
            log.warning(
                "the disk of %s is %.1f %% full: messages older than fileReservedTime are deleted from %d %% on, the"
                " oldest %s from %d %% on, and none are taken from %d %% on; free some space, give the file system"
                " more, or lower fileReservedTime",
                self._cleaning.log_folder,
                used,
                rules.clean_percent,
                "whatever their age" if rules.may_force else "would be, were cleanFileForciblyEnable set,",
                rules.force_percent,
                rules.full_percent,
            )
        self._level = level

    @goes_on("watching the disk")
    async def _watch(self) -> None:
        async for _ in ticks(LOOK_S):
            self.look()

    # ---- the log -------------------------------------------------------------------------------------------

    @goes_on("retention")
    async def _clean_regularly(self) -> None:
        interval_s = self._settings().clean_interval_ms / 1000
        await pause(interval_s * (FIRST_RUN_INTERVALS - 1))
        async for _ in ticks(interval_s):
            try:
                await self.clean()
            except Exception as error:
                self._stuck.met(error)
            else:
                self._stuck.over()
            if self._stuck_queues:
                self._trim_wanted.set()

    async def clean(self) -> int:
        """One run: delete what is due, and return how many segments that was."""
        self.look()
        config, deleted = self._settings(), 0
        rules, wall_ms = config.retention, self._clock.now_ms()
        why = why_clean(
            rules, hour=self._hour_of(wall_ms), used_ratio=self.used_ratio, asked=self._asked_runs > 0
        )
        self._asked_runs = max(0, self._asked_runs - 1)
        if why is not Trigger.FORCED:
            self._nothing_left.over()
        if why is None or self._is_stuck():
            return 0
        if self._cleaning.waits_for_checkpoint:
            await self._checkpoint()
        count = self._count(rules, why, wall_ms)
        if count == 0:
            return 0
        async for _ in ticks(config.delete_segments_interval_ms / 1000):
            if deleted == count or (why is Trigger.FORCED and not self._still_forced()):
                break
            if not await self._delete_oldest(why):
                break
            deleted += 1
        if deleted:
            self._trim_wanted.set()
        return deleted

    def _count(self, rules: RetentionSettings, why: Trigger, wall_ms: int) -> int:
        if why is Trigger.FORCED:
            deletable = len(self._cleaning.deletable())
            if deletable:
                self._nothing_left.over()
            else:
                folder = self._cleaning.log_folder
                self._nothing_left.met(
                    f"the log has only its newest segment, so something else fills the disk of {folder}"
                )
            return min(rules.batch_max, deletable)
        count, by_wall_clock = (
            count_expired(
                self._cleaning.times(),
                reserved_ms=rules.reserved_ms,
                wall_ms=wall_ms,
                trusted_ms=now_ms,
                count_max=rules.batch_max,
            )
            for now_ms in (self.trusted_ms, wall_ms)
        )
        if count < by_wall_clock and wall_ms - self.trusted_ms >= DOUBT_MS:
            self._doubted.met(
                "the clock is ahead of the time that has passed since they were stored, as far as this broker has"
                " seen it; it is believed when it has been steady for fileReservedTime"
            )
        else:
            self._doubted.over()
        return min(count, self._count_before(self._kept_from()))

    def _count_before(self, place: int) -> int:
        return sum(segment.base + segment.size <= place for segment in self._cleaning.deletable())

    def _still_forced(self) -> bool:
        """Looked at again before each segment: not one more than needed."""
        self.look()
        return must_force(self._settings().retention, self.used_ratio)

    async def _delete_oldest(self, why: Trigger) -> bool:
        """Delete one segment, in the order that `store/cleaning.py` explains."""
        segments = self._cleaning.deletable()
        if not segments:
            return False
        oldest = segments[0]
        await in_turns(self._cleaning.expire_queues(oldest.base + oldest.size))
        try:
            await self._in_thread(self._cleaning.delete_file, oldest)
        except OSError as error:
            wait_ms = self._settings().delete_again_ms
            self._stuck_until_ms = self._clock.monotonic_ms() + wait_ms
            log.error("cannot delete %s, trying again in %d s: %s", oldest.file.path, wait_ms // 1000, error)
            return False
        self._cleaning.forget(oldest)
        self._say_deleted(oldest, why)
        await self._in_thread(self._cleaning.let_go, oldest)
        return True

    def _is_stuck(self) -> bool:
        """Whether the last try to delete a file failed, and not long ago (RocketMQ: a hanged file)."""
        if self._stuck_until_ms is not None and self._clock.monotonic_ms() >= self._stuck_until_ms:
            self._stuck_until_ms = None
        return self._stuck_until_ms is not None

    def _say_deleted(self, segment: Segment, why: Trigger) -> None:
        level = logging.WARNING if why is Trigger.FORCED else logging.INFO
        hint = "; messages that nobody had consumed may be gone" if why is Trigger.FORCED else ""
        log.log(level, "deleted %s, %s%s", segment.file.path, why.value, hint)

    # ---- the queues ----------------------------------------------------------------------------------------

    @goes_on("deleting expired queue files")
    async def _trim_when_wanted(self) -> None:
        self._trim_wanted.set()  # a crash may have left files behind, or an error
        while True:
            await self._trim_wanted.wait()
            self._trim_wanted.clear()
            try:
                await self.trim(self._settings().delete_queues_interval_ms / 1000)
            except Exception as error:
                self._stuck_queues.met(error)
            else:
                self._stuck_queues.over()

    async def trim(self, pause_s: float = 0.0) -> int:
        """Delete expired queue files, and return how many those were."""
        steps, deleted = self._cleaning.trim_queues(), 0
        for folder in steps:
            if folder is not None:
                deleted += 1
                await self._in_thread(self._cleaning.sync_folder, folder)
            await pause(pause_s if folder is not None else 0)
        if deleted:
            log.info("deleted %d queue files whose messages have expired", deleted)
        return deleted

    async def clean_queues(self) -> None:
        """Bring all queues in step with the log now."""
        await in_turns(self._cleaning.expire_queues(self._store.log.start))
        await self.trim()

    # ---- together ------------------------------------------------------------------------------------------

    async def _in_thread(self, work: Callable[[T], None], what: T) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, work, what)
