"""Messages: find them by key, get one by its id.

Brokers answer with every message whose key has the wanted hash; what is not meant is dropped here.  An offset id names
its broker and is asked there; a key or a unique id is asked of every master of the topic.
"""

from collections.abc import Callable

from bolide.admin.cluster import cluster_info
from bolide.admin.connection import AdminConnection
from bolide.admin.many import Silent, of_brokers
from bolide.admin.topics import topic_route
from bolide.model.addresses import PORT_MAX
from bolide.model.errors import (
    CallTimeout,
    ConnectionLost,
    NoBroker,
    NothingFound,
    ProtocolError,
    RemoteError,
)
from bolide.model.message import Property
from bolide.record.decode import decode_messages
from bolide.record.message_id import parse_offset_id
from bolide.record.stored import StoredMessage
from bolide.wire.codes import RequestCode, ResponseCode
from bolide.wire.headers.query import QueryMessage, ViewMessage

COUNT_MAX = 64
"""More than that no broker gives for one key."""

BEGINNING_MS = 0
END_MS = 2**63 - 1


async def find_messages(
    servers: AdminConnection,
    topic: str,
    key: str,
    *,
    since_ms: int = BEGINNING_MS,
    until_ms: int = END_MS,
    count_max: int = COUNT_MAX,
    silent: Silent | None = None,
) -> list[StoredMessage]:
    """The newest messages that have this key, oldest of them first; see `of_brokers`."""
    header = QueryMessage(topic, key, COUNT_MAX, since_ms, until_ms, unique_key=False)
    found = await _ask_masters(servers, header, lambda message: key in _words(message), silent)
    return found[-count_max:]


async def message_by_unique_id(servers: AdminConnection, topic: str, message_id: str) -> StoredMessage:
    """The message that its producer gave this id; `NothingFound` when no broker of the topic has it."""
    header = QueryMessage(topic, message_id, 1, BEGINNING_MS, END_MS, unique_key=True)
    silent: Silent = {}
    found = await _ask_masters(
        servers, header, lambda message: message.properties.get(Property.UNIQUE_KEY) == message_id, silent
    )
    if not found and silent:  # it may be there
        raise next(iter(silent.values()))
    if not found:
        raise NothingFound(f"no broker of {topic} that is up has a message with the id {message_id}")
    return found[-1]  # a producer that tries again may store it twice


async def message_by_offset_id(servers: AdminConnection, message_id: str) -> StoredMessage:
    """The message at the place that an offset id names; `NothingFound` when there is none."""
    address, log_offset = parse_offset_id(message_id)
    other = "is it a unique id? Then its topic is needed too, --topic TOPIC"
    nothing = f"no message has the offset id {message_id}; {other}"
    if not 0 < int(address.rpartition(":")[2]) <= PORT_MAX or log_offset < 0:
        raise NothingFound(nothing)
    try:
        answer = await servers.ask(address, RequestCode.VIEW_MESSAGE_BY_ID, ViewMessage(log_offset).encode())
    except RemoteError as error:
        if error.response_code != ResponseCode.SYSTEM_ERROR:
            raise
        raise NothingFound(nothing) from error
    except (ConnectionLost, CallTimeout) as error:  # any other id names an address too, where nobody is
        info = await cluster_info(servers)
        if any(address in broker.addresses.values() for broker in info.brokers.values()):
            raise
        raise NothingFound(
            f"the offset id {message_id} names a broker at {address}, where nobody answers ({error}). Is that broker"
            f" down? Or {other}"
        ) from error
    messages = decode_messages(answer.body, await _name_of(servers, address))
    if len(messages) != 1:
        raise ProtocolError(f"{len(messages)} messages in the answer to one id, from {address}")
    return messages[0]


async def _ask_masters(
    servers: AdminConnection,
    header: QueryMessage,
    is_meant: Callable[[StoredMessage], bool],
    silent: Silent | None,
) -> list[StoredMessage]:
    route = await topic_route(servers, header.topic)
    masters = {broker.broker_name: broker.master for broker in route.brokers if broker.master is not None}
    if not masters:
        raise NoBroker(f"no master of the topic {header.topic!r} is up")
    answers = await of_brokers(masters, lambda address: _ask_one(servers, address, header), silent)
    found = [
        message
        for name, records in answers.items()
        for message in decode_messages(records, name)
        if is_meant(message)
    ]
    return sorted(found, key=lambda message: (message.store_timestamp_ms, message.log_offset))


async def _ask_one(servers: AdminConnection, address: str, header: QueryMessage) -> bytes:
    """Records, one behind the other."""
    try:
        answer = await servers.ask(address, RequestCode.QUERY_MESSAGE, header.encode())
    except RemoteError as error:
        if error.response_code == ResponseCode.QUERY_NOT_FOUND:
            return b""
        raise
    return answer.body


def _words(message: StoredMessage) -> set[str]:
    """What a message can be found by: its keys, and its unique one, which shares their index."""
    words = set(message.properties.get(Property.KEYS, "").split(" "))
    return words | {message.properties.get(Property.UNIQUE_KEY, "")}


async def _name_of(servers: AdminConnection, address: str) -> str:
    """The broker's name; its address where no name server tells it."""
    try:
        info = await cluster_info(servers)
    except ConnectionLost:
        return address
    for name, broker in info.brokers.items():
        if address in broker.addresses.values():
            return name
    return address
