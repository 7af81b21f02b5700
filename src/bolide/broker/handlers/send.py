"""Sending: codes 10, 310 and 320.

Two ways in.  `on_sends` takes a run of plain sends and appends it in compiled code.  `send` takes any one request,
decides everything that needs deciding, and gives every error; rows of a run that are not plain come here too.
"""

import asyncio
import re
from collections.abc import Coroutine
from typing import TYPE_CHECKING

from bolide.model import names
from bolide.model.errors import InvalidRequest, MessageIllegal, PermissionDenied, RequestError, StoreRefusal
from bolide.model.message import (
    NAME_END,
    PAIR_END,
    PROPERTIES_BYTES_MAX,
    TRANSACTION_MASK,
    Property,
    SysFlag,
    parse_properties,
)
from bolide.model.offsets import LogOffset
from bolide.model.response_code import ResponseCode
from bolide.model.topic import TopicConfig
from bolide.net.link import Link
from bolide.record.codec import split_batch
from bolide.record.layout import RECORD_CHECKSUM_BYTES
from bolide.record.message_id import format_offset_id
from bolide.store.store import Appended, NewMessage
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from bolide.wire.frame import decode_frame, encode_send_answers
from bolide.wire.headers.send import SendAnswer, SendRequest
from bolide.wire.send_run import SendRun

if TYPE_CHECKING:
    from bolide.broker.app import Broker

# Pairs the broker writes itself, or that are not worth storing.
_REPLACED = re.compile(
    r"(?:^|(?<=\x02))(?:MSG_REGION|TRACE_ON|CLUSTER|POP_CK|WAIT|__CRC32#)\x01[^\x02]*(?:\x02|$)"
)

_SCHEDULING = (
    Property.DELAY,
    Property.TIMER_DELAY_SEC,
    Property.TIMER_DELAY_MS,
    Property.TIMER_DELIVER_MS,
)


def on_sends(broker: "Broker", link: Link, run: SendRun) -> None:
    """Append a run, answer it, and give what is not plain to the general path, in the order of the frames."""
    first = 0
    while first < run.count:
        try:
            row, needs_general_path = broker.store.append_run(
                run.rows,
                run.log_offsets,
                run.buffer,
                run.properties,
                broker.lanes.of(run.topics),
                first,
                run.count,
                link.remote_host,
            )
        except (RequestError, StoreRefusal):  # the general path meets the same and says so
            row, needs_general_path = first, True
        if row > first:
            answers = encode_send_answers(run, first, row, broker.host_hex, broker.answer_tail)
            broker.acknowledge(link, answers)
        if needs_general_path:
            broker.on_request(link, decode_frame(run.frame(row)))
            row += 1
        first = row
    broker.stored()


def send(broker: "Broker", link: Link, request: Command) -> Command | Coroutine[None, None, Command] | None:
    """Store one message or batch; answered once it is as durable as configured."""
    if request.code == RequestCode.SEND_MESSAGE:
        header = SendRequest.decode_long(request.fields)
    else:
        header = SendRequest.decode(request.fields)
    _check_numbers(header)
    topic = writable_topic(broker, header)
    queue_id = header.queue_id if header.queue_id >= 0 else broker.choose_queue(topic)
    if queue_id >= topic.queues:
        raise InvalidRequest(
            f"queue {queue_id} does not exist: the topic {topic.name} has {topic.queues} queues"
        )
    if len(header.properties) > 2 * PROPERTIES_BYTES_MAX:  # too many even without those that are not stored
        raise MessageIllegal(f"the properties have {len(header.properties)} characters")
    properties = parse_properties(header.properties)
    _refuse_what_is_not_kept(header, properties)
    messages = _messages(broker, link, request, header, topic.name, queue_id)
    appended = broker.store.append(messages)
    broker.stored()
    answer = _answer(broker, request, queue_id, appended, messages[0])
    waits = broker.config.sync_flush and properties.get(Property.WAIT) != "false"
    if (written := broker.unwritten(topic.name)) is not None:
        return _answer_when_known(broker, written, answer, appended[-1].end if waits else None)
    if not waits:
        return answer
    broker.flusher.wait(appended[-1].end, lambda durable: _answer_flushed(link, request, answer, durable))
    return None


def _check_numbers(header: SendRequest) -> None:
    """What a record stores in 32 bits must fit them."""
    for value in (header.queue_id, header.sys_flag, header.flag, header.reconsume_times):
        if not -0x8000_0000 <= value <= 0x7FFF_FFFF:
            raise InvalidRequest(f"{value} is not a 32-bit number")


async def _answer_when_known(
    broker: "Broker", written: "asyncio.Future[None]", answer: Command, end: LogOffset | None
) -> Command:
    """The answer for a message of a new topic: after topics.json holds the topic, and the disk the message."""
    await asyncio.shield(written)
    if end is not None:
        durable: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        broker.flusher.wait(end, durable.set_result)
        if not await asyncio.shield(durable):
            _say_flush_timeout(answer)
    return answer


