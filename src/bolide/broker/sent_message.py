"""What a send request becomes: its properties checked, and the message as it is stored.

Asked on every way in that makes an object of a message; runs of plain sends need no decision.
"""

import re

from bolide.broker.property_room import check_room
from bolide.broker.state import BrokerState
from bolide.model import names
from bolide.model.errors import InvalidRequest, MessageIllegal
from bolide.model.message import PROPERTIES_BYTES_MAX, Property, SysFlag
from bolide.model.numbers import is_int32
from bolide.model.pairs import NAME_END, PAIR_END, parse_properties
from bolide.model.properties import NOT_STORED, SCHEDULING
from bolide.net.link import Link
from bolide.record.layout import RECORD_CHECKSUM_BYTES
from bolide.rules.transactions import is_half, is_whole
from bolide.store.new_message import NewMessage
from bolide.wire.headers.send import SendRequest
from bolide.wire.send_run import SentRow

Sent = SendRequest | SentRow
"""A request that was decoded, or a row of a run."""

_ONE_RECORD = int(SysFlag.INNER_BATCH | SysFlag.NEED_UNWRAP)

# Pairs the broker writes itself, or that are not worth storing.
_NOT_STORED = re.compile(rf"(?:^|(?<=\x02))(?:{'|'.join(map(re.escape, NOT_STORED))})\x01[^\x02]*(?:\x02|$)")


def check_numbers(header: SendRequest) -> None:
    """What a record stores in 32 bits must fit them; and what cannot be stored at all is not looked into."""
    for value in (header.queue_id, header.sys_flag, header.flag, header.reconsume_times):
        if not is_int32(value):
            raise InvalidRequest(f"{value} is not a 32-bit number")
    # Too many even without those that are not stored.
    if len(header.properties) > 2 * PROPERTIES_BYTES_MAX:
        raise MessageIllegal(f"the properties have {len(header.properties)} characters")


def checked_properties(state: BrokerState, sent: Sent, topic: str, body: bytes) -> dict[str, str]:
    """The properties of a message that may be stored, whoever brings it; `RequestError` when it may not."""
    properties = parse_properties(sent.properties)
    refuse_what_is_not_kept(sent, properties)
    _check_body(state, sent, topic, body)
    return properties


def sent_message(
    state: BrokerState,
    link: Link,
    sent: Sent,
    topic: str,
    queue_id: int,
    body: bytes,
    properties: dict[str, str],
) -> NewMessage:
    """The message of a request that is no batch and was checked; `RequestError` when it has no room."""
    suffix = state.identity.properties_suffix
    return NewMessage(
        topic,
        queue_id,
        body,
        stored_properties(state, sent.properties, properties, suffix),
        sent.flag,
        sent.sys_flag,
        sent.born_timestamp_ms,
        link.remote_host,
        sent.reconsume_times,
    )


def refuse_what_is_not_kept(sent: Sent, properties: dict[str, str]) -> None:
    """A promise that would not be kept is refused, not broken: the message would be delivered too early."""
    half = is_half(properties, sent.reconsume_times)
    if not half and not is_whole(sent.sys_flag):
        raise MessageIllegal("a transactional message must say TRAN_MSG=true, or nobody would ever read it")
    if half and sent.batch:
        raise MessageIllegal("a batch takes no transactional messages; send them one by one")
    if half and not properties.get(Property.PRODUCER_GROUP):
        raise MessageIllegal("a transactional message must name its producer group (PGROUP), which ends it")
    if sent.sys_flag & _ONE_RECORD:
        raise MessageIllegal("batches that stay one record are not supported by this broker")
    for name in SCHEDULING if sent.batch else ():
        if properties.get(name, "0") != "0":
            raise MessageIllegal(f"a delayed message ({name}) cannot be part of a batch: send it alone")


def _check_body(state: BrokerState, sent: Sent, topic: str, body: bytes) -> None:
    """The limit on the body holds for a batch as a whole, as in the original."""
    if not body:
        raise MessageIllegal("the message has no body")
    if len(body) > state.settings.now.body_bytes_max:
        raise MessageIllegal(
            f"the body has {len(body)} bytes; maxMessageSize allows {state.settings.now.body_bytes_max}"
        )
    if sent.batch and topic.startswith(names.RETRY_PREFIX):
        raise MessageIllegal("a retry topic takes no batches")


def without_zero(properties: str) -> str:
    """The same, if a recovery can tell it from bytes that were never written."""
    if "\0" in properties:
        raise MessageIllegal(
            "the properties have a character U+0000 in them: after a crash that would look like a part that was lost"
        )
    return properties


def stored_properties(state: BrokerState, text: str, pairs: dict[str, str], suffix: bytes) -> bytes:
    """The client's pairs without those that the broker writes, a unique key if there is none, and `suffix`.

    `pairs` is what the text says."""
    kept = _NOT_STORED.sub("", without_zero(text))
    if kept and not kept.endswith(PAIR_END):
        kept += PAIR_END
    if Property.UNIQUE_KEY not in pairs:
        kept += f"{Property.UNIQUE_KEY}{NAME_END}{state.unique_ids.next()}{PAIR_END}"
    if pairs.get(Property.WAIT) == "false":
        kept += f"{Property.WAIT}{NAME_END}false{PAIR_END}"
    stored = kept.encode() + suffix
    check_room(stored, RECORD_CHECKSUM_BYTES if state.settings.now.seal_records else 0)
    return stored
