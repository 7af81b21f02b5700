"""TableGiving: what polls give out as columns: no object per message, whatever queue it comes from.

What is no record is asked for again, alone, and at last becomes a row of its own: its bytes, and in `bodyError` why
they cannot be read, as for a reader of Spark.  Where bad bodies are skipped, it is skipped and counted.
"""

import logging
from collections.abc import Sequence

from bolide.arrow.batches import RecordBatch, built_columns, joined, make_batch, schema_of, unreadable_row
from bolide.arrow.columns import ColumnBuilder
from bolide.client.giving import Giving
from bolide.client.lite_queue import LiteQueue
from bolide.machines.fetched import Block
from bolide.model.errors import BolideError, MalformedRecord, ProtocolError
from bolide.model.offsets import GroupOffset

log = logging.getLogger(__name__)


class TableGiving:
    """Columns of the same names, as often as they are polled for."""

    def __init__(
        self,
        giving: Giving,
        columns: Sequence[str] | None,
        rows_max: int,
        size_bytes_max: int,
        bad_bodies: str,
    ) -> None:
        self._giving = giving
        self._schema = schema_of(columns)
        self._is_skipping = bad_bodies == "skip"
        self._builder = ColumnBuilder(
            "",
            built_columns(self._schema),
            bad_bodies=bad_bodies,
            rows_max=rows_max,
            size_bytes_max=size_bytes_max,
        )
        self._unread: RecordBatch | None = None
        self._in_vain_bytes_max = size_bytes_max
        self._in_vain_bytes_end = 0

    def take(self) -> RecordBatch | None:
        """The next messages; None when there are none."""
        skipped = self._builder.skipped
        self._in_vain_bytes_end = self._builder.in_vain_bytes + self._in_vain_bytes_max
        while self._giving.is_ready and not self._is_enough and self._unread is None:
            with self._giving.turn() as held:
                self._take_of(held)
        if self._builder.skipped > skipped:
            self._giving.skipped += self._builder.skipped - skipped
            if self._giving.wanted.say_skipped.is_due():
                log.warning(
                    "skipped %d messages whose bodies do not unpack, and others perhaps",
                    self._builder.skipped - skipped,
                )
        batches = []
        if self._builder.rows:
            batches.append(make_batch(self._schema, self._builder.rows, self._builder.take()))
        if self._unread is not None:
            batches.append(self._unread)
            self._unread = None
        return joined(batches)

    @property
    def _is_enough(self) -> bool:
        """For one turn of the event loop: bodies that unpack in vain fill no batch, and must hold up nobody."""
        return self._builder.full or self._builder.in_vain_bytes >= self._in_vain_bytes_end

    def _take_of(self, held: LiteQueue) -> None:
        tags = () if held.subscription.takes_all else held.subscription.tags
        self._builder.turn_to(held.queue.broker_name, (held.queue.topic, held.queue.queue_id), tags)
        while (block := held.fetched.head) is not None and not self._is_enough:
            begin = block.begin
            try:
                at = self._builder.append(block.data, block.at, begin, block.end)
            except (MalformedRecord, ProtocolError) as error:  # none, or one of another place
                self._met(held, block, error)
                return
            held.fetched.gave(at, self._reached(begin))

    def _reached(self, begin: GroupOffset) -> GroupOffset:
        return max(begin, GroupOffset(self._builder.offset_due))

    def _met(self, held: LiteQueue, block: Block, error: BolideError) -> None:
        """A record that cannot be read, behind others or at the beginning of the block."""
        reached = self._reached(block.begin)
        if reached > block.begin:
            held.fetched.gave(block.at, reached)
            held.fetched.rewind()
        elif held.fetched.cannot_read():
            offset = block.end - 1
            log.error("%s: what is at offset %d cannot be read: %s", held.queue, offset, error)
            if self._is_skipping:
                self._giving.skipped += 1
            else:
                self._unread = unreadable_row(self._schema, held.queue, offset, block.data, error)
