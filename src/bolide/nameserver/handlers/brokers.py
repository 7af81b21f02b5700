"""What brokers say and ask: codes 103, 104, 217, 322, 901, 904.

There is no access control: whoever reaches the port may speak for any broker.  What looks like somebody else's word
is done, as by the original, and said in the log.  Whoever was taken out by it is told over its own connection: one
that lives registers again at once, and does not wait until its period is over.
"""

import logging
from collections.abc import Awaitable

from bolide.machines.registration import Registration, lifetime
from bolide.model import java_json, limits
from bolide.model.addresses import host_of
from bolide.model.data_version import DataVersion
from bolide.model.errors import InvalidRequest, NothingFound, RequestError
from bolide.model.steps import Steps
from bolide.nameserver.kv import ORDER_TOPICS
from bolide.nameserver.state import NameServerState
from bolide.net.link import Link
from bolide.wire.bodies.members import parse_object
from bolide.wire.bodies.registration import HeardRegistration, checksum
from bolide.wire.bodies.registration_topics import told
from bolide.wire.bodies.route import TopicRoute, encode_kv_table, encode_member_group
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from bolide.wire.headers.route import (
    BrokerHeartbeat,
    BrokerNameRequest,
    BrokerRequest,
    DataVersionAnswer,
    PlaceTaken,
    RegisterBroker,
    RegisterBrokerAnswer,
)
from bolide.wire.headers.topic import TopicRequest

log = logging.getLogger(__name__)

ZONE_FIELD = "__ZONE_NAME"


def register(state: NameServerState, link: Link, request: Command) -> Awaitable[Command | None]:
    """Take a broker's topics in.  The connection that carried this is the broker's life line from now on.

    Refused or not, it is a sign of life of a broker that is known.
    """
    header = RegisterBroker.decode(request.fields)
    _tell_displaced(state, link, header.broker_name, header.broker_addr)
    state.routes.word_from(state.clock.monotonic_ms(), header.broker_name, header.broker_addr, link)
    return state.changes.make(link, request, _registering(state, link, request, header))


def _registering(
    state: NameServerState, link: Link, request: Command, header: RegisterBroker
) -> Steps[Command | None]:
    steps = _taking_in(state, link, request, header)
    try:
        while link.is_open:
            try:
                next(steps)
            except StopIteration as end:
                answer: Command | None = end.value
                return answer
            yield
    except RequestError as error:
        state.provoked.say(
            log,
            logging.WARNING,
            link.remote,
            "refusing a registration of broker %.255r at %.255r, from %s: %s",
            header.broker_name,
            header.broker_addr,
            link.remote,
            error,
        )
        raise
    return None


def _taking_in(
    state: NameServerState, link: Link, request: Command, header: RegisterBroker
) -> Steps[Command | None]:
    if header.body_crc32 and header.body_crc32 != checksum(request.body):
        raise RequestError("the checksum of the registration does not fit its body")
    zone = request.fields.get(ZONE_FIELD)
    _check_header(header, zone or "")
    body = yield from HeardRegistration.decoding(
        request.body, compressed=header.compressed, version=request.version
    )
    if len(body.filter_servers) > limits.FILTER_SERVERS_MAX:
        raise InvalidRequest(
            f"{len(body.filter_servers)} filter servers; {limits.FILTER_SERVERS_MAX} are allowed"
        )
    _check_lengths(*body.filter_servers)
    news = Registration(
        cluster=header.cluster_name,
        broker_name=header.broker_name,
        address=header.broker_addr,
        broker_id=header.broker_id,
        data_version=body.data_version,
        topics=body.topics,
        ha_address=header.ha_server_addr,
        lifetime_ms=lifetime(header.heartbeat_timeout_millis),
        enable_acting_master=bool(header.enable_acting_master),
        zone_name=zone,
        filter_servers=body.filter_servers,
    )
    _say_whose_place_it_takes(state, link, news)
    now_ms, forget = state.clock.monotonic_ms(), state.config.forget_absent_topics
    master = yield from state.routes.registering(now_ms, news, link, forget_absent_topics=forget)
    answer = RegisterBrokerAnswer(master.ha_address, master.address)
    return request.answer(fields=answer.encode(), body=_order_topics(state))


def _say_whose_place_it_takes(state: NameServerState, link: Link, news: Registration) -> None:
    holder = state.routes.holder(news.broker_name, news.broker_id)
    if holder is None:
        who = (news.broker_name, news.broker_id, news.address)
        state.comings.say(log, logging.INFO, link.remote, "broker %.255r (id %d) is at %.255r", *who)
        return
    address, connection = holder
    known = state.routes.data_version(news.broker_name, address)
    elected = known is not None and known.state_version != news.data_version.state_version
    if address == news.address or connection is link or elected:
        return
    _tell_displaced(state, link, news.broker_name, address)
    place = news.broker_name, news.broker_id
    if state.rivals_said.is_news(state.clock.monotonic_ms(), place, by=host_of(link.remote)):
        log.error(
            "two brokers call themselves %.255r (id %d): %.255r, and now %.255r from %s. Clients find whichever"
            " registered last, and miss the messages of the other: stop one, or give it another brokerName",
            *place,
            address,
            news.address,
            link.remote,
        )


