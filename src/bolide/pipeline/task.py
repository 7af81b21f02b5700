"""What a Spark task does: pull the blocks of one range and give them back as Arrow batches.

Runs in a Python worker of Spark, with a connection and an event loop of its own; nothing is opened before the first
batch is asked for.  Between two batches the loop stands still, and the answers to pulls that run ahead wait in the
socket.

Bytes in an answer that are no record are a row too: quarantined, with what they are and why they cannot be read.  They
are pulled once more, alone, so that neither their place nor their length is a guess; then what lies behind them.

Where nothing is filtered the offsets of an answer have no gaps.  Messages that a broker passes over without a word, for
they are damaged or just deleted, are lost data all the same.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa

from bolide.arrow.batches import built_columns, make_batch, unreadable, unreadable_row
from bolide.arrow.columns import ColumnBuilder
from bolide.client.queue_calls import QueueCalls
from bolide.model.errors import BadBody, MalformedRecord
from bolide.model.limits.spark import SPARK_BATCH_BYTES_MAX, SPARK_BATCH_ROWS_MAX
from bolide.pipeline.errors import BadRecord, DataLost
from bolide.pipeline.options import ReadOptions
from bolide.pipeline.pulls import Block, BlockReader, Piece
from bolide.pipeline.ranges import QueueRange, report_loss
from bolide.pipeline.worker import settle_worker
from bolide.record.layout import open_record

log = logging.getLogger(__name__)

ADVICE = "badBodies=deliver hands it out as it is stored, badBodies=skip leaves it out"
HOLES_SAID_MAX = 5


class Pieces(NamedTuple):
    """A range as its broker gives it: `every` piece in turn, and one more from an offset on, or one message there."""

    every: Iterator[Piece]
    again: Callable[[int, bool], Piece]


Batches = Generator[pa.RecordBatch, None, None]


def read_batches(options: ReadOptions, wanted: QueueRange, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The messages of a range, in order."""
    if wanted.length <= 0:
        return
    settle_worker()
    with asyncio.Runner() as runner:
        # Not Runner.run: it looks at signal handlers, which for some Pythons includes printing the result.
        run = runner.get_loop().run_until_complete
        instance = options.cluster.instance()
        calls = QueueCalls(instance, options.group, masters_only=True)
        reader = BlockReader(calls, wanted, options)
        run(instance.start())

        def every() -> Iterator[Piece]:
            while (piece := run(reader.next())) is not None:
                yield piece

        try:
            yield from Reading(options, wanted, schema).batches(
                Pieces(every(), lambda offset, alone: run(reader.again(offset, alone=alone)))
            )
        finally:
            run(reader.close())
            run(instance.close())


class Reading:
    """Pieces into batches."""

    def __init__(self, options: ReadOptions, wanted: QueueRange, schema: pa.Schema) -> None:
        self._options = options
        self._wanted = wanted
        self._schema = schema
        self._unreadable = 0
        self._builder = ColumnBuilder(
            wanted.queue.broker_name,
            built_columns(schema),
            queue=(wanted.queue.topic, wanted.queue.queue_id),
            tags=options.wanted.subscription(wanted.queue.topic).tags,
            keys=options.wanted.keys,
            bad_bodies=options.bad_bodies,
            rows_max=SPARK_BATCH_ROWS_MAX,
            size_bytes_max=SPARK_BATCH_BYTES_MAX,
        )

    def batches(self, pieces: Pieces) -> Batches:
        for piece in pieces.every:
            for block in piece.blocks:
                end = min(block.end, piece.end)
                at, error = yield from self._block(block, piece.end)
                if error is not None:
                    yield from self._from_unreadable(at, end, pieces)
        yield from self._rest()
        if left_out := self._builder.skipped + self._unreadable:
            log.warning("%s: messages left out because they cannot be read: %d", self._wanted, left_out)

    def _from_unreadable(self, at: int, end: int, pieces: Pieces) -> Batches:
        """The message at or behind an offset that cannot be read, and all that follow it."""
        alone = True
        while at < end:
            piece = pieces.again(at, alone)
            at, was_alone, alone = piece.end, alone, False
            for block in piece.blocks:  # one at most
                reached, error = yield from self._block(block, end)
                if error is not None and was_alone and reached == block.begin:
                    yield from self._quarantine(block, end, error)
                elif error is not None:
                    at, alone = reached, True

    def _block(
        self, block: Block, end: int
    ) -> Generator[pa.RecordBatch, None, tuple[int, MalformedRecord | None]]:
        """Its messages before `end`; how far they reach, and why no further where a record cannot be read."""
        found, at = self._builder.found, 0
        reached, error = min(block.end, end), None
        try:
            while at < len(block.data):
                at = self._builder.append(block.data, at, block.begin, end)
                if self._builder.full:
                    yield from self._rest()
        except BadBody as bad:
            raise BadBody(f"{self._wanted.queue}: {bad}; {ADVICE}") from bad
        except MalformedRecord as bad:
            reached, error = max((offset + 1 for offset in _offsets(block, end)), default=block.begin), bad
            yield from self._rest()
        if self._builder.found - found != reached - block.begin:
            self._report_holes(block.begin, reached, _offsets(block, end))
        return reached, error

    def _rest(self) -> Batches:
        if self._builder.rows:
            yield make_batch(self._schema, self._builder.rows, self._builder.take())

    def _report_holes(self, begin: int, end: int, there: Iterable[int]) -> None:
        """Which offsets an answer does not have, unless it need not have all."""
        if self._options.wanted.leaves_out:
            return
        holes: list[str] = []
        for offset in (*there, end):
            if offset > begin:
                holes.append(f"{begin}" if offset == begin + 1 else f"{begin} to {offset - 1}")
            begin = offset + 1
        if holes:
            more = f" and {len(holes) - HOLES_SAID_MAX} more places" if len(holes) > HOLES_SAID_MAX else ""
            lost = DataLost(
                f"{self._wanted.queue}: the broker does not give the message at offset"
                f" {', '.join(holes[:HOLES_SAID_MAX])}{more}, and gives others behind: it is damaged on the broker's"
                " disk (its log says so, and `bolide store verify`), or was just deleted. failOnDataLoss=false goes on"
                " without it"
            )
            report_loss(lost, fail=self._options.fail_on_data_loss)

    def _quarantine(self, block: Block, end: int, error: MalformedRecord) -> Batches:
        """The one message of a block, which cannot be read."""
        queue, offset = self._wanted.queue, block.end - 1
        self._report_holes(block.begin, min(offset, end), ())
        if offset >= end:
            return  # a filter has looked further than this range goes
        words = unreadable(error)
        if self._options.bad_bodies == "fail":
            raise BadRecord(f"{queue}: the message at offset {offset}: {words}; {ADVICE}") from error
        if self._options.bad_bodies == "skip":
            self._unreadable += 1
            return
        log.warning("%s: the message at offset %d: %s", queue, offset, words)
        yield unreadable_row(self._schema, queue, offset, block.data, error)


def _offsets(block: Block, end: int) -> Iterator[int]:
    """Of its records before `end`, up to the first one that cannot be read."""
    at = 0
    with contextlib.suppress(MalformedRecord):
        while at < len(block.data):
            record = open_record(block.data, at, len(block.data))
            if block.begin <= record.queue_offset < end:
                yield record.queue_offset
            at = record.end
