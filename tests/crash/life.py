"""Life: one store on one simulated disk, its ledger, and everything that may happen to it, chosen by a seed.

A life goes on over restarts, kills and power losses.  Files are tiny, so that segments and queue files roll all the
time; bodies are random, so that a page in the wrong place cannot look right.
"""

import random
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

from bolide.model import send_rows as column
from bolide.store import log as log_module
from bolide.store import store as store_module
from bolide.store.append import QueueTail
from bolide.store.checkpoint import NextCheckpoint
from bolide.store.cleaning import StoreCleaning
from bolide.store.flush import FlushPoint
from bolide.store.index_file import IndexSizes
from bolide.store.marks import Promise
from bolide.store.new_message import NewMessage
from bolide.store.segment import SegmentToMake
from bolide.store.store import MessageStore, StoreOptions
from bolide.store.tables import OffsetTable
from bolide.wire.frame import FrameReader, Intake
from bolide.wire.send_run import SendRun
from tests.crash.disk import SimDisk
from tests.crash.image import PAGE_BYTES
from tests.crash.keys import check_keys
from tests.crash.ledger import LIMITS, Ledger, Queue, expect
from tests.unit.store.stage import V4, HeldClock
from tests.unit.wire.stage import send_frame

ROOT = "/data/store"
OFFSETS_PATH = ROOT + "/config/consumerOffset.json"
GROUP = "billing"
TOPICS = ("T", "Orders")
QUEUES = 2
BODY_BYTES = (0, 10, 40, 100, 200, 300, 600, 1500, 5000)
NOTE_BYTES = (0, 0, 0, 0, 10, 10, 100, 400, 1200)
"""Random bytes that become a property of twice the length: longer than a sector, and than a page with the rest."""

SCRATCH_BYTES = 64 * 1024
"""What a store keeps for runs of sends; making megabytes of it in every state would take most of the time."""
AHEAD_BYTES = (PAGE_BYTES, 2 * PAGE_BYTES, 3 * PAGE_BYTES)
"""Zeros are written ahead of the log's end in parts of one of these: a segment has several, and may end within one."""

DUE_RATIOS = (0.0, 0.3, 0.75)
"""The next segment is made when so much of one is used: a few messages fill it, so early enough is earlier here."""


class PowerLoss(BaseException):
    """Passes through everything that handles errors, as the real one does."""


