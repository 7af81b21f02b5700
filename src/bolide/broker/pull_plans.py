"""Plans of pulls: what a pull of one shape comes to, so that the next one like it needs no second check.

A shape is a request without its offsets.  A plan holds for whoever sends that shape, and as long as nothing changes
that it was made from; whether this connection may have it is the guard's to say (`net/guard.py`).
"""

from collections import OrderedDict

from bolide.broker.pull_terms import pull_terms
from bolide.broker.state import BrokerState
from bolide.model.errors import BolideError, RequestError, StoreRefusal
from bolide.model.offsets import GroupOffset
from bolide.net.link import Link
from bolide.store.queue_entry import ENTRY_BYTES
from bolide.store.reading import WINDOW_ENTRIES
from bolide.wire.command import Command
from bolide.wire.frame import encode_found
from bolide.wire.headers.pull import PullFlag, PullRequest
from bolide.wire.pull_frame import PullFrame

PLANS_MAX = 65_536
"""Shapes of pulls that are remembered; others take the general path."""

SHAPE_BYTES_MAX = 2048
"""Real ones have some hundred; longer ones take the general path, too."""

READING_MAX = 4096
"""Plans that keep entries read ahead; who was served longest ago loses them, and reads them again."""


class PullPlan:
    """What a pull of one shape comes to, whatever offset it asks for."""

    __slots__ = (
        "_commits",
        "_cursor",
        "_group",
        "_plans",
        "_queue_id",
        "_state",
        "_terms",
        "_topic",
        "pass_key",
    )

    def __init__(self, plans: "PullPlans", state: BrokerState, header: PullRequest) -> None:
        """Raises what the general path would answer with."""
        self._plans = plans
        self._state = state
        self._group = header.consumer_group
        self._topic = header.topic
        self.pass_key = (header.topic, header.consumer_group)
        self._queue_id = header.queue_id
        self._commits = bool(header.sys_flag & PullFlag.COMMIT_OFFSET)
        self._terms = pull_terms(state, header)
        self._cursor = state.store.reader.cursor(header.topic, header.queue_id)

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
    """Plans by shape.  All are forgotten when anything changes that one of them was made from."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._plans: dict[bytes, PullPlan] = {}
        self._reading: OrderedDict[PullPlan, None] = OrderedDict()
        self._made_from: object = None

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
        try:
            return plan.serve(link, pull)
        except (BolideError, OSError):  # the general path meets the same and says so
            return False

    def learn(self, link: Link, shape: bytes, request: Command) -> None:
        """Remember what a pull came to, unless it was refused or its queue was never written to."""
        if len(shape) > SHAPE_BYTES_MAX or len(self._plans) >= PLANS_MAX or self._find(shape) is not None:
            return
        try:
            header = PullRequest.decode(request.fields)
            if not self._state.passes.may_pull(link, (header.topic, header.consumer_group)):
                return
            plan = PullPlan(self, self._state, header)
        except (RequestError, StoreRefusal):
            return
        if plan.has_queue and self._find(shape) is None:  # asking for the terms may have made a group
            self._plans[shape] = plan

    def _find(self, shape: bytes) -> PullPlan | None:
        state = self._state
        now = (state.settings.version, state.topics.version, state.groups.version, state.clients.revision)
        if now != self._made_from:
            self._made_from = now
            self._plans.clear()
            self._reading.clear()
        return self._plans.get(shape)
