"""Pulling: codes 11 and 361.

Two ways in.  `on_pull` takes a plain pull; one of a shape that was asked before has its plan, and only the reading is
left.  `pull` takes any one request, decides everything that needs deciding, and gives every error.  From what was read
on, both ways are one.

Every answer carries the four offsets.  A pull that finds nothing new is held if it allows that, and executed again
when a message arrives or its time is over.
"""

from collections.abc import Iterable
from dataclasses import replace

from bolide.broker import pull_advice
from bolide.broker.handlers.offset import commit
from bolide.broker.hold import PullHold
from bolide.broker.part import Part, Work, every
from bolide.broker.pull_plans import PullPlans
from bolide.broker.pull_terms import PullTerms, bearable, is_of_writer, pull_terms
from bolide.broker.state import BrokerState
from bolide.broker.waiting_pulls import HeldPull, QueueKey
from bolide.model.offsets import GroupOffset
from bolide.model.response_code import ResponseCode
from bolide.model.topic import TopicConfig
from bolide.net.dispatch import error_answer
from bolide.net.link import Link
from bolide.net.registry import Handler
from bolide.store.reading import PullResult, PullStatus
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command, encode_frame
from bolide.wire.frame import decode_frame
from bolide.wire.headers.pull import PullAnswer, PullFlag, PullRequest
from bolide.wire.pull_frame import PullFrame

SWEEP_HOLD_S = 0.5

_CODES = {
    PullStatus.NO_MATCHED_MESSAGE: ResponseCode.PULL_RETRY_IMMEDIATELY,
    PullStatus.MESSAGE_WAS_REMOVING: ResponseCode.PULL_RETRY_IMMEDIATELY,
    PullStatus.OFFSET_OVERFLOW_ONE: ResponseCode.PULL_NOT_FOUND,
    PullStatus.OFFSET_FOUND_NULL: ResponseCode.PULL_NOT_FOUND,
    PullStatus.OFFSET_TOO_SMALL: ResponseCode.PULL_OFFSET_MOVED,
    PullStatus.OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_OFFSET_MOVED,
    PullStatus.OFFSET_RESET: ResponseCode.PULL_OFFSET_MOVED,
}


