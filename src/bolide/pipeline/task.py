"""What a Spark task does: pull the blocks of one range and give them back as Arrow batches.

Runs in a Python worker of Spark, with a connection and an event loop of its own; nothing is opened before the first
batch is asked for.  Between two batches the loop stands still, and the answers to pulls that run ahead wait in the
socket.
"""

import asyncio
import logging
from collections.abc import Iterator

import pyarrow as pa

from bolide.client.instance import ClientInstance
from bolide.client.queue_calls import QueueCalls
from bolide.model.errors import MalformedRecord
from bolide.model.spark_limits import SPARK_BATCH_BYTES_MAX, SPARK_BATCH_ROWS_MAX
from bolide.model.topic import Subscription
from bolide.pipeline.columns import ColumnBuilder
from bolide.pipeline.errors import BadBody, DataLost
from bolide.pipeline.options import ReadOptions
from bolide.pipeline.plan import QueueRange, report_loss
from bolide.pipeline.pulls import BlockReader
from bolide.pipeline.schema import make_batch

log = logging.getLogger(__name__)

Block = tuple[bytes, int, int]
"""Records as a broker gave them, and the range of offsets that is to be taken from them."""


def read_batches(options: ReadOptions, wanted: QueueRange, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The messages of a range, in order."""
    builder = ColumnBuilder(
        wanted.queue.broker_name,
        schema.names,
        tags=Subscription.parse(wanted.queue.topic, options.tags).tags,
        bad_bodies=options.bad_bodies,
        rows_max=SPARK_BATCH_ROWS_MAX,
        size_bytes_max=SPARK_BATCH_BYTES_MAX,
    )
    for block in _blocks(options, wanted):
        for _ in _append(builder, block, wanted, options):
            yield make_batch(schema, builder.rows, builder.take())
    if builder.rows:
        yield make_batch(schema, builder.rows, builder.take())
    if builder.skipped:
        log.warning("%s: messages left out because their bodies do not unpack: %d", wanted, builder.skipped)


def _append(builder: ColumnBuilder, block: Block, wanted: QueueRange, options: ReadOptions) -> Iterator[None]:
    """Append the whole block; stops whenever the batch is full."""
    data, begin, end = block
    at = 0
    while at < len(data):
        try:
            at = builder.append(data, at, begin, end)
        except BadBody as error:
            advice = "badBodies=deliver hands it out as it is stored, badBodies=skip leaves it out"
            raise BadBody(f"{wanted.queue}: {error}; {advice}") from error
        except MalformedRecord as error:
            lost = DataLost(
                f"{wanted.queue}: the broker's answer for the offsets from {begin} to {end} cannot be read: {error}"
            )
            report_loss(lost, fail=options.fail_on_data_loss)
            return  # nobody knows where the next record would begin
        if builder.full:
            yield


def _blocks(options: ReadOptions, wanted: QueueRange) -> Iterator[Block]:
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
