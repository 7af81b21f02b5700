"""SegmentMaker: makes the log's next segment before it is needed, on a thread of its own.

Reserving and syncing a gigabyte keeps a disk busy for a while, and everybody who sends would wait for it.  The log
says when the next segment is due (`CommitLog.next_segment`); looking for that costs no message anything.  While there
is no room for it that is no error yet: it is tried again, and only a message that needs the segment is refused.
"""

import logging
from collections.abc import Callable

from bolide.broker.sync_thread import SyncThread
from bolide.model.errors import StoreUnavailable
from bolide.net.surroundings import Surroundings
from bolide.net.ticks import pause, ticks
from bolide.net.trouble import Trouble, goes_on
from bolide.store.segment import SegmentToMake
from bolide.store.store import MessageStore

log = logging.getLogger(__name__)

LOOK_S = 0.05
"""The last quarter of a segment takes several times as long to fill."""

QUIET_S = 0.2
"""How much longer it takes to look again while nobody writes."""

RETRY_MS = 1_000


class SegmentMaker:
    def __init__(
        self, store: MessageStore, surroundings: Surroundings, on_failure: Callable[[], None]
    ) -> None:
        self._store = store
        self._clock = surroundings.clock
        self._on_failure = on_failure
        self._thread = SyncThread(
            surroundings.threads("bolide-segment"), "the next commit-log segment", store.durability
        )
        self._retry_ms = 0
        self._trouble = Trouble(
            log, "a segment is not made ahead; it is tried again before a message needs it", logging.WARNING
        )

    @goes_on("making segments ahead")
    async def run(self) -> None:
        """Make segments for ever; ends when the log has failed."""
        end = -1
        async for _ in ticks(LOOK_S):
            if self._store.durability.failure is not None:
                return
            if self._store.log.end == end:  # nobody writes
                await pause(QUIET_S)
            end = self._store.log.end
            if self._clock.monotonic_ms() < self._retry_ms or self._store.disk_refusal is not None:
                continue
            segment = self._store.log.next_segment()
            if segment is not None:
                await self._make(segment)

    async def _make(self, segment: SegmentToMake) -> None:
        try:
            await self._thread.sync(segment.make)
            self._trouble.over()
        except StoreUnavailable as error:
            self._retry_ms = self._clock.monotonic_ms() + RETRY_MS
            self._trouble.met(error)
        except OSError as error:
            self._thread.failed(error)
            self._on_failure()

    def close(self) -> None:
        """End the thread."""
        self._thread.close()
