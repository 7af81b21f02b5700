"""Bulk writes that are stored once, however often they are tried (30001).

Before the part of a batch sends its first message here it says so.  Whoever had the part before is cut off, with all
that it has sent and that was not served yet; then everything of the part that is stored lies between the place where
its batch began and the end of the log, and the answer says which ranges of queues that is.  Sends themselves are
ordinary ones and cost nothing more.
"""

import asyncio

from bolide.broker.part import Part
from bolide.broker.state import BrokerState
from bolide.model.addresses import host_of
from bolide.model.errors import InvalidRequest, RequestError, StoreUnavailable
from bolide.model.limits import WRITE_BROKERS_LENGTH_MAX, WRITE_BROKERS_MAX, WRITE_PARTS_MAX
from bolide.model.names import SCHEDULE_TOPIC, TIMER_TOPIC, check_id, check_topic
from bolide.model.steps import Steps
from bolide.net.link import Link
from bolide.net.registry import Handler
from bolide.net.turns import in_turns, join_pieces
from bolide.store.tables.writes import BatchBegun, WriteTable
from bolide.wire.bodies.write import StoredRange, ranges_pieces
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from bolide.wire.headers.write import BeginWrite, WriteBegun

PERSIST_MS = 1_000

QUEUES_PER_TURN = 64
"""A place of the log is looked for in a queue by some twenty reads."""


class BulkWrites(Part):
    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self.table = state.files.open(WriteTable, "bulkWrites.json", PERSIST_MS)
        self.table.fit(int(state.store.log.end))
        self._writers = state.writers

    def handlers(self) -> dict[RequestCode, Handler]:
        return {RequestCode.BEGIN_WRITE: self.begin}

    def connection_lost(self, link: Link) -> None:
        self._writers.lost(link)

    async def begin(self, link: Link, request: Command) -> Command:
        """30001: the batch's place in the log is durable before it is answered, and readers see what came before."""
        header = BeginWrite.decode(request.fields)
        brokers = _check(header)
        if self._writers.parts_of(link) >= WRITE_PARTS_MAX:
            raise InvalidRequest(f"a connection writes {WRITE_PARTS_MAX} parts of batches at most")
        begun = self._begun(header, brokers, host_of(link.remote))
        before = self._writers.take((header.writer, header.partition), header.topic, link)
        if before is not None:
            before.abort()
        fresh = self._writers.begins(header.writer, header.batch, header.partition, header.topic)
        # From here on only this connection brings something of the part, and it waits for the answer.
        ranges = [] if fresh else await in_turns(self._ranges(header, begun.log_offset))
        await self._kept(self._state.store.log.end)
        await self._state.files.saved(self.table)
        answer = WriteBegun(fresh, _joined(begun.brokers))
        return request.answer(fields=answer.encode(), body=await join_pieces(ranges_pieces(ranges)))

    def _begun(self, header: BeginWrite, brokers: frozenset[str], host: str) -> BatchBegun:
        """The batch as the table has it from now on."""
        known = self.table.get(header.writer)
        if known is not None and header.batch < known.batch:
            raise RequestError(
                f"batch {known.batch} of the writer {header.writer} has begun, so batch {header.batch} is over: this is"
                " a task that was given up, or the writer was set back, and then needs a new name"
            )
        if known is not None and header.batch > self.table.latest(known):
            raise InvalidRequest(
                f"no query comes from batch {known.batch} to batch {header.batch} in the time since that one began:"
                " a writer's batches are numbered one by one"
            )
        is_first = known is None or header.batch > known.batch
        if known is None or header.batch > known.batch:
            begun = BatchBegun(header.batch, self._state.store.log.end, brokers)
        elif brokers <= known.brokers:
            return known
        else:
            begun = BatchBegun(known.batch, known.log_offset, _check_brokers(known.brokers | brokers))
        self.table.put(header.writer, begun, host)
        if is_first:
            self._writers.first_batch(header.writer, header.batch)
        return begun

    def _ranges(self, header: BeginWrite, log_offset: int) -> Steps[list[StoredRange]]:
        """Where messages of the topic are that were stored from this place of the log on, in whatever queues it has and
        had before."""
        store = self._state.store
        found: list[StoredRange] = []
        for name in (header.topic, SCHEDULE_TOPIC, TIMER_TOPIC) if header.delays else (header.topic,):
            queue_ids = sorted(queue.tail.key[1] for queue in store.queues.of_topic(name))
            for number, queue_id in enumerate(queue_ids, 1):
                begin, end = store.reader.range_from(name, queue_id, log_offset)
                if begin < end:
                    found.append(StoredRange(name, queue_id, begin, end))
                if number % QUEUES_PER_TURN == 0:
                    yield
        return found

    async def _kept(self, end: int) -> None:
        """Readers see what was stored until now."""
        kept: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._state.door.when_kept(end, lambda is_kept: None if kept.done() else kept.set_result(is_kept))
        if not await kept:
            raise StoreUnavailable("what was stored before is not on disk yet; try again")


def _check(header: BeginWrite) -> frozenset[str]:
    check_id("writer", header.writer)
    check_topic(header.topic)
    if header.batch < 0 or header.partition < 0:
        raise InvalidRequest("a batch and its part have numbers from 0 on")
    return _check_brokers(frozenset(name for name in header.brokers.split(",") if name))


def _check_brokers(brokers: frozenset[str]) -> frozenset[str]:
    if len(brokers) > WRITE_BROKERS_MAX:
        raise InvalidRequest(
            f"a batch is written to {WRITE_BROKERS_MAX} brokers at most, not to {len(brokers)}"
        )
    if (length := len(_joined(brokers))) > WRITE_BROKERS_LENGTH_MAX:
        raise InvalidRequest(
            f"the names of a batch's brokers have {WRITE_BROKERS_LENGTH_MAX} characters at most, not {length}"
        )
    return brokers


def _joined(brokers: frozenset[str]) -> str:
    return ",".join(sorted(brokers))
