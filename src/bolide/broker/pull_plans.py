"""Plans of pulls: what a pull of one shape comes to, so that the next one like it needs no second check.

A shape is a request without its offsets.  A plan holds for whoever sends that shape, and as long as nothing changes
that it was made from: what others do with their topics and groups leaves it alone.  Whether this connection may have
it is the guard's to say (`net/guard.py`).  Plans that are not used make room for others.
"""

from collections import OrderedDict
from operator import is_

from bolide.broker.own_offsets import check_offsets_change
from bolide.broker.pull_terms import bearable, pull_terms
from bolide.broker.state import BrokerState
from bolide.model.errors import RequestError, StoreRefusal
from bolide.model.limits import PLAN_SHAPE_BYTES_MAX, PLANS_BYTES_MAX
from bolide.model.offsets import GroupOffset
from bolide.net.link import Link
from bolide.store.queue_entry import ENTRY_BYTES
from bolide.store.reading import WINDOW_ENTRIES, PullResult
from bolide.wire.command import Command
from bolide.wire.frame import encode_found
from bolide.wire.headers.pull import PullFlag, PullRequest
from bolide.wire.pull_frame import PullFrame

PLAN_BYTES = 1536
CODE_BYTES = 100
"""About what a plan takes beside its shape, and with each tag that it wants."""

SIGNATURE = "Signature"
"""The field that differs in every request of a client with a secret key: its pulls have no shape that comes again."""

READING_MAX = 4096
"""Plans that keep entries read ahead; who was served longest ago loses them, and reads them again."""


class PullPlan:
    """What a pull of one shape comes to, whatever offset it asks for."""

    __slots__ = (
        *(
            "_commits",
            "_cursor",
            "_given",
            "_group",
            "_looked_at",
            "_made_from",
            "_plans",
            "_queue_id",
            "_state",
        ),
        *("_takes_group_s_word", "_topic", "key", "pass_key", "shape", "terms"),
    )

    def __init__(
        self, plans: "PullPlans", state: BrokerState, link: Link, shape: bytes, header: PullRequest
    ) -> None:
        """Raises what the general path would answer with."""
        self._plans = plans
        self.shape = shape
        self._state = state
        self._group = header.consumer_group
        self._topic = header.topic
        self.key = (header.topic, header.queue_id)
        self.pass_key = (header.topic, header.consumer_group)
        self._queue_id = header.queue_id
        self._commits = bool(header.sys_flag & PullFlag.COMMIT_OFFSET)
        self._takes_group_s_word = not header.sys_flag & PullFlag.SUBSCRIPTION
        self.terms = pull_terms(state, link, header)
        if self._commits:
            check_offsets_change(self._group)
        self._cursor = state.store.reader.cursor(header.topic, header.queue_id)
        self._given = state.statistics.given(header.topic, header.consumer_group)
        self._made_from = self._basis()
        self._looked_at: tuple[object, ...] = ()  # the tables, as they were when all of that held last

    def _basis(self) -> tuple[object, ...]:
        """Everything that the terms of a pull depend on.  Each is replaced when it changes, never altered."""
        state = self._state
        members = state.clients.group(self._group) if self._takes_group_s_word else None
        return (
            state.settings.version,
            state.topics.get(self._topic),
            state.groups.get(self._group),
            members and members.message_model,
            members and members.subscriptions.get(self._topic),
            state.offsets.resets_of(self._group, self._topic),
        )

    @property
    def holds(self) -> bool:
        """Whether nothing has changed that it was made from.  Between most pulls no table has changed at all."""
        state = self._state
        versions = (
            *(state.settings.version, state.topics.version, state.groups.version, state.clients.version),
            state.offsets.resets,
        )
        if versions == self._looked_at:
            return True
        if not all(map(is_, self._basis(), self._made_from)):
            return False
        self._looked_at = versions
        return True

    @property
    def size(self) -> int:
        """About the bytes that it takes, without what it has read ahead."""
        filter = self.terms.filter
        return PLAN_BYTES + len(self.shape) + CODE_BYTES * len(filter.codes or ()) + filter.examine_bytes

    @property
    def has_messages(self) -> bool:
        """Whether its queue was ever written to."""
        queue = self._cursor.queue
        return queue is not None and queue.end > 0

    @property
    def entries_bytes(self) -> int:
        return len(self._cursor.entries)

    def release(self) -> None:
        """Keep nothing in memory until the next pull."""
        self._cursor.release()

    def serve(self, link: Link, pull: PullFrame) -> PullResult | None:
        """Answer with messages; when there are none to be had, gives what was found instead."""
        cursor, state = self._cursor, self._state
        queue, entries, offset = cursor.queue, cursor.entries, pull.queue_offset
        assert queue is not None, "there is no plan without one"
        limits = bearable(link, self.terms.limits)
        result = state.store.reader.pull_at(cursor, offset, limits, self.terms.filter)
        if self._commits:
            end = queue.tail.next_offset
            state.offsets.commit(self._group, self._topic, self._queue_id, pull.commit_offset, end)
        state.offsets.note_pull(self._group, self._topic, self._queue_id, GroupOffset(offset))
        if not result.count:
            cursor.release()  # most readers wait at the end of their queue
            state.traffic.missed += 1
            return result
        if cursor.entries is not entries:
            self._plans.reads_ahead(self)
        state.traffic.found += 1
        state.traffic.transferred += result.count
        self._given.add(result.count, len(result.data))
        head = encode_found(
            pull.opaque, result.next_offset, result.offset_min, result.offset_max, len(result.data)
        )
        link.write_parts(head, result.data)
        return None


