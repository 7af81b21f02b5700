"""Sending: codes 10, 310 and 320.

Two ways in.  `on_sends` takes a run of sends: plain ones are appended in compiled code, and with them those that wait
for something (`broker/detours.py`).  `send` takes any one request, decides everything that needs deciding, and
gives every error; what is left of a run comes here too.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import NamedTuple

from bolide.broker.detours import Detours
from bolide.broker.failures import sent_to_retry
from bolide.broker.lanes import Lanes
from bolide.broker.part import Part
from bolide.broker.sent_message import (
    check_numbers,
    checked_properties,
    refuse_what_is_not_kept,
    sent_message,
    stored_properties,
)
from bolide.broker.state import BrokerState
from bolide.model import names
from bolide.model.errors import (
    InvalidRequest,
    PermissionDenied,
    RequestError,
    StoreRefusal,
    StoreUnavailable,
)
from bolide.model.limits import BATCH_ODD_MESSAGES_MAX, FRAME_BYTES_MAX
from bolide.model.message import Property
from bolide.model.offsets import LogOffset
from bolide.model.pairs import parse_properties
from bolide.model.recall import handle_of
from bolide.model.response_code import ResponseCode
from bolide.model.send_rows import QUEUE_OFFSET, RECORDS_AT, RECORDS_COUNT
from bolide.model.topic import TopicConfig
from bolide.net.link import Link
from bolide.net.registry import Handler, Outcome
from bolide.record.codec import split_batch
from bolide.record.message_id import format_offset_id
from bolide.rules.topic_creation import topic_for_send
from bolide.store.append import FindDetour
from bolide.store.new_message import NewMessage
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command, encode_frame, encode_head
from bolide.wire.frame import FrameReader, Intake, decode_frame, encode_send_answers, scan_frame
from bolide.wire.headers.send import SendAnswer, SendRequest
from bolide.wire.send_run import SendRun

DETOURS_PER_REQUEST = 4
"""So many detours are decided in the time of one request of the general path."""


class _Stored(NamedTuple):
    """Where the messages of a request are now."""

    log_offsets: Sequence[int]
    queue_offset: int
    end: LogOffset
    unique_key: str | None = None
    recall_handle: str | None = None


class Sending(Part):
    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._lanes = Lanes(state.topics, state.store, self._may_run)
        self._detours = Detours(state)
        self._turns: dict[str, int] = {}  # whose turn it is among a topic's queues
        state.topics.on_change(self._forget)
        state.settings.on_change(self._forget)

    def handlers(self) -> dict[RequestCode, Handler]:
        return {
            RequestCode.SEND_MESSAGE: self.send,
            RequestCode.SEND_MESSAGE_V2: self.send,
            RequestCode.SEND_BATCH_MESSAGE: self.send,
        }

    def on_sends(self, link: Link, run: SendRun, requests_max: int) -> tuple[int, int]:
        """Append a run, answer it, and give what is left to the general path, in the order of the frames.

        Stops when so many went there; tells the first row that was not served, and how many went there.  Where messages
        wait is decided here, and counts for less.
        """
        state, door = self._state, self._state.door
        lanes = self._lanes.of(run.topics, link, state.passes)
        find: FindDetour | None = self._detours.find
        if link.waited_ms and state.dispatcher.is_overdue(link.waited_ms, RequestCode.SEND_MESSAGE_V2):
            find = None  # each hears that it has waited too long
        first = requests = 0
        while first < run.count and requests < requests_max:
            try:
                row, needs_general_path = door.append_run(link, run, lanes, first, find)
            except (RequestError, StoreRefusal):  # the general path meets the same and says so
                row, needs_general_path = first, True
            if row > first:
                self._acknowledge(link, run, first, row)
            requests += -(-self._detours.take_asked() // DETOURS_PER_REQUEST)
            if needs_general_path:
                state.dispatcher.on_request(link, decode_frame(run.frame(row)))
                row += 1
                requests += 1
            first = row
        return first, requests

    def _acknowledge(self, link: Link, run: SendRun, first: int, last: int) -> None:
        identity = self._state.identity
        answers = encode_send_answers(run, first, last, identity.host_hex, identity.answer_tail)
        if answers:
            self._state.door.acknowledge(link, answers, _late)

    def send(self, link: Link, request: Command) -> Outcome | Coroutine[None, None, Outcome]:
        """Store one message or batch; answered once it is as safe as was promised."""
        state = self._state
        if request.code == RequestCode.SEND_MESSAGE:
            header = SendRequest.decode_long(request.fields)
        else:
            header = SendRequest.decode(request.fields)
        check_numbers(header)
        if state.new_topics.must_wait(header.topic):
            return state.new_topics.when_free(header.topic, lambda: self.send(link, request))
        topic = self._writable_topic(header)
        least = max(0, header.queue_id)  # who leaves the choice to us needs a queue, too
        if least >= topic.queues:
            raise InvalidRequest(
                f"queue {least} does not exist: the topic {topic.name} has {topic.queues} queues"
            )
        if topic.name.startswith(names.RETRY_PREFIX) and not header.batch:
            header, topic = sent_to_retry(state, link, header, topic, request.version)
        properties = checked_properties(state, header, topic.name, request.body)
        queue_id = header.queue_id if header.queue_id >= 0 else self._choose_queue(topic)
        messages = []
        if not header.batch:
            message = sent_message(state, link, header, topic.name, queue_id, request.body, properties)
            messages = [state.diversions.of(message, properties)]
        if state.topics.get(topic.name) is None:
            state.new_topics.put(topic)  # last: what is refused costs no topic
        stored = self._append_plain(link, request, topic, queue_id) if header.batch else None
        if stored is None:
            stored = _append(state, messages or _batch(state, link, request, header, topic.name, queue_id))
        answer = _answer(state, request, queue_id, stored)
        end = stored.end if properties.get(Property.WAIT) != "false" else LogOffset(0)
        return answer_stored(state, link, request, answer, topic.name, end)

    def _append_plain(
        self, link: Link, request: Command, topic: TopicConfig, queue_id: int
    ) -> "_Stored | None":
        """A batch whose messages are all plain, in compiled code; None when they are not.

        It may be here because its topic is new, and it may be long.
        """
        queue = "queueId" if request.code == RequestCode.SEND_MESSAGE else "e"
        plain = Command(request.code, {**request.fields, queue: str(queue_id)}, request.body)
        run = scan_frame(encode_head(plain, len(plain.body)), plain.body)
        lane = self._state.store.lane(topic.name, topic.queues, topic.write_queues)
        if run.count == 0 or self._state.door.append_run(link, run, [lane], 0)[0] == 0:
            return None
        at = run.column(0, RECORDS_AT)
        offsets = run.log_offsets[at : at + run.column(0, RECORDS_COUNT)]
        return _Stored(offsets, run.column(0, QUEUE_OFFSET), self._state.store.log.end)

    def _writable_topic(self, header: SendRequest) -> TopicConfig:
        """The topic to write to; where that is allowed, one that is still to be created."""
        name = topic_of_clients(header.topic)
        topic = self._state.topics.get(name)
        if topic is None:
            topic = topic_for_send(
                name,
                self._state.topics.get(header.default_topic),
                header.default_topic_queues,
                auto_create=self._state.settings.now.auto_create_topic,
            )
        if topic.order and not self._state.settings.now.writable:
            raise PermissionDenied(f"the broker {self._state.identity.name} takes no messages now")
        return topic

    def _choose_queue(self, topic: TopicConfig) -> int:
        """A write queue for a message that left the choice to us."""
        turn = self._turns[topic.name] = self._turns.get(topic.name, 0) + 1
        return turn % max(1, topic.write_queues)

    def _may_run(self, topic: TopicConfig) -> bool:
        """Whether plain messages to this topic need no decision at the moment."""
        new_topics = self._state.new_topics
        if new_topics.is_unwritten(topic.name) or new_topics.must_wait(topic.name):
            return False
        return self._state.settings.now.writable or not topic.order

    def _forget(self) -> None:
        self._lanes.forget()
        self._turns.clear()


def topic_of_clients(name: str) -> str:
    """The name of a topic that clients may send to."""
    if names.check_topic(name) in names.NO_SEND_TOPICS:
        raise PermissionDenied(f"the topic {name} is the broker's own; clients may not send to it")
    return name


def answer_stored(
    state: BrokerState, link: Link, request: Command, answer: Command, topic: str, end: LogOffset
) -> Coroutine[None, None, Command] | None:
    """Answer a request that has stored a message of this topic, once the log is kept up to `end`."""
    if request.is_one_way:
        return None
    if state.new_topics.is_unwritten(topic):
        return _answer_when_known(state, answer, end)
    state.door.when_kept(end, lambda kept: _answer_kept(link, request, answer, kept))
    return None


async def _answer_when_known(state: BrokerState, answer: Command, end: LogOffset) -> Command:
    """The answer for a message of a new topic: when topics.json holds the topic, and the message is kept."""
    try:
        await state.new_topics.known()
    except StoreUnavailable as error:
        answer.code = ResponseCode.FLUSH_DISK_TIMEOUT
        answer.remark = f"the message is stored: {error}"
        return answer
    kept: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    state.door.when_kept(end, kept.set_result)
    if not await asyncio.shield(kept):
        _say_late(answer)
    return answer


def _batch(
    state: BrokerState, link: Link, request: Command, header: SendRequest, topic: str, queue_id: int
) -> list[NewMessage]:
    """The messages of a batch that is not plain; everything about them that can be refused is."""
    batch = split_batch(request.body, BATCH_ODD_MESSAGES_MAX)
    items = [(flag, item, text.decode("utf-8", "replace")) for flag, item, text in batch]
    pairs = [parse_properties(text) for _, _, text in items]
    for one in pairs:
        refuse_what_is_not_kept(header, one)
    return [
        NewMessage(
            topic=topic,
            queue_id=queue_id,
            body=item,
            properties=stored_properties(state, text, one, b""),
            flag=flag,
            sys_flag=header.sys_flag,
            born_timestamp_ms=header.born_timestamp_ms,
            born_host=link.remote_host,
            reconsume_times=header.reconsume_times,
        )
        for (flag, item, text), one in zip(items, pairs, strict=True)
    ]


def _append(state: BrokerState, messages: list[NewMessage]) -> _Stored:
    appended = state.door.append(messages)
    first = messages[0].pairs()
    return _Stored(
        [one.log_offset for one in appended],
        appended[0].queue_offset,
        appended[-1].end,
        first.get(Property.UNIQUE_KEY),
        handle_of(first, state.identity.name) if messages[0].topic == names.TIMER_TOPIC else None,
    )


def _answer(state: BrokerState, request: Command, queue_id: int, stored: _Stored) -> Command:
    host = state.identity.store_host
    ids = ",".join(format_offset_id(host, LogOffset(offset)) for offset in stored.log_offsets)
    header = SendAnswer(
        msg_id=ids,
        queue_id=queue_id,
        queue_offset=stored.queue_offset,
        transaction_id=stored.unique_key,
        region=state.settings.now.region,
        trace_on="true" if state.settings.now.trace_on else "false",
        recall_handle=stored.recall_handle,
    )
    return request.answer(fields=header.encode())


def _answer_kept(link: Link, request: Command, answer: Command, kept: bool) -> None:
    if not kept:
        _say_late(answer)
    if not request.is_one_way:
        link.answer(answer)


def _say_late(answer: Command) -> None:
    answer.code = ResponseCode.FLUSH_DISK_TIMEOUT
    answer.remark = "the message is stored, but syncing it to disk took too long"


def _late(answers: bytes) -> bytes:
    """The same answers, saying that it took too long; rare enough to decode them again."""
    frames: list[bytes] = []
    reader = FrameReader(Intake(len(answers)), header_bytes_max=FRAME_BYTES_MAX)  # a batch has many ids
    for answer in reader.feed(answers):
        _say_late(answer)
        frames.append(encode_frame(answer))
    return b"".join(frames)
