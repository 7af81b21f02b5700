"""What a Spark task does that writes: batches of rows to frames, frames to brokers, until all is acknowledged.

Runs in a Python worker of Spark, with connections and an event loop of its own; nothing is opened for a partition
without rows.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from bolide.arrow.frames import Frame, frames_of, queue_ids_of, rest_of
from bolide.arrow.row_columns import cut
from bolide.arrow.rows import RowEncoder
from bolide.model.errors import BadRow, MessageIllegal
from bolide.model.limits import (
    SPARK_WRITE_FRAME_BYTES_MAX,
    SPARK_WRITE_FRAME_ROWS_MAX,
    SPARK_WRITE_TOPICS_MAX,
)
from bolide.pipeline.account import Scope
from bolide.pipeline.pace import Pace, messages_at_once
from bolide.pipeline.refused import refused, without
from bolide.pipeline.sender import Receipts, Sender, Target
from bolide.pipeline.write_options import WriteOptions

log = logging.getLogger(__name__)

ADVICE = "badRows=skip leaves such rows out"

T = TypeVar("T")
Run = Callable[[Coroutine[Any, Any, T]], T]


@dataclass(frozen=True)
class Written:
    """How many messages a task has stored, how many an attempt before it had stored, and how many rows it left out."""

    rows: int = 0
    stored_before: int = 0
    left_out: int = 0


def write_batches(
    options: WriteOptions,
    scope: Scope | None,
    batches: Iterator[pa.RecordBatch],
    receipts: Receipts | None = None,
    pace: Pace | None = None,
) -> Written:
    """Write all rows; returns when every message is acknowledged.  `receipts` hears of each acknowledgement.

    `pace` is one that several writes share, so that together they keep to the rate.
    """
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return Written()
    with asyncio.Runner() as runner:
        # Not Runner.run: it looks at signal handlers, which for some Pythons includes printing the result.
        run = runner.get_loop().run_until_complete
        instance = options.cluster.instance()
        instance.act_as_producer(options.group)
        delays = not {"delay_level", "deliver_at"}.isdisjoint(first.schema.names)
        sender = Sender(instance, options, scope, delays=delays, receipts=receipts, pace=pace)
        encoders = _Encoders(options, scope)
        run(instance.start())
        try:
            for batch in _from(first, batches):
                for frame in encoders.frames(batch, lambda topic: run(sender.target(topic))):
                    run(sender.send(frame))
            for frame in encoders.rest():
                run(sender.send(frame))
            run(sender.finish())
        finally:
            run(sender.close())
            run(instance.close())
        if encoders.left_out:
            log.warning("rows left out because they are no messages: %d", encoders.left_out)
        return Written(sender.rows, encoders.skipped, encoders.left_out)


def _from(first: pa.RecordBatch, others: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from others


class _Encoders:
    """An encoder for each topic, and one more for its messages that wait."""

    def __init__(self, options: WriteOptions, scope: Scope | None) -> None:
        self._options = options
        self._scope = scope
        self._frame_rows_max = messages_at_once(options.rate, SPARK_WRITE_FRAME_ROWS_MAX)
        self._encoders: dict[tuple[str, bool], RowEncoder] = {}
        self._rows = 0
        self.left_out = 0

    @property
    def skipped(self) -> int:
        return sum(encoder.skipped for encoder in self._encoders.values())

    def frames(self, batch: pa.RecordBatch, target: Callable[[str], Target]) -> list[Frame]:
        """The batch as frames, all of them before the first is sent: a row that is no message is found in time."""
        topic = self._options.topic
        wrong = refused(batch, topic) if self._options.skip_bad_rows else {}
        frames: list[Frame] = []
        try:
            for rows in cut(without(batch, wrong), topic) if len(wrong) < batch.num_rows else ():
                encoder = self._encoder(target(rows.topic), delayed=rows.delayed)
                frames += frames_of(rows, encoder)
        except BadRow as error:
            place = [row for row in range(batch.num_rows) if row not in wrong][error.row]
            advice = "" if error.column == "queue_id" else f"; {ADVICE}"
            raise BadRow(self._rows + place, error.column, f"{error.why}{advice}") from None
        self._rows += batch.num_rows
        self.left_out += len(wrong)
        return frames

    def rest(self) -> list[Frame]:
        """What is left in the lanes."""
        return [frame for (topic, _), encoder in self._encoders.items() for frame in rest_of(topic, encoder)]

    def _encoder(self, target: Target, *, delayed: bool) -> RowEncoder:
        found = self._encoders.get((target.topic, delayed))
        if found is not None:
            return found
        if len(self._encoders) >= SPARK_WRITE_TOPICS_MAX:
            raise MessageIllegal(
                f"one task writes to {SPARK_WRITE_TOPICS_MAX} topics at most: repartition by topic before the write"
            )
        prefix, seed = (secrets.token_hex(8).upper(), None)
        if self._scope is not None:
            prefix, seed = self._scope.prefix_and_seed(target.topic)
        found = self._encoders[target.topic, delayed] = RowEncoder(
            prefix,
            seed=seed,
            stored=target.stored,
            queues=len(target.queues),
            queue_ids=queue_ids_of(target.queues),
            rows_max=1 if delayed else self._frame_rows_max,
            size_bytes_max=SPARK_WRITE_FRAME_BYTES_MAX,
        )
        return found