def writable_topic(broker: "Broker", header: SendRequest) -> TopicConfig:
    """The topic to write to, created on demand where that is allowed."""
    name = names.check_topic(header.topic)
    if name in names.NO_SEND_TOPICS:
        raise PermissionDenied(f"the topic {name} is the broker's own; clients may not send to it")
    topic = broker.create_topic(header)
    if topic.order and not broker.config.writable:
        raise PermissionDenied(f"the broker {broker.config.broker_name} takes no messages now")
    return topic


def _refuse_what_is_not_kept(header: SendRequest, properties: dict[str, str]) -> None:
    """A promise that would not be kept is refused, not broken: the message would be delivered too early."""
    transaction = header.sys_flag & TRANSACTION_MASK
    half = properties.get(Property.TRANSACTION_PREPARED) == "true" and header.reconsume_times == 0
    if transaction in (SysFlag.PREPARED, SysFlag.ROLLBACK) or half:
        raise MessageIllegal("transactional messages are not supported by this broker")
    if header.sys_flag & (SysFlag.INNER_BATCH | SysFlag.NEED_UNWRAP):
        raise MessageIllegal("batches that stay one record are not supported by this broker")
    for name in _SCHEDULING:
        if properties.get(name, "0") != "0":
            raise MessageIllegal(f"delayed messages ({name}) are not supported by this broker")


def _messages(
    broker: "Broker", link: Link, request: Command, header: SendRequest, topic: str, queue_id: int
) -> list[NewMessage]:
    """The request's records.  The limit on the body holds for a batch as a whole, as in the original."""
    body = request.body
    if not body:
        raise MessageIllegal("the message has no body")
    if len(body) > broker.config.body_bytes_max:
        raise MessageIllegal(
            f"the body has {len(body)} bytes; maxMessageSize allows {broker.config.body_bytes_max}"
        )
    if header.batch:
        if topic.startswith(names.RETRY_PREFIX):
            raise MessageIllegal("a retry topic takes no batches")
        items = [(flag, item, text.decode("utf-8", "replace")) for flag, item, text in split_batch(body)]
        for _, _, text in items:
            _refuse_what_is_not_kept(header, parse_properties(text))
    else:
        items = [(header.flag, body, header.properties)]
    return [
        NewMessage(
            topic=topic,
            queue_id=queue_id,
            body=item,
            properties=_stored_properties(broker, text, b"" if header.batch else broker.properties_suffix),
            flag=flag,
            sys_flag=header.sys_flag,
            born_timestamp_ms=header.born_timestamp_ms,
            born_host=link.remote_host,
            reconsume_times=header.reconsume_times,
        )
        for flag, item, text in items
    ]


def _stored_properties(broker: "Broker", text: str, suffix: bytes) -> bytes:
    """The client's pairs without those that the broker writes, a unique key if there is none, and `suffix`."""
    kept = _REPLACED.sub("", text)
    if kept and not kept.endswith(PAIR_END):
        kept += PAIR_END
    if Property.UNIQUE_KEY not in parse_properties(kept):
        kept += f"{Property.UNIQUE_KEY}{NAME_END}{broker.unique_ids.next()}{PAIR_END}"
    if parse_properties(text).get(Property.WAIT) == "false":
        kept += f"{Property.WAIT}{NAME_END}false{PAIR_END}"
    stored = kept.encode() + suffix
    bytes_max = PROPERTIES_BYTES_MAX - (RECORD_CHECKSUM_BYTES if broker.config.seal_records else 0)
    if len(stored) > bytes_max:
        raise MessageIllegal(f"the properties have {len(stored)} bytes; {bytes_max} are allowed")
    return stored


def _answer(
    broker: "Broker", request: Command, queue_id: int, appended: list[Appended], message: NewMessage
) -> Command:
    ids = ",".join(format_offset_id(broker.store_host, one.log_offset) for one in appended)
    stored = parse_properties(message.properties.decode("utf-8", "replace"))
    header = SendAnswer(
        msg_id=ids,
        queue_id=queue_id,
        queue_offset=appended[0].queue_offset,
        transaction_id=stored.get(Property.UNIQUE_KEY),
        region=broker.config.region,
        trace_on="true" if broker.config.trace_on else "false",
    )
    return request.answer(fields=header.encode())


def _answer_flushed(link: Link, request: Command, answer: Command, durable: bool) -> None:
    if not durable:
        _say_flush_timeout(answer)
    if not request.is_one_way:
        link.answer(answer)


def _say_flush_timeout(answer: Command) -> None:
    answer.code = ResponseCode.FLUSH_DISK_TIMEOUT
    answer.remark = "the message is stored, but syncing it to disk took too long"


HANDLERS = {
    RequestCode.SEND_MESSAGE: send,
    RequestCode.SEND_MESSAGE_V2: send,
    RequestCode.SEND_BATCH_MESSAGE: send,
}
