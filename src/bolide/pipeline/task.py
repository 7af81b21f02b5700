"""What a Spark task does: pull the blocks of one range and give them back as Arrow batches.

Runs in a Python worker of Spark, with a connection and an event loop of its own; nothing is opened before the first
batch is asked for.  Between two batches the loop stands still, and the answers to pulls that run ahead wait in the
socket.
"""

import asyncio
from collections.abc import Iterator

import pyarrow as pa

from bolide.client.instance import ClientInstance
from bolide.client.queue_calls import QueueCalls
from bolide.model.errors import MalformedRecord
from bolide.model.topic import Subscription
from bolide.pipeline.columns import ColumnBuilder
from bolide.pipeline.options import ReadOptions
from bolide.pipeline.plan import QueueRange
from bolide.pipeline.pulls import BlockReader
from bolide.pipeline.schema import make_batch

BATCH_ROWS_MAX = 65_536
BATCH_BYTES_MAX = 8 * 1024 * 1024


def read_batches(options: ReadOptions, wanted: QueueRange, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The messages of a range, in order."""
    builder = ColumnBuilder(
        wanted.queue.broker_name,
        schema.names,
        tags=Subscription.parse(wanted.queue.topic, options.tags).tags,
        rows_max=BATCH_ROWS_MAX,
        size_bytes_max=BATCH_BYTES_MAX,
    )
    for block, begin, end in _blocks(options, wanted):
        at = 0
        while at < len(block):
            try:
                at = builder.append(block, at, begin, end)
            except MalformedRecord as error:
                raise MalformedRecord(f"{wanted.queue}: {error}") from error
            if builder.full:
                yield make_batch(schema, builder.rows, builder.take())
    if builder.rows:
        yield make_batch(schema, builder.rows, builder.take())


def _blocks(options: ReadOptions, wanted: QueueRange) -> Iterator[tuple[bytes, int, int]]:
    """Each block, and the range of offsets that is to be taken from it."""
    with asyncio.Runner() as runner:
        # Not Runner.run: it looks at signal handlers, which for some Pythons includes printing the result.
        run = runner.get_loop().run_until_complete
        instance = ClientInstance(options.nameserver)
        reader = BlockReader(QueueCalls(instance, options.group), wanted, options)
        run(instance.start())
        try:
            while (piece := run(reader.next())) is not None:
                yield from ((block, piece.begin, piece.end) for block in piece.blocks)
        finally:
            run(reader.close())
            run(instance.close())
