"""Door: the only way into the log.

Whoever writes a message, for a client or for the broker itself, does it here.  What has to follow then follows by
itself: whoever waits for the message is woken as soon as it may be seen, its queue entry goes to its file, the disk
is asked to sync when somebody waits for that, and `when_kept` answers when the message is as safe as was promised.

What follows is done once per turn of the event loop for all messages of that turn, so a message costs little more
than its bytes, and an error in it reaches no sender: the message is stored.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from itertools import islice

from bolide.broker.safety import Safety
from bolide.broker.waited_for import WaitedFor
from bolide.broker.write_behind import WriteBehind
from bolide.machines.waiters import Tell
from bolide.model.errors import TooBusy
from bolide.net.link import Link
from bolide.net.turns import Slices
from bolide.store.append import FindDetour, QueueTail, TopicLane
from bolide.store.ends import FindTails
from bolide.store.new_message import Appended, NewMessage
from bolide.store.store import MessageStore
from bolide.wire.send_run import SendRun

log = logging.getLogger(__name__)

QUEUES_PER_TURN = 256


class Door:
    def __init__(
        self,
        store: MessageStore,
        safety: Safety,
        behind: WriteBehind,
        waited_for: WaitedFor,
        sync_soon: Callable[[], None],
    ) -> None:
        self._store = store
        self._safety = safety
        self._behind = behind
        self._waited_for = waited_for
        self._sync_soon = sync_soon
        self._loop = asyncio.get_running_loop()
        self._is_settling = False
        self._arrived: dict[QueueTail, None] = {}  # queues to be announced
        self._unseen: dict[QueueTail, None] = {}  # queues with messages that may not be seen yet
        self._announcing = Slices(self._announce_some)
        self._listeners: list[Callable[[QueueTail], None]] = []
        safety.on_move(self._show)

    def on_arrival(self, listener: Callable[[QueueTail], None]) -> None:
        """Be called for every queue in which there is more to see than before."""
        self._listeners.append(listener)

    def append(self, messages: Sequence[NewMessage]) -> list[Appended]:
        """Store messages, all or none, of whatever queues."""
        if not self._safety.has_room:
            raise TooBusy("too many messages wait until they are safe; send again in a moment")
        appended = self._store.append(messages)
        self._waited_for.stored(messages)
        self._settle_soon()
        return appended

    def append_run(
        self,
        link: Link,
        run: SendRun,
        lanes: Sequence[TopicLane | None],
        first: int,
        find: FindDetour | None = None,
    ) -> tuple[int, bool]:
        """Store sends from row `first` on; the first row that was not stored, and whether it needs the general path.

        Without `find` only plain ones; who decides where others wait notes for which topic.
        """
        if not self._safety.at_once and not self._safety.has_room:
            return first, True
        appended = self._store.append_run(
            run.rows,
            run.log_offsets,
            run.buffer,
            run.properties,
            lanes,
            first,
            run.count,
            link.remote_host,
            find,
            run.properties_used,
        )
        self._settle_soon()
        return appended

    def append_ends(
        self,
        run: SendRun,
        first: int,
        last: int,
        halves: range,
        size_max: int,
        find: FindTails,
        marked_as: bytes,
    ) -> int:
        """Store plain ends of transactions from row `first` on; the first row that was not stored."""
        if not self._safety.has_room:
            return first
        row = self._store.append_ends(
            run.ends, run.properties, first, last, halves, size_max, find, marked_as
        )
        self._settle_soon()
        return row

    def sync_soon(self) -> None:
        """Make the log durable as it is now: somebody writes down what follows from it."""
        self._sync_soon()

    def when_kept(self, end: int, tell: Tell) -> None:
        """Tell True when the log is as safe up to `end` as was promised; False when that takes too long."""
        self._safety.when_kept(end, tell)

    def acknowledge(self, link: Link, answers: bytes, late: Callable[[bytes], bytes]) -> None:
        """Send the answers of a run just stored when it is kept; what `late` makes of them when that takes too long."""
        if self._safety.at_once:
            link.write(answers)
        else:
            end = self._store.log.end
            self._safety.when_kept(end, lambda kept: link.write(answers if kept else late(answers)))

    def _settle_soon(self) -> None:
        if not self._is_settling:
            self._is_settling = True
            self._loop.call_soon(self._settle)

    def _settle(self) -> None:
        self._is_settling = False
        touched = self._store.take_touched()
        self._behind.add(touched)
        if self._safety.at_once:
            if len(touched) <= QUEUES_PER_TURN and not self._arrived:  # as nearly always
                for tail in touched:
                    self._announce(tail)
            else:
                self._arrived.update(dict.fromkeys(touched))
                self._announcing.go()
        else:
            self._unseen.update(dict.fromkeys(touched))
            self._sync_soon()

    def _show(self) -> None:
        """More of the log may be seen."""
        self._arrived.update(self._unseen)
        self._unseen.clear()
        self._announcing.go()

    def _announce_some(self) -> bool:
        """Tell who listens; queues that have more than may be seen yet come up again."""
        readable = self._store.reader.readable_end
        for tail in list(islice(self._arrived, QUEUES_PER_TURN)):
            del self._arrived[tail]
            if not self._safety.at_once and not self._is_readable(tail, readable):
                self._unseen[tail] = None
            self._announce(tail)
        return bool(self._arrived)

    def _is_readable(self, tail: QueueTail, readable: int) -> bool:
        try:
            return self._store.reader.is_readable(tail, readable)
        except Exception:  # a queue that cannot be read is not the log's failure
            log.exception("cannot tell how much of %s may be read", tail.key)
            return False

    def _announce(self, tail: QueueTail) -> None:
        for listener in self._listeners:
            try:
                listener(tail)
            except Exception:
                log.exception("somebody who waited for messages of %s could not be woken", tail.key)
