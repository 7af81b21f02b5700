"""What a Spark task does with a part of a log: read its bytes from the files and give them back as Arrow batches.

The files are read, never locked or changed: a task holds some megabytes of them, whatever their size, and a broker may
write to them meanwhile.  Where no sound record is, the tools for damaged stores find the next one (`offline/scan.py`),
and what lies between goes to quarantine (`quarantine.py`).
"""

import logging
from collections.abc import Generator, Iterator

import pyarrow as pa

from bolide.arrow.batches import make_batch
from bolide.arrow.columns import ColumnBuilder, LogFilter
from bolide.arrow.columns_twin import BLANK, CUT_OFF, DONE
from bolide.model.errors import BadBody
from bolide.model.limits.spark import (
    SPARK_BATCH_BYTES_MAX,
    SPARK_BATCH_ROWS_MAX,
    SPARK_LOG_BYTES_MAX,
    SPARK_QUARANTINE_BYTES_MAX,
    SPARK_RECORD_BYTES_MAX,
)
from bolide.offline.files import StoreFiles
from bolide.offline.places import NEVER, walk_of_nothing
from bolide.offline.scan import Hole, LogScan, OddBlank
from bolide.pipeline.errors import OffsetsExpired
from bolide.pipeline.quarantine import Quarantine, damaged_record
from bolide.pipeline.ranges import report_loss
from bolide.pipeline.store_options import StoreOptions
from bolide.pipeline.store_plan import EntryRange, Openings, StorePart, open_store
from bolide.pipeline.worker import settle_worker
from bolide.record.layout import HEAD
from bolide.store.disk import File

log = logging.getLogger(__name__)

WINDOW_BYTES = 1024 * 1024
"""Entries whose records lie within so much of the log are read together."""

Batches = Generator[pa.RecordBatch, None, None]
Entry = tuple[int, int, int]
"""Number in the queue, place in the log, size."""


def read_part(options: StoreOptions, part: StorePart, schema: pa.Schema) -> Batches:
    """The wanted messages of a part, in the order of the log, or queue by queue where it jumps."""
    settle_worker()
    store = open_store(options, part.geometry)
    reader = _PartReader(store, options, part, schema)
    try:
        yield from reader.batches()
    finally:
        reader.close()
        store.close()