def _tell_displaced(state: NameServerState, link: Link, name: str, address: str) -> None:
    """Somebody else speaks for the broker at this address, or in its place; if it is still there, it hears of it."""
    own = state.routes.connection_of(name, address)
    if own is None or own is link:
        return
    assert isinstance(own, Link)
    if own.is_open and not own.is_congested:
        own.notify(Command(RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE, PlaceTaken(name, address).encode()))


def unregister(state: NameServerState, link: Link, request: Command) -> Awaitable[Command]:
    return state.changes.do(link, request, lambda: _leave(state, link, request))


def _leave(state: NameServerState, link: Link, request: Command) -> Command:
    header = BrokerRequest.decode(request.fields)
    own = state.routes.connection_of(header.broker_name, header.broker_addr)
    who = (header.broker_name, header.broker_id, header.broker_addr)
    if own is None or own is link:
        state.comings.say(log, logging.INFO, link.remote, "broker %.255r (id %d) has left %.255r", *who)
    else:
        state.provoked.say(
            log,
            logging.WARNING,
            link.remote,
            "broker %.255r (id %d) at %.255r is taken out by %s, which is not the connection it registered over",
            *who,
            link.remote,
        )
    _tell_displaced(state, link, header.broker_name, header.broker_addr)
    state.routes.unregister(header.broker_name, header.broker_addr)
    state.tidying.go()
    return request.answer()


def query_data_version(state: NameServerState, link: Link, request: Command) -> Command:
    """Whether the broker should register again; counts as a sign of life."""
    _check_small(request)
    header = BrokerRequest.decode(request.fields)
    theirs = DataVersion.from_json(parse_object(request.body, "the data version")) if request.body else None
    state.routes.heartbeat(state.clock.monotonic_ms(), header.broker_name, header.broker_addr)
    ours = state.routes.data_version(header.broker_name, header.broker_addr)
    answer = DataVersionAnswer(changed=ours is None or ours != theirs)
    return request.answer(
        fields=answer.encode(), body=b"" if ours is None else java_json.dumps(ours.as_json())
    )


def heartbeat(state: NameServerState, link: Link, request: Command) -> Command:
    header = BrokerHeartbeat.decode(request.fields)
    state.routes.heartbeat(state.clock.monotonic_ms(), header.broker_name, header.broker_addr)
    return request.answer()


def member_group(state: NameServerState, link: Link, request: Command) -> Command:
    header = BrokerNameRequest.decode(request.fields)
    addresses = state.routes.member_group(header.broker_name)
    return request.answer(body=encode_member_group(header.cluster_name or "", header.broker_name, addresses))


def register_topic(state: NameServerState, link: Link, request: Command) -> Awaitable[Command]:
    """One topic of brokers that are here already."""
    _check_small(request)
    return state.changes.do(link, request, lambda: _add_topic(state, request))


def _add_topic(state: NameServerState, request: Command) -> Command:
    topic = TopicRequest.decode(request.fields).topic
    queues = TopicRoute.decode(request.body, dialect_bytes_max=limits.DIALECT_BYTES_MAX).queues
    for queue in queues:
        told(topic, queue.read_queues, queue.write_queues, queue.perm, queue.sys_flag)
    state.routes.register_topic(topic, queues)
    return request.answer()


def _check_small(request: Command) -> None:
    if len(request.body) > limits.REGISTERED_TOPIC_BYTES_MAX:
        raise InvalidRequest(
            f"the request has {len(request.body)} bytes; {limits.REGISTERED_TOPIC_BYTES_MAX} are allowed"
        )


def _check_header(header: RegisterBroker, zone: str) -> None:
    if not header.cluster_name or not header.broker_name or not header.broker_addr:
        raise InvalidRequest("a registration needs a cluster, a broker name and an address")
    _check_lengths(header.cluster_name, header.broker_name, header.broker_addr, header.ha_server_addr, zone)
    if header.broker_id < 0:
        raise InvalidRequest(f"a broker id cannot be {header.broker_id}")


def _check_lengths(*texts: str) -> None:
    """They are only ever keys and text here, so length is all that matters."""
    for text in texts:
        if len(text) > limits.REGISTERED_NAME_LENGTH_MAX:
            raise InvalidRequest(
                f"{text[:32]!r}… is longer than {limits.REGISTERED_NAME_LENGTH_MAX} characters"
            )


def _order_topics(state: NameServerState) -> bytes:
    if not state.config.return_order_topics:
        return b""
    try:
        return encode_kv_table(state.kv.namespace(ORDER_TOPICS))
    except NothingFound:
        return b""
