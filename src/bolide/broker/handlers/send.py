"""Sending: codes 10, 310 and 320.

Two ways in.  `on_sends` takes a run of plain sends and appends it in compiled code.  `send` takes any one request,
decides everything that needs deciding, and gives every error; rows of a run that are not plain come here too.
"""

import asyncio
import re
from collections.abc import Coroutine, Sequence
from typing import NamedTuple

from bolide.broker.lanes import Lanes
from bolide.broker.part import Part
from bolide.broker.state import BrokerState
from bolide.model import names
from bolide.model.errors import (
    InvalidRequest,
    MessageIllegal,
    PermissionDenied,
    RequestError,
    StoreRefusal,
    StoreUnavailable,
)
from bolide.model.limits import BATCH_ODD_MESSAGES_MAX, FRAME_BYTES_MAX
from bolide.model.message import (
    NAME_END,
    PAIR_END,
    PROPERTIES_BYTES_MAX,
    TRANSACTION_MASK,
    Property,
    SysFlag,
    is_true,
    parse_properties,
)
from bolide.model.numbers import is_int32
from bolide.model.offsets import LogOffset
from bolide.model.properties import NOT_STORED, SCHEDULING
from bolide.model.response_code import ResponseCode
from bolide.model.send_rows import QUEUE_OFFSET, RECORDS_AT, RECORDS_COUNT
from bolide.model.topic import TopicConfig
from bolide.net.link import Link
from bolide.net.registry import Handler
from bolide.record.codec import split_batch
from bolide.record.layout import RECORD_CHECKSUM_BYTES
from bolide.record.message_id import format_offset_id
from bolide.rules.topic_creation import topic_for_send
from bolide.store.new_message import NewMessage
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command, encode_frame, encode_head
from bolide.wire.frame import FrameReader, Intake, decode_frame, encode_send_answers, scan_frame
from bolide.wire.headers.send import SendAnswer, SendRequest
from bolide.wire.send_run import SendRun

# Pairs the broker writes itself, or that are not worth storing.
_NOT_STORED = re.compile(rf"(?:^|(?<=\x02))(?:{'|'.join(map(re.escape, NOT_STORED))})\x01[^\x02]*(?:\x02|$)")


_Item = tuple[int, bytes, bytes]
"""Flag, body, and properties as they are stored."""


class _Stored(NamedTuple):
    """Where the messages of a request are now."""

    log_offsets: Sequence[int]
    queue_offset: int
    end: LogOffset
    unique_key: str | None = None


class Sending(Part):
    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._lanes = Lanes(state.topics, state.store, self._may_run)
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
        """Append a run, answer it, and give what is not plain to the general path, in the order of the frames.

        Stops when so many went there; tells the first row that was not served, and how many went there.
        """
        state, door = self._state, self._state.door
        lanes = self._lanes.of(run.topics, link, state.passes)
        first = requests = 0
        while first < run.count and requests < requests_max:
            try:
                row, needs_general_path = door.append_run(link, run, lanes, first)
            except (RequestError, StoreRefusal):  # the general path meets the same and says so
                row, needs_general_path = first, True
            if row > first:
                answers = encode_send_answers(
                    run, first, row, state.identity.host_hex, state.identity.answer_tail
                )
                if answers:
                    door.acknowledge(link, answers, _late)
            if needs_general_path:
                state.dispatcher.on_request(link, decode_frame(run.frame(row)))
                row += 1
                requests += 1
            first = row
        return first, requests

    def send(self, link: Link, request: Command) -> Command | Coroutine[None, None, Command] | None:
        """Store one message or batch; answered once it is as safe as was promised."""
        state = self._state
        if request.code == RequestCode.SEND_MESSAGE:
            header = SendRequest.decode_long(request.fields)
        else:
            header = SendRequest.decode(request.fields)
        _check_numbers(header)
        topic = self._writable_topic(header)
        least = max(0, header.queue_id)  # who leaves the choice to us needs a queue, too
        if least >= topic.queues:
            raise InvalidRequest(
                f"queue {least} does not exist: the topic {topic.name} has {topic.queues} queues"
            )
        # Too many even without those that are not stored.
        if len(header.properties) > 2 * PROPERTIES_BYTES_MAX:
            raise MessageIllegal(f"the properties have {len(header.properties)} characters")
        properties = parse_properties(header.properties)
        _refuse_what_is_not_kept(header, properties)
        _check_body(state, header, topic.name, request.body)
        items = None if header.batch else _items(state, request, header)
        if state.topics.get(topic.name) is None:
            state.new_topics.put(topic)  # last: what is refused costs no topic
        queue_id = header.queue_id if header.queue_id >= 0 else self._choose_queue(topic)
        stored = self._append_plain(link, request, topic, queue_id) if header.batch else None
        if stored is None:
            items = items or _items(state, request, header)
            stored = _append(state, _messages(link, header, topic.name, queue_id, items))
        answer = _answer(state, request, queue_id, stored)
        end = stored.end if properties.get(Property.WAIT) != "false" else LogOffset(0)
        if state.new_topics.is_unwritten(topic.name):
            return _answer_when_known(state, answer, end)
        state.door.when_kept(end, lambda kept: _answer_kept(link, request, answer, kept))
        return None

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
        name = names.check_topic(header.topic)
        if name in names.NO_SEND_TOPICS:
            raise PermissionDenied(f"the topic {name} is the broker's own; clients may not send to it")
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
        if self._state.new_topics.is_unwritten(topic.name):
            return False
        return self._state.settings.now.writable or not topic.order

    def _forget(self) -> None:
        self._lanes.forget()
        self._turns.clear()