class Pulling(Part):
    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self.plans = PullPlans(state)
        self.hold = PullHold(self._resume, state.store.reader)
        state.door.on_arrival(self.hold.arrived)
        state.topics.on_delete(self._topic_deleted)
        state.offsets.on_reset(self._group_reset)

    def handlers(self) -> dict[RequestCode, Handler]:
        return {RequestCode.PULL_MESSAGE: self.pull, RequestCode.LITE_PULL_MESSAGE: self.pull}

    def work(self) -> list[Work]:
        return [("held pulls", every(SWEEP_HOLD_S, self._sweep))]

    def connection_lost(self, link: Link) -> None:
        self.hold.forget(link)

    def close(self) -> None:
        self.hold.close()

    def figures(self) -> dict[str, str]:
        """What waits and what is remembered, against the limits that it has."""
        return {
            "heldPulls": str(len(self.hold)),
            "heldPullBytes": str(self.hold.bytes_held),
            "pullPlans": str(len(self.plans)),
            "pullPlanBytes": str(self.plans.bytes_kept),
        }

    def on_pull(self, link: Link, pull: PullFrame) -> None:
        """Answer a plain pull, by its plan if it has one, else by the general path."""
        plan = self.plans.find(link, pull.shape)
        waited_ms = link.waited_ms
        if plan is None or (
            waited_ms and self._state.dispatcher.is_overdue(waited_ms, RequestCode.PULL_MESSAGE)
        ):
            request = decode_frame(pull.frame())
            self._state.dispatcher.on_request(link, request)
            self.plans.learn(link, pull.shape, request)
            link.round.was_much()
            return
        if plan.terms.filter.examine is not None:
            link.round.was_much()
        try:
            result = plan.serve(link, pull)
            if result is None:
                return
            offset, terms = pull.queue_offset, plan.terms
            if _may_wait(terms, result, offset) and self._hold(link, pull.frame(), plan.key, offset, terms):
                return
            answer = self._answer(decode_frame(pull.frame()), plan.pass_key[1], plan.key, result, offset)
        except Exception as error:
            answer = error_answer(decode_frame(pull.frame()), error)
        link.answer(answer)

    def pull(self, link: Link, request: Command) -> Command | None:
        """Messages from an offset, now or when there are some."""
        state = self._state
        header = PullRequest.decode(request.fields)
        terms = pull_terms(state, link, header, of_writer=is_of_writer(state, link, header))
        if header.sys_flag & PullFlag.COMMIT_OFFSET:
            commit(state, header.consumer_group, header.topic, header.queue_id, header.commit_offset)
        result = _read(state, link, header, terms)
        if result.status is not PullStatus.NO_MESSAGE_IN_QUEUE:  # of what was never written nothing is kept
            offset = GroupOffset(header.queue_offset)
            state.offsets.note_pull(header.consumer_group, header.topic, header.queue_id, offset)
        key = (header.topic, header.queue_id)
        if _may_wait(terms, result, header.queue_offset) and not request.is_one_way:
            # What a pull has no use for (a body, a remark) does not wait with it.
            kept = Command(
                request.code, request.fields, opaque=request.opaque, flag=request.flag, form=request.form
            )
            if self._hold(link, encode_frame(kept), key, header.queue_offset, terms):
                return None
        return self._answer(request, header.consumer_group, key, result, header.queue_offset)

    def _hold(self, link: Link, frame: bytes, key: QueueKey, offset: int, terms: PullTerms) -> bool:
        """False when there is no room for it."""
        deadline_ms = self._state.clock.monotonic_ms() + terms.wait_ms
        queue = self._state.store.queues.find(*key)
        return self.hold.add(HeldPull(link, frame, key, offset, terms.filter, deadline_ms, queue))

    def _topic_deleted(self, topic: TopicConfig) -> None:
        """Who waits for its messages hears that it is gone: of one made again it would miss the first."""
        self.hold.end((topic.name, queue_id) for queue_id in range(topic.queues))

    def _group_reset(self, topic: str, queue_ids: Iterable[int]) -> None:
        """Who waits there hears of it now, and not when the next message comes."""
        self.hold.end((topic, queue_id) for queue_id in queue_ids)

    def _sweep(self) -> None:
        self.hold.sweep(self._state.clock.monotonic_ms())

    def _resume(self, held: HeldPull) -> None:
        """Execute a held pull again; it is answered now, whatever it finds."""
        if not held.link.is_open:
            return
        request = decode_frame(held.frame)
        try:
            header = PullRequest.decode(request.fields)
            if held.link.is_congested:  # it has not read what it was sent before: it may come back for more
                result = PullResult(PullStatus.NO_MATCHED_MESSAGE, held.offset, held.offset, held.offset)
            else:
                state = self._state
                state.passes.check_pull(held.link, request, (header.topic, header.consumer_group))
                terms = pull_terms(state, held.link, header)
                queue = state.store.queues.find(header.topic, header.queue_id)
                if terms.filter == held.filter and queue is not None and queue is held.queue:
                    # What was looked at while it waited is not looked at again.
                    header = replace(header, queue_offset=max(held.offset, held.seen))
                result = _read(state, held.link, header, terms)
            answer = self._answer(request, header.consumer_group, held.key, result, header.queue_offset)
        except Exception as error:  # others wait behind this one, and must not suffer from it
            answer = error_answer(request, error)
        held.link.answer(answer)

    def _answer(
        self, request: Command, group: str, key: QueueKey, result: PullResult, offset: int
    ) -> Command:
        """What a pull from this offset hears."""
        header = PullAnswer(
            suggest_which_broker_id=pull_advice.broker_id(self._state, group, *key, result),
            next_begin_offset=pull_advice.next_offset(self._state, result),
            min_offset=result.offset_min,
            max_offset=result.offset_max,
        )
        return request.answer(_code_of(result, offset), header.encode(), result.data, result.status.value)


def _read(state: BrokerState, link: Link, header: PullRequest, terms: PullTerms) -> PullResult:
    reset = state.offsets.take_reset(header.consumer_group, header.topic, header.queue_id)
    if reset is not None and reset != header.queue_offset:
        start, end = state.store.reader.queue_range(header.topic, header.queue_id)
        return PullResult(PullStatus.OFFSET_RESET, reset, start, end)
    result = state.store.reader.pull(
        header.topic,
        header.queue_id,
        header.queue_offset,
        limits=bearable(link, terms.limits),
        filter=terms.filter,
    )
    if result.count:
        state.traffic.found += 1
        state.traffic.transferred += result.count
        state.statistics.given(header.topic, header.consumer_group).add(result.count, len(result.data))
    else:
        state.traffic.missed += 1
    return result


def _may_wait(terms: PullTerms, result: PullResult, offset: int) -> bool:
    """Whether a pull that came to this waits for more."""
    return (
        terms.wait_ms > 0
        and _code_of(result, offset) is ResponseCode.PULL_NOT_FOUND
        and result.status is not PullStatus.OFFSET_FOUND_NULL  # it goes on elsewhere
    )


def _code_of(result: PullResult, offset: int) -> ResponseCode:
    if result.status is PullStatus.FOUND:
        return ResponseCode.SUCCESS
    if result.status is PullStatus.NO_MESSAGE_IN_QUEUE:
        if offset == 0:
            return ResponseCode.PULL_NOT_FOUND
        return ResponseCode.PULL_OFFSET_MOVED
    return _CODES[result.status]