class _PartReader:
    def __init__(self, store: StoreFiles, options: StoreOptions, part: StorePart, schema: pa.Schema) -> None:
        self._store = store
        self._options = options
        self._part = part
        self._schema = schema
        self._openings = Openings(store, options)
        self._quarantine = Quarantine(schema, part.broker_name, options.bad_bodies)
        self._builder = ColumnBuilder(
            part.broker_name,
            schema.names,
            tags=options.tags,
            keys=options.keys,
            bad_bodies=options.bad_bodies,
            rows_max=SPARK_BATCH_ROWS_MAX,
            size_bytes_max=SPARK_BATCH_BYTES_MAX,
        )
        self._base = -1
        self._file: File | None = None

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._base, self._file = -1, None

    def batches(self) -> Batches:
        if self._part.jumps is None:
            yield from self._walk()
        else:
            for entries in self._part.jumps:
                yield from self._follow(entries)
        yield from self._taken(self._builder.rows > 0)
        if self._builder.skipped:
            log.warning(
                "%s: messages left out because their bodies do not unpack: %d",
                self._part,
                self._builder.skipped,
            )
        if self._quarantine.count:
            log.warning(
                "%s: damaged records or parts between records: %d", self._part, self._quarantine.count
            )

    def _taken(self, is_time: bool) -> Batches:
        """What has come together, when it is time to give it away."""
        if is_time:
            yield make_batch(self._schema, self._builder.rows, self._builder.take())
        damaged = self._quarantine.take()
        if damaged is not None:
            yield damaged

    # ---- from record to record -----------------------------------------------------------------------------

    def _walk(self) -> Batches:
        wanted = LogFilter(self._openings, since_ms=self._options.since_ms, until_ms=self._options.until_ms)
        at, count = self._part.begin, int(SPARK_LOG_BYTES_MAX)
        while at < self._part.end:
            limit = min(self._segment_end(at), self._part.end)
            data = self._read(at, min(count, limit - at))
            if not data:
                self._report_gone(at)
                at = limit
                continue
            position, why = 0, DONE
            while why == DONE and position < len(data):
                position, why = self._append(data, position, len(data), at, wanted)
                yield from self._taken(self._builder.full)
            place, rest = at + position, len(data) - position
            is_short = at + len(data) < min(at + count, limit)
            at, count = place, int(SPARK_LOG_BYTES_MAX)
            if why == CUT_OFF and place + rest < limit and not is_short:
                # Read on from its beginning; all of it where it is longer than what is read at a time.
                size = int.from_bytes(data[position : position + 4], "big") if rest >= 4 else 0
                if size <= min(SPARK_RECORD_BYTES_MAX, limit - place):
                    count = max(count, size)
                    continue
            if why == BLANK and self._ends_segment(data, position, place):
                at = self._segment_end(place)
            elif why != DONE:
                at = yield from self._pass_damage(place, limit)

    def _append(self, data: bytes, position: int, end: int, base: int, wanted: LogFilter) -> tuple[int, int]:
        try:
            return self._builder.append_log(data, position, end, base, wanted)
        except BadBody as error:
            advice = "badBodies=deliver hands it out as it is stored, badBodies=skip leaves it out"
            raise BadBody(f"{self._part}: {error}; {advice}") from error

    def _segment_end(self, place: int) -> int:
        return place - place % self._store.log.file_bytes + self._store.log.file_bytes

    def _ends_segment(self, data: bytes, position: int, place: int) -> bool:
        size = int.from_bytes(data[position : position + 4], "big")
        return place + size == self._segment_end(place)

    def _read(self, place: int, count: int) -> bytes:
        """Bytes of one segment; fewer where its file ends, none where there is no file."""
        base = place - place % self._store.log.file_bytes
        if base != self._base:
            self.close()
            try:
                self._file = self._store.disk.open_for_reading(self._store.log.path(base))
            except FileNotFoundError:
                return b""
            self._base = base
        assert self._file is not None
        return self._file.read(place - base, count)

    def _report_gone(self, place: int) -> None:
        """A segment that retention has deleted since the read was planned; or it, or its end, was missing before."""
        base = place - place % self._store.log.file_bytes
        if self._file is None and (base < self._store.log.start or base in self._store.log.bases):
            expired = OffsetsExpired(
                f"{self._store.log.path(base)} is gone since the read was planned: its messages have expired"
            )
            report_loss(expired, fail=self._options.fail_on_data_loss)
        else:
            why = "the segment is missing" if self._file is None else "the segment's file ends here"
            self._quarantine.put({"logOffset": place}, why, f"the log at {place}")

    # ---- damage --------------------------------------------------------------------------------------------

    def _pass_damage(self, place: int, limit: int) -> Generator[pa.RecordBatch, None, int]:
        """Put what lies between this place and the next sound record into quarantine; where that record begins."""
        step = next(iter(LogScan(self._store, walk_of_nothing()).run(place)), None)
        if isinstance(step, OddBlank):
            return min(self._segment_end(place), limit)
        end, why = limit, "nothing sound follows"
        if isinstance(step, Hole):
            end, why = min(step.end, limit), step.why
        elif step is not None:  # a record that is sound, and too large to be read
            end = min(limit, place + int.from_bytes(self._read(place, 4), "big"))
            why = f"the record has {end - place} bytes, more than the {SPARK_RECORD_BYTES_MAX} that are read"
        self._store.check()
        yield from self._keep(place, end, why)
        return end

    def _keep(self, place: int, end: int, why: str) -> Batches:
        """A damaged stretch may be as long as a part of the log: it is given away as it is read."""
        where = f"the log from {place} to {end}"
        if end - place <= SPARK_RECORD_BYTES_MAX:
            row = damaged_record(self._read(place, end - place), place)
            if row is not None:
                if self._openings(row["topic"].encode(), row["queueId"]) <= place:
                    self._quarantine.put(row, why, where)
                return
        for at in range(place, end, SPARK_QUARANTINE_BYTES_MAX):
            data = self._read(at, min(SPARK_QUARANTINE_BYTES_MAX, end - at))
            if data or at == place:
                self._quarantine.put({"logOffset": at, "body": data}, why, where)
            if self._quarantine.full:
                yield from self._taken(False)

    # ---- from entry to record ------------------------------------------------------------------------------

    def _follow(self, entries: EntryRange) -> Batches:
        """The records of some entries of a queue."""
        topic = entries.topic.encode()
        wanted = LogFilter(
            lambda name, number: 0 if (name, number) == (topic, entries.queue_id) else NEVER,
            since_ms=self._options.since_ms,
            until_ms=self._options.until_ms,
        )
        for window in self._windows(entries):
            if self._is_odd(*window[0]):
                yield from self._keep_entry(entries, window[0], b"", "the queue's entry is damaged")
                continue
            first, last = window[0][1], window[-1][1] + window[-1][2]
            data = self._read(first, last - first)
            for entry in window:
                number, place, size = entry
                position, why = place - first, DONE
                if not _is_message(data, position, size, entries.queue_id, number):
                    why = CUT_OFF
                while why == DONE and position < place - first + size:
                    position, why = self._append(data, position, place - first + size, first, wanted)
                    yield from self._taken(self._builder.full)
                if why != DONE:
                    record = data[place - first : place - first + size]
                    words = "no sound record is where the queue's entry says"
                    yield from self._keep_entry(entries, entry, record, words)

    def _windows(self, entries: EntryRange) -> Iterator[list[Entry]]:
        """Entries whose records lie near each other, in one segment, in their order; one that is odd is alone."""
        queue = self._store.queue((entries.topic, entries.queue_id))
        window: list[Entry] = []
        for number, (place, size, _) in () if queue is None else queue.entries(entries.first, entries.last):
            if window and (
                self._is_odd(number, place, size)
                or self._is_odd(*window[0])
                or place < window[-1][1]
                or place + size > window[0][1] + WINDOW_BYTES
                or place >= self._segment_end(window[0][1])
            ):
                yield window
                window = []
            window.append((number, place, size))
        if window:
            yield window

    def _is_odd(self, number: int, place: int, size: int) -> bool:
        """Whether an entry points where no record of this part can be."""
        return not self._part.begin <= place < self._part.end or not 0 < size <= SPARK_RECORD_BYTES_MAX

    def _keep_entry(self, entries: EntryRange, entry: Entry, record: bytes, why: str) -> Batches:
        number, place, _ = entry
        row = damaged_record(record, place) or {"logOffset": place, "body": record}
        row |= {"topic": entries.topic, "queueId": entries.queue_id, "queueOffset": number}
        self._quarantine.put(row, why, f"{entries.topic}, queue {entries.queue_id}, offset {number}")
        if self._quarantine.full:
            yield from self._taken(False)


def _is_message(data: bytes, position: int, size: int, queue_id: int, number: int) -> bool:
    """Whether the record at this position is the one that a queue's entry means."""
    if position + size > len(data) or size < HEAD.size:
        return False
    fields = HEAD.unpack_from(data, position)
    return bool(fields[0] == size and fields[3] == queue_id and fields[5] == number)