def _check_numbers(header: SendRequest) -> None:
    """What a record stores in 32 bits must fit them."""
    for value in (header.queue_id, header.sys_flag, header.flag, header.reconsume_times):
        if not is_int32(value):
            raise InvalidRequest(f"{value} is not a 32-bit number")


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


def _refuse_what_is_not_kept(header: SendRequest, properties: dict[str, str]) -> None:
    """A promise that would not be kept is refused, not broken: the message would be delivered too early."""
    transaction = header.sys_flag & TRANSACTION_MASK
    half = is_true(properties.get(Property.TRANSACTION_PREPARED))
    if transaction in (SysFlag.PREPARED, SysFlag.ROLLBACK) or half:
        raise MessageIllegal("transactional messages are not supported by this broker")
    if header.sys_flag & (SysFlag.INNER_BATCH | SysFlag.NEED_UNWRAP):
        raise MessageIllegal("batches that stay one record are not supported by this broker")
    for name in SCHEDULING:
        if properties.get(name, "0") != "0":
            raise MessageIllegal(f"delayed messages ({name}) are not supported by this broker")


def _check_body(state: BrokerState, header: SendRequest, topic: str, body: bytes) -> None:
    """The limit on the body holds for a batch as a whole, as in the original."""
    if not body:
        raise MessageIllegal("the message has no body")
    if len(body) > state.settings.now.body_bytes_max:
        raise MessageIllegal(
            f"the body has {len(body)} bytes; maxMessageSize allows {state.settings.now.body_bytes_max}"
        )
    if header.batch and topic.startswith(names.RETRY_PREFIX):
        raise MessageIllegal("a retry topic takes no batches")


def _items(state: BrokerState, request: Command, header: SendRequest) -> list[_Item]:
    """What of the request goes into its records; everything about them that can be refused is."""
    if not header.batch:
        suffix = state.identity.properties_suffix
        return [(header.flag, request.body, _stored_properties(state, header.properties, suffix))]
    batch = split_batch(request.body, BATCH_ODD_MESSAGES_MAX)
    items = [(flag, item, text.decode("utf-8", "replace")) for flag, item, text in batch]
    for _, _, text in items:
        _refuse_what_is_not_kept(header, parse_properties(text))
    return [(flag, item, _stored_properties(state, text, b"")) for flag, item, text in items]


def _messages(
    link: Link, header: SendRequest, topic: str, queue_id: int, items: list[_Item]
) -> list[NewMessage]:
    """The request's records."""
    return [
        NewMessage(
            topic=topic,
            queue_id=queue_id,
            body=item,
            properties=properties,
            flag=flag,
            sys_flag=header.sys_flag,
            born_timestamp_ms=header.born_timestamp_ms,
            born_host=link.remote_host,
            reconsume_times=header.reconsume_times,
        )
        for flag, item, properties in items
    ]


def _stored_properties(state: BrokerState, text: str, suffix: bytes) -> bytes:
    """The client's pairs without those that the broker writes, a unique key if there is none, and `suffix`."""
    pairs = parse_properties(text)
    kept = _NOT_STORED.sub("", text)
    if kept and not kept.endswith(PAIR_END):
        kept += PAIR_END
    if Property.UNIQUE_KEY not in pairs:
        kept += f"{Property.UNIQUE_KEY}{NAME_END}{state.unique_ids.next()}{PAIR_END}"
    if pairs.get(Property.WAIT) == "false":
        kept += f"{Property.WAIT}{NAME_END}false{PAIR_END}"
    stored = kept.encode() + suffix
    bytes_max = PROPERTIES_BYTES_MAX - (RECORD_CHECKSUM_BYTES if state.settings.now.seal_records else 0)
    if len(stored) > bytes_max:
        raise MessageIllegal(f"the properties have {len(stored)} bytes; {bytes_max} are allowed")
    return stored


def _append(state: BrokerState, messages: list[NewMessage]) -> _Stored:
    appended = state.door.append(messages)
    first = parse_properties(messages[0].properties.decode("utf-8", "replace"))
    return _Stored(
        [one.log_offset for one in appended],
        appended[0].queue_offset,
        appended[-1].end,
        first.get(Property.UNIQUE_KEY),
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