class PullPlans:
    """Plans by shape, the one not used for longest first."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._plans: OrderedDict[bytes, PullPlan] = OrderedDict()
        self._reading: OrderedDict[PullPlan, None] = OrderedDict()
        self.bytes_kept = 0

    def __len__(self) -> int:
        return len(self._plans)

    @property
    def entries_bytes(self) -> int:
        """What all plans have read ahead."""
        return sum(plan.entries_bytes for plan in self._plans.values())

    def reads_ahead(self, plan: PullPlan) -> None:
        """A plan has read entries for its next pulls; it keeps them if they are few, and others do not."""
        if plan.entries_bytes > WINDOW_ENTRIES * ENTRY_BYTES:
            plan.release()
            return
        self._reading[plan] = None
        self._reading.move_to_end(plan)
        if len(self._reading) > READING_MAX:
            self._reading.popitem(last=False)[0].release()

    def find(self, link: Link, shape: bytes) -> PullPlan | None:
        """The plan of pulls of this shape, if there is one and the connection may have it."""
        plan = self._plans.get(shape)
        if plan is None:
            return None
        if not plan.holds:
            self._forget(shape)
            return None
        if not self._state.passes.may_pull(link, plan.pass_key):
            return None
        self._plans.move_to_end(shape)
        return plan

    def learn(self, link: Link, shape: bytes, request: Command) -> None:
        """Remember what a pull came to, unless it was refused or its queue was never written to."""
        if len(shape) > PLAN_SHAPE_BYTES_MAX or SIGNATURE in request.fields or shape in self._plans:
            return
        if self._state.settings.now.slave_read:
            return  # which broker to ask next is found out anew for each pull
        try:
            header = PullRequest.decode(request.fields)
            if header.topic not in self._state.topics or header.consumer_group not in self._state.groups:
                return  # the guard's word on names that somebody made up is not worth remembering
            if not self._state.passes.may_pull(link, (header.topic, header.consumer_group)):
                return
            plan = PullPlan(self, self._state, link, shape, header)
        except (RequestError, StoreRefusal):
            return
        if plan.has_messages:
            self._plans[shape] = plan
            self.bytes_kept += plan.size
            while self.bytes_kept > PLANS_BYTES_MAX:
                self._forget(next(iter(self._plans)))

    def _forget(self, shape: bytes) -> None:
        plan = self._plans.pop(shape)
        self._reading.pop(plan, None)
        self.bytes_kept -= plan.size