class Life:
    """A store at work.  `step` does one thing."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.disk = SimDisk()
        self.clock = HeldClock()
        self.ledger = Ledger()
        self.options = StoreOptions(
            root=ROOT,
            store_host=V4,
            properties_suffix=b"CLUSTER\x01C\x02",
            body_bytes_max=100_000,
            segment_bytes=self.rng.choice((8192, 16384, 20480)),
            queue_file_bytes=self.rng.choice((200, 1000, 6000)),
            promise=self.rng.choice((Promise.DURABLE, Promise.APPENDED)),
            sealed=self.rng.random() < 0.3,
            index=self.rng.choice((None, None, IndexSizes(10, 20), IndexSizes(300, 60))),
        )
        self._ahead_bytes = self.rng.choice(AHEAD_BYTES)
        self._due_ratio = self.rng.choice(DUE_RATIOS)
        self._number = 0
        self._point: FlushPoint | None = None
        self._behind: list[QueueTail] = []
        self._checkpoint: NextCheckpoint | None = None
        self._segment: SegmentToMake | None = None
        self.actions: dict[Callable[[], None], int] = {
            self.append_run: 8,
            self.append_one: 4,
            self.append_batch: 3,
            self.write_behind: 6,
            self.begin_sync: 4,
            self.end_sync: 4,
            self.begin_segment: 6,
            self.end_segment: 6,
            self.read: 1,
            self.commit_offset: 2,
            self.save_offsets: 3,
            self.kernel_writes: 2,
            self.expire: 1,
            self.begin_checkpoint: 3,
            self.end_checkpoint: 3,
            self.index_some: 2,
            self.sync_index: 1,
            self.delete_topic: 1,
            self.settle_trash: 1,
            self.clear_trash: 1,
            self.restart: 1,
            self.kill: 1,
        }

    @contextmanager
    def scaled_down(self) -> Iterator[None]:
        """Sizes that the store's code fixes, as small in here as its files are."""
        with (
            patch.object(store_module, "SCRATCH_BYTES", SCRATCH_BYTES),
            patch.object(log_module, "AHEAD_BYTES", self._ahead_bytes),
            patch.object(log_module, "_ZEROS", bytes(self._ahead_bytes)),
            patch.object(log_module, "NEXT_DUE_RATIO", self._due_ratio),
        ):
            yield

    def step(self) -> None:
        self.clock.ms += self.rng.choice((0, 1, 5, 1000))
        self.disk.now_ms = self.clock.ms
        (action,) = self.rng.choices(list(self.actions), list(self.actions.values()))
        self.do(action)

    def do(self, action: Callable[[], None]) -> None:
        action()
        if self.store.queues.trash.is_settled:
            self.ledger.deletions_last()

    # ---- starts and stops ----------------------------------------------------------------------------------

    def start(self) -> None:
        """A new process on the disk as it is."""
        self._point = self._checkpoint = self._segment = None
        self._behind = []
        self.ledger.leaving.clear()
        self.store = MessageStore(self.disk, self.options, self.clock)
        self.store.open()
        self.offsets = OffsetTable(self.disk, OFFSETS_PATH, self.clock)
        self.offsets.load()

    def resume(self, disk: SimDisk) -> None:
        """Power is back: what this disk holds must keep every promise, and is the truth from now on."""
        self.disk = disk
        self.start()
        self.settle()

    def restart(self) -> None:
        self.save_offsets()
        self.store.close()
        self.ledger.deletions_last()
        self.ledger.promised = self.ledger.counts()
        self.start()
        self.settle()

    def kill(self) -> None:
        """The process dies, the machine stays up: nothing that was written is lost."""
        appended = self.ledger.counts()
        self.disk.after_kill()
        self.start()
        self.settle(appended)

    def settle(self, at_least: dict[Queue, int] | None = None) -> None:
        """Sync, as every broker does soon after its start, and compare."""
        self.begin_sync()
        self.end_sync()
        found = self.ledger.check(self.store, at_least)
        self.ledger.settle(found)
        if self.store.index is not None and self.rng.random() < 0.5:
            check_keys(self.store, self.store.index, found)
        self.ledger.durable_to(self.store.durability.durable)
        offset = self.offset_of(self.offsets)
        self.ledger.check_offset(offset)
        self.ledger.offset_given = self.ledger.offset_promised = offset

    # ---- messages ------------------------------------------------------------------------------------------

    def append_one(self) -> None:
        self._append(1)

    def append_batch(self) -> None:
        self._append(self.rng.randint(2, 4))

    def _append(self, count: int) -> None:
        self._append_all([(self._queue(), *self._message(small=count > 1)) for _ in range(count)])

    def append_to(self, queue: Queue, given: list[tuple[bytes, bytes]]) -> None:
        """Bodies and properties, all in one queue."""
        self._append_all([(queue, body, properties) for body, properties in given])

    def _append_all(self, given: list[tuple[Queue, bytes, bytes]]) -> None:
        """By the general path: all or none."""
        for queue, body, properties in given:
            self.ledger.give(queue, body, properties)
        self.disk.mark()
        appended = self.store.append(
            [NewMessage(*queue, body, properties, 0, 0, 1, V4) for queue, body, properties in given]
        )
        for (queue, _, _), one in zip(given, appended, strict=True):
            record = self.store.log.read(one.log_offset, one.end - one.log_offset)
            assert record is not None
            self.ledger.appended(queue, one.queue_offset, one.log_offset, record)

    def append_run(self) -> None:
        """By the fast path: several queues, from the frames of one read."""
        given = [(self._queue(), *self._message()) for _ in range(self.rng.randint(1, 6))]
        data = b"".join(
            send_frame(0, body, b=topic, e=str(queue_id), i=properties.decode())
            for (topic, queue_id), body, properties in given
        )
        reader = FrameReader(Intake(65536), hot=True)
        reader.writable()[: len(data)] = data
        reader.received(len(data))
        run = reader.next()
        assert isinstance(run, SendRun)
        assert run.count == len(given)
        for queue, body, properties in given:
            self.ledger.give(queue, body, properties)
        lanes = [self.store.lane(topic.decode(), QUEUES, QUEUES) for topic in run.topics]
        self.disk.mark()
        first = 0
        while first < run.count:
            last, needs_general_path = self.store.append_run(
                run.rows, run.log_offsets, run.buffer, run.properties, lanes, first, run.count, V4
            )
            assert not needs_general_path
            self._took(run, [queue for queue, _, _ in given], first, last)
            first = last

    def _took(self, run: SendRun, queues: list[Queue], first: int, last: int) -> None:
        for row in range(first, last):
            values = run.rows[row * column.COLUMNS : (row + 1) * column.COLUMNS]
            log_offset = run.log_offsets[values[column.RECORDS_AT]]
            size = self.store.log.read(log_offset, 4)
            assert size is not None
            record = self.store.log.read(log_offset, *struct.unpack(">I", size))
            assert record is not None
            self.ledger.appended(queues[row], values[column.QUEUE_OFFSET], log_offset, record)

    def write_behind(self) -> None:
        self._behind += self.store.take_touched()
        self.store.write_behind(self._behind)
        self._behind = []

    def begin_sync(self) -> None:
        """Decide what to sync; the sync itself may run while more is appended."""
        if self._point is None:
            self._point = self.store.durability.next_point()

    def end_sync(self) -> None:
        point, self._point = self._point, None
        if point is not None:
            self._sync(point.run)
            self.store.durability.reached(point)
            self.ledger.durable_to(self.store.durability.durable)

    def begin_segment(self) -> None:
        """See whether the next segment is due; making it may take so long that a message needs it before."""
        if self._segment is None:
            self._segment = self.store.log.next_segment()

    def end_segment(self) -> None:
        self.begin_segment()
        segment, self._segment = self._segment, None
        if segment is not None:
            self._sync(segment.make)

    def _sync(self, run: Callable[[], object]) -> None:
        """As the broker does: a failure is final."""
        try:
            run()
        except OSError as error:
            self.store.durability.failed(error)
            raise

    def begin_checkpoint(self) -> None:
        """Decide what the next checkpoint says; writing it may take a while, too."""
        if self._checkpoint is None:
            self._checkpoint = self.store.next_checkpoint()

    def end_checkpoint(self) -> None:
        checkpoint, self._checkpoint = self._checkpoint, None
        if checkpoint is not None:
            self._sync(checkpoint.sync)
            checkpoint.write()
            self.store.checkpoint_reached(checkpoint)

    def read(self) -> None:
        """Under SYNC_FLUSH nobody sees what power loss could still take back."""
        queue = self._queue()
        if self.options.promise is not Promise.DURABLE or queue not in self.ledger.queues:
            return
        durable = self.ledger.promised[queue]
        shown = self.store.reader.pull(*queue, durable, limits=LIMITS)
        expect(not shown.data, f"{queue} shows offset {durable}, which is not durable")

    # ---- the rest ------------------------------------------------------------------------------------------

    def commit_offset(self) -> None:
        self.ledger.offset_given += 1
        self.offsets.commit(GROUP, TOPICS[0], 0, self.ledger.offset_given, self.ledger.offset_given)

    def save_offsets(self) -> None:
        self.offsets.persist()
        self.ledger.offset_promised = self.ledger.offset_given

    def expire(self) -> None:
        """Retention takes the oldest segment, in the steps and the order of the broker's cleaner."""
        cleaning = StoreCleaning(self.disk, ROOT, self.store)
        deletable = cleaning.deletable()
        if deletable:
            segment = deletable[0]
            self.ledger.expired_to = segment.base + segment.size
            list(cleaning.expire_queues(self.ledger.expired_to))
            cleaning.delete_file(segment)
            cleaning.forget(segment)
            cleaning.let_go(segment)
            for folder in cleaning.trim_queues():
                if folder is not None:
                    cleaning.sync_folder(folder)

            if self.store.index is not None:
                self.store.index.drop_before(self.store.log.start)

    def delete_topic(self) -> None:
        topic = self.rng.choice(TOPICS)
        self.ledger.delete(topic)
        self.store.delete_topic(topic)

    def settle_trash(self) -> None:
        self._sync(self.store.queues.trash.settle)

    def clear_trash(self) -> None:
        self.store.queues.trash.clear_some()

    def index_some(self) -> None:
        """The index follows what readers may see, in parts."""
        if self.store.index is not None:
            self.disk.mark()
            bytes_max = self.rng.choice((500, 5000, 1 << 40))
            self.store.index.catch_up(self.store.log, self.store.reader.readable_end, bytes_max)

    def sync_index(self) -> None:
        if self.store.index is not None:
            self.store.index.sync()

    def kernel_writes(self) -> None:
        self.disk.write_back(self.rng)

    @staticmethod
    def offset_of(offsets: OffsetTable) -> int:
        return offsets.query(GROUP, TOPICS[0], 0) or 0

    def _queue(self) -> Queue:
        return self.rng.choice(TOPICS), self.rng.randrange(QUEUES)

    def _message(self, *, small: bool = False) -> tuple[bytes, bytes]:
        """Body and properties; of small ones four fit a segment."""
        self._number += 1
        filler = self.rng.randbytes(self.rng.choice(BODY_BYTES[:-2] if small else BODY_BYTES))
        note = self.rng.randbytes(self.rng.choice(NOTE_BYTES[:-1] if small else NOTE_BYTES)).hex()
        pairs = (("UNIQ_KEY", f"{self._number:032X}"), ("TAGS", self.rng.choice(("a", "bb"))), ("note", note))
        properties = "".join(f"{name}\x01{value}\x02" for name, value in pairs if value)
        return b"%06d" % self._number + filler, properties.encode()
