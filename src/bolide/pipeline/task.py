"""What a Spark task does: pull the blocks of one range and give them back as Arrow batches.

Runs in a Python worker of Spark, with a connection and an event loop of its own; nothing is opened before the first
batch is asked for.  Between two batches the loop stands still, and the answers to pulls that run ahead wait in the
socket.

Bytes in an answer that are no record are a row too: quarantined, with what they are and why they cannot be read.  What
lies behind them is pulled again from the next offset on.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pyarrow as pa

from bolide.client.instance import ClientInstance
from bolide.client.queue_calls import QueueCalls
from bolide.model.errors import MalformedRecord
from bolide.model.limits.spark import SPARK_BATCH_BYTES_MAX, SPARK_BATCH_ROWS_MAX
from bolide.pipeline.columns import ColumnBuilder
from bolide.pipeline.errors import BadBody, BadRecord
from bolide.pipeline.options import ReadOptions
from bolide.pipeline.pulls import BlockReader, Piece
from bolide.pipeline.ranges import QueueRange
from bolide.pipeline.schema import built_columns, make_batch, make_row
from bolide.record.layout import open_record

log = logging.getLogger(__name__)

ADVICE = "badBodies=deliver hands it out as it is stored, badBodies=skip leaves it out"


class Pieces(NamedTuple):
    """A range as its broker gives it: `every` piece in turn, and one more from an offset on."""

    every: Iterator[Piece]
    again: Callable[[int], Piece]


def read_batches(options: ReadOptions, wanted: QueueRange, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The messages of a range, in order."""
    with asyncio.Runner() as runner:
        # Not Runner.run: it looks at signal handlers, which for some Pythons includes printing the result.
        run = runner.get_loop().run_until_complete
        instance = ClientInstance(options.nameserver)
        reader = BlockReader(QueueCalls(instance, options.group), wanted, options)
        run(instance.start())

        def every() -> Iterator[Piece]:
            while (piece := run(reader.next())) is not None:
                yield piece

        try:
            yield from Reading(options, wanted, schema).batches(
                Pieces(every(), lambda offset: run(reader.again(offset)))
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
            tags=options.wanted.subscription(wanted.queue.topic).tags,
            keys=options.wanted.keys,
            bad_bodies=options.bad_bodies,
            rows_max=SPARK_BATCH_ROWS_MAX,
            size_bytes_max=SPARK_BATCH_BYTES_MAX,
        )

    def batches(self, pieces: Pieces) -> Iterator[pa.RecordBatch]:
        for piece in pieces.every:
            yield from self._piece(piece, pieces)
        yield from self._rest()
        if left_out := self._builder.skipped + self._unreadable:
            log.warning("%s: messages left out because they cannot be read: %d", self._wanted, left_out)

    def _piece(self, piece: Piece, pieces: Pieces) -> Iterator[pa.RecordBatch]:
        try:
            for block in piece.blocks:
                yield from self._block(block, piece)
        except BadBody as error:
            raise BadBody(f"{self._wanted.queue}: {error}; {ADVICE}") from error
        except MalformedRecord as error:
            yield from self._rest()
            offset, data = _first_unreadable(piece)
            yield from self._quarantine(offset, data, error)
            offset += 1
            while offset < piece.end:
                more = pieces.again(offset)
                yield from self._piece(Piece(more.begin, min(more.end, piece.end), more.blocks, 1, 0), pieces)
                offset = more.end

    def _block(self, block: bytes, piece: Piece) -> Iterator[pa.RecordBatch]:
        at = 0
        while at < len(block):
            at = self._builder.append(block, at, piece.begin, piece.end)
            if self._builder.full:
                yield from self._rest()

    def _rest(self) -> Iterator[pa.RecordBatch]:
        if self._builder.rows:
            yield make_batch(self._schema, self._builder.rows, self._builder.take())

    def _quarantine(self, offset: int, data: bytes, error: MalformedRecord) -> Iterator[pa.RecordBatch]:
        queue = self._wanted.queue
        words = f"the record cannot be read: {error}"
        if self._options.bad_bodies == "fail":
            raise BadRecord(f"{queue}: the message at offset {offset}: {words}; {ADVICE}") from error
        if self._options.bad_bodies == "skip":
            self._unreadable += 1
            return
        log.warning("%s: the message at offset %d: %s", queue, offset, words)
        known = {
            "topic": queue.topic,
            "brokerName": queue.broker_name,
            "queueId": queue.queue_id,
            "queueOffset": offset,
            "body": data,
            "bodyError": words,
        }
        yield make_row(self._schema, known)


def _first_unreadable(piece: Piece) -> tuple[int, bytes]:
    """The offset of the first record of a piece that is none, and its bytes: as many as it says, else all the rest."""
    offset = piece.begin
    for block in piece.blocks:
        at = 0
        while at < len(block):
            try:
                record = open_record(block, at, len(block))
            except MalformedRecord:
                size = int.from_bytes(block[at : at + 4], "big")
                end = at + size if 4 <= size <= len(block) - at else len(block)
                return offset, block[at:end]
            offset, at = max(offset, record.queue_offset + 1), record.end
    raise AssertionError("asked for only when there is one")
