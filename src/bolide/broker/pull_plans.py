"""Plans of pulls: what a pull of one shape comes to, so that the next one like it needs no second check.

A shape is a request without its offsets.  A plan holds for whoever sends that shape, and as long as nothing changes
that it was made from: what others do with their topics and groups leaves it alone.  Whether this connection may have
it is the guard's to say (`net/guard.py`).  Plans that are not used make room for others.
"""

from collections import OrderedDict
from operator import is_

from bolide.broker.pull_terms import pull_terms
from bolide.broker.state import BrokerState
from bolide.model.errors import BolideError, RequestError, StoreRefusal
from bolide.model.limits import PLAN_SHAPE_BYTES_MAX, PLANS_BYTES_MAX
from bolide.model.offsets import GroupOffset
from bolide.net.link import Link
from bolide.store.queue_entry import ENTRY_BYTES
from bolide.store.reading import WINDOW_ENTRIES
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
        "_commits",
        "_cursor",
        "_group",
        "_made_from",
        "_plans",
        "_queue_id",
        "_state",
        "_takes_group_s_word",
        "_terms",
        "_topic",
        "pass_key",
        "shape",
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
        self.pass_key = (header.topic, header.consumer_group)
        self._queue_id = header.queue_id
        self._commits = bool(header.sys_flag & PullFlag.COMMIT_OFFSET)
        self._takes_group_s_word = not header.sys_flag & PullFlag.SUBSCRIPTION
        self._terms = pull_terms(state, link, header)
        self._cursor = state.store.reader.cursor(header.topic, header.queue_id)
        self._made_from = self._basis()

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
        )

    @property
    def holds(self) -> bool:
        """Whether nothing has changed that it was made from."""
        return all(map(is_, self._basis(), self._made_from))

    @property
    def size(self) -> int:
        """About the bytes that it takes, without what it has read ahead."""
        return PLAN_BYTES + len(self.shape) + CODE_BYTES * len(self._terms.filter.codes or ())

    @property
    def has_queue(self) -> bool:
        return self._cursor.queue is not None

    @property
    def entries_bytes(self) -> int:
        return len(self._cursor.entries)

    def release(self) -> None:
        """Keep nothing in memory until the next pull."""
        self._cursor.release()

    def serve(self, link: Link, pull: PullFrame) -> bool:
        """Answer with messages; False, with nothing done, when there are none to be had at once."""
        cursor, state = self._cursor, self._state
        queue = cursor.queue
        offset = pull.queue_offset
        if queue is None or not queue.start <= offset < queue.end:
            cursor.release()  # most readers wait at the end of their queue
            return False
        entries = cursor.entries
        result = state.store.reader.pull_at(cursor, offset, self._terms.limits, self._terms.filter)
        if cursor.entries is not entries:
            self._plans.reads_ahead(self)
        if not result.count:
            return False
        if self._commits:
            state.offsets.commit(self._group, self._topic, self._queue_id, pull.commit_offset, queue.end)
        state.offsets.note_pull(self._group, self._topic, self._queue_id, GroupOffset(offset))
        state.traffic.found += 1
        state.traffic.transferred += result.count
        head = encode_found(
            pull.opaque, result.next_offset, result.offset_min, result.offset_max, len(result.data)
        )
        link.write_parts(head, result.data)
        return True


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

    def serve(self, link: Link, pull: PullFrame) -> bool:
        """Answer a pull by its plan, if it has one, the connection may have it, and there are messages."""
        plan = self._find(pull.shape)
        if plan is None or not self._state.passes.may_pull(link, plan.pass_key):
            return False
        self._plans.move_to_end(pull.shape)
        try:
            return plan.serve(link, pull)
        except (BolideError, OSError):  # the general path meets the same and says so
            return False

    def learn(self, link: Link, shape: bytes, request: Command) -> None:
        """Remember what a pull came to, unless it was refused or its queue was never written to."""
        if len(shape) > PLAN_SHAPE_BYTES_MAX or SIGNATURE in request.fields or self._find(shape) is not None:
            return
        try:
            header = PullRequest.decode(request.fields)
            if header.topic not in self._state.topics or header.consumer_group not in self._state.groups:
                return  # the guard's word on names that somebody made up is not worth remembering
            if not self._state.passes.may_pull(link, (header.topic, header.consumer_group)):
                return
            plan = PullPlan(self, self._state, link, shape, header)
        except (RequestError, StoreRefusal):
            return
        if plan.has_queue:
            self._plans[shape] = plan
            self.bytes_kept += plan.size
            while self.bytes_kept > PLANS_BYTES_MAX:
                self._forget(next(iter(self._plans)))

    def _find(self, shape: bytes) -> PullPlan | None:
        plan = self._plans.get(shape)
        if plan is None or plan.holds:
            return plan
        self._forget(shape)
        return None

    def _forget(self, shape: bytes) -> None:
        plan = self._plans.pop(shape)
        self._reading.pop(plan, None)
        self.bytes_kept -= plan.size
