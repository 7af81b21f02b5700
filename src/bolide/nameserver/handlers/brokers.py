"""What brokers say and ask: codes 103, 104, 217, 322, 901, 904."""

import logging

from bolide.machines.routes import Registration
from bolide.model import java_json
from bolide.model.data_version import DataVersion
from bolide.model.errors import InvalidRequest, NothingFound, RequestError
from bolide.model.limits import DIALECT_BYTES_MAX, TOLD_QUEUES_MAX
from bolide.nameserver.kv import ORDER_TOPICS
from bolide.nameserver.state import NameServerState
from bolide.net.link import Link
from bolide.net.turns import in_turns
from bolide.wire.bodies.members import parse_object
from bolide.wire.bodies.registration import TOPIC_NAME_LENGTH_MAX, RegistrationBody, checksum
from bolide.wire.bodies.route import TopicRoute, encode_kv_table, encode_member_group
from bolide.wire.command import Command
from bolide.wire.headers.route import (
    BrokerNameRequest,
    BrokerRequest,
    DataVersionAnswer,
    RegisterBroker,
    RegisterBrokerAnswer,
)
from bolide.wire.headers.topic import TopicRequest

log = logging.getLogger(__name__)

NAME_LENGTH_MAX = 255
FILTER_SERVERS_MAX = 64
ZONE_FIELD = "__ZONE_NAME"


async def register(state: NameServerState, link: Link, request: Command) -> Command | None:
    """Take a broker's topics in.  The connection that carried this is the broker's life line from now on."""
    async with state.changes.turn(request):
        return await _register(state, link, request)


async def _register(state: NameServerState, link: Link, request: Command) -> Command | None:
    header = RegisterBroker.decode(request.fields)
    if header.body_crc32 and header.body_crc32 != checksum(request.body):
        raise RequestError("the checksum of the registration does not fit its body")
    _check_names(header.cluster_name, header.broker_name, header.broker_addr, header.ha_server_addr)
    if header.broker_id < 0:
        raise InvalidRequest(f"a broker id cannot be {header.broker_id}")
    zone = request.fields.get(ZONE_FIELD)
    body = await in_turns(
        RegistrationBody.decoding(request.body, compressed=header.compressed, version=request.version)
    )
    if len(body.filter_servers) > FILTER_SERVERS_MAX:
        raise InvalidRequest(f"{len(body.filter_servers)} filter servers; {FILTER_SERVERS_MAX} are allowed")
    _check_lengths(zone or "", *body.filter_servers)
    if not link.is_open:
        return None
    is_new = state.routes.data_version(header.broker_name, header.broker_addr) is None
    news = Registration(
        cluster=header.cluster_name,
        broker_name=header.broker_name,
        address=header.broker_addr,
        broker_id=header.broker_id,
        data_version=body.data_version,
        topics=body.topics,
        ha_address=header.ha_server_addr,
        lifetime_ms=header.heartbeat_timeout_millis,
        enable_acting_master=bool(header.enable_acting_master),
        zone_name=zone,
        filter_servers=body.filter_servers,
    )
    now_ms, forget = state.clock.monotonic_ms(), state.config.forget_absent_topics
    master = await in_turns(state.routes.registering(now_ms, news, link, forget_absent_topics=forget))
    if is_new:
        log.info("broker %s (id %d) is at %s", header.broker_name, header.broker_id, header.broker_addr)
    answer = RegisterBrokerAnswer(master.ha_address, master.address)
    return request.answer(fields=answer.encode(), body=_order_topics(state))


async def unregister(state: NameServerState, link: Link, request: Command) -> Command:
    header = BrokerRequest.decode(request.fields)
    async with state.changes.turn(request):
        state.routes.unregister(header.broker_name, header.broker_addr)
    log.info("broker %s (id %d) has left %s", header.broker_name, header.broker_id, header.broker_addr)
    return request.answer()


def query_data_version(state: NameServerState, link: Link, request: Command) -> Command:
    """Whether the broker should register again; counts as a sign of life."""
    header = BrokerRequest.decode(request.fields)
    theirs = DataVersion.from_json(parse_object(request.body, "the data version")) if request.body else None
    state.routes.heartbeat(state.clock.monotonic_ms(), header.broker_name, header.broker_addr)
    ours = state.routes.data_version(header.broker_name, header.broker_addr)
    answer = DataVersionAnswer(changed=ours is None or ours != theirs)
    return request.answer(
        fields=answer.encode(), body=b"" if ours is None else java_json.dumps(ours.as_json())
    )


def heartbeat(state: NameServerState, link: Link, request: Command) -> Command:
    header = BrokerRequest.decode(request.fields)
    state.routes.heartbeat(state.clock.monotonic_ms(), header.broker_name, header.broker_addr)
    return request.answer()


def member_group(state: NameServerState, link: Link, request: Command) -> Command:
    header = BrokerNameRequest.decode(request.fields)
    addresses = state.routes.member_group(header.broker_name)
    return request.answer(body=encode_member_group(header.cluster_name or "", header.broker_name, addresses))


async def register_topic(state: NameServerState, link: Link, request: Command) -> Command:
    """One topic of brokers that are here already."""
    topic = TopicRequest.decode(request.fields).topic
    if not 0 < len(topic) <= TOPIC_NAME_LENGTH_MAX:
        raise InvalidRequest(f"an impossible topic name: {topic[:64]!r}")
    queues = TopicRoute.decode(request.body, dialect_bytes_max=DIALECT_BYTES_MAX).queues
    for queue in queues:
        if not (0 <= queue.read_queues <= TOLD_QUEUES_MAX and 0 <= queue.write_queues <= TOLD_QUEUES_MAX):
            raise InvalidRequest(f"topic {topic} has an impossible number of queues")
    async with state.changes.turn(request):
        state.routes.register_topic(topic, queues)
    return request.answer()


def _check_names(cluster: str, broker_name: str, *addresses: str) -> None:
    if not cluster or not broker_name or not addresses[0]:
        raise InvalidRequest("a registration needs a cluster, a broker name and an address")
    _check_lengths(cluster, broker_name, *addresses)


def _check_lengths(*texts: str) -> None:
    """They are only ever keys and text here, so length is all that matters."""
    for text in texts:
        if len(text) > NAME_LENGTH_MAX:
            raise InvalidRequest(f"{text[:32]!r}… is longer than {NAME_LENGTH_MAX} characters")


def _order_topics(state: NameServerState) -> bytes:
    if not state.config.return_order_topics:
        return b""
    try:
        return encode_kv_table(state.kv.namespace(ORDER_TOPICS))
    except NothingFound:
        return b""
