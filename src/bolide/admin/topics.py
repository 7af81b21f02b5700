"""Topics: list, describe, create, update and delete them.

A change goes to every master of a cluster, or to one broker, and is over when the name servers that are up tell it to
clients.  Making a topic smaller is more than one change: see `shrink.py`.
"""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bolide.admin.cluster import brokers_there, listed, masters
from bolide.admin.connection import AdminConnection
from bolide.admin.many import Silent, of_brokers
from bolide.model.errors import (
    BolideError,
    CallTimeout,
    InvalidRequest,
    NoBroker,
    RemoteError,
    RouteNotFound,
    TopicExists,
)
from bolide.model.limits import TOLD_QUEUES_MAX
from bolide.model.names import RETRY_PREFIX, check_topic, is_system_topic, reply_topic
from bolide.model.offsets import MessageQueue
from bolide.model.printable import printable
from bolide.model.topic import Permission, TopicConfig
from bolide.net.ticks import pause
from bolide.wire.bodies.route import BrokerData, TopicList, TopicRoute
from bolide.wire.bodies.topic import (
    QueueBounds,
    decode_groups,
    decode_topic_config,
    decode_topic_stats,
    decode_topic_table,
)
from bolide.wire.codes import RequestCode, ResponseCode
from bolide.wire.headers.route import DeleteTopicRoute, RouteRequest
from bolide.wire.headers.topic import TopicRequest, UpdateTopic

VISIBLE_MS = 10_000
"""How long a change may take to reach the name servers; the original's brokers need a moment."""

VISIBLE_POLL_S = 0.05

CLOSE = 0.8
"""How alike two names are when one may be the other, misspelled."""


@dataclass(frozen=True, slots=True)
class QueueState:
    """One queue: its offsets and when its last message was stored (0: never)."""

    broker_name: str
    queue_id: int
    bounds: QueueBounds

    @property
    def messages(self) -> int:
        return self.bounds.offset_max - self.bounds.offset_min


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """What each broker has of a topic."""

    name: str
    configs: Mapping[str, TopicConfig]
    addresses: Mapping[str, str]
    queues: Sequence[QueueState]
    silent: Silent
    """Brokers that should have it and do not tell: their part is missing."""

    @property
    def messages(self) -> int:
        return sum(queue.messages for queue in self.queues)


@dataclass(frozen=True, slots=True)
class TopicChange:
    """What an update changes; None leaves it as it is."""

    read_queues: int | None = None
    write_queues: int | None = None
    perm: Permission | None = None
    order: bool | None = None

    @property
    def is_of_queues(self) -> bool:
        return self.read_queues is not None or self.write_queues is not None

    def planned(self, configs: Mapping[str, TopicConfig]) -> dict[str, TopicConfig]:
        """The settings on each broker afterwards; what cannot be is refused before anything is touched."""
        after = {name: self._applied(config) for name, config in configs.items()}
        for config in after.values():
            _check(config)
            if self.is_of_queues:
                _check_all_are_read(config)
        return after

    def _applied(self, config: TopicConfig) -> TopicConfig:
        given = {name: getattr(self, name) for name in self.__slots__}
        return replace(config, **{name: value for name, value in given.items() if value is not None})


async def list_topics(servers: AdminConnection, *, system: bool = False) -> list[str]:
    """Topic names in order; those that RocketMQ makes for itself only on request.

    `NoBroker` when there is nobody who could have topics: no list would look like one that is empty.
    """
    answer = await servers.ask_nameserver(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
    topics = set(TopicList.decode(answer.body).topics)
    if not system:
        own = await _cluster_and_broker_names(servers)
        own |= {reply_topic(name) for name in own}
        topics = {
            topic
            for topic in topics - own
            if not is_system_topic(topic) and not topic.startswith(RETRY_PREFIX)
        }
    if not topics:
        await brokers_there(servers)
    return sorted(topics)


async def near_topic(servers: AdminConnection, topic: str) -> str | None:
    """A topic whose name is so much like this one that it may be meant; None where there is none, or this one."""
    try:
        topics = await list_topics(servers)
    except RemoteError:
        return None  # a name server may keep its list to itself
    near = difflib.get_close_matches(topic, topics, n=1, cutoff=CLOSE)
    return near[0] if near and topic not in topics else None


async def did_you_mean(servers: AdminConnection, topic: str, error: RouteNotFound) -> RouteNotFound:
    """A client's error about a missing topic; one that names the topic of a close name instead, where there is one."""
    try:
        near = await near_topic(servers, topic)
    except BolideError:
        return error  # the first answer is the better one
    if near is None:
        return error
    return RouteNotFound(f"no broker has the topic {topic!r}: did you mean {printable(near)}?")


async def describe_topic(
    servers: AdminConnection, topic: str, *, broker: str | None = None, partly: bool = False
) -> TopicDescription:
    """Settings by broker and the state of every queue, asked from the masters or from one of them.

    A broker that does not tell is an error; with `partly` only when no other one does.
    """
    addresses = {one.broker_name: master(one) for one in await masters_of(servers, topic, broker)}
    fields = TopicRequest(topic).encode()
    silent: Silent = {}

    async def one(address: str) -> tuple[TopicConfig, Mapping[MessageQueue, QueueBounds]]:
        config = await _topic_config(servers, address, topic)
        stats = await servers.ask(address, RequestCode.GET_TOPIC_STATS_INFO, fields)
        return config, decode_topic_stats(stats.body)

    told = await of_brokers(addresses, one, silent if partly else None)
    queues = [
        QueueState(name, queue.queue_id, bounds)
        for name, (_, stats) in told.items()
        for queue, bounds in sorted(stats.items())
    ]
    configs = {name: config for name, (config, _) in told.items()}
    return TopicDescription(topic, configs, addresses, queues, silent)


async def groups_of(servers: AdminConnection, topic: str) -> list[str]:
    """Groups that read the topic, or have."""
    found: set[str] = set()
    for one in await masters_of(servers, topic):
        fields = TopicRequest(topic).encode()
        answer = await servers.ask(master(one), RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, fields)
        found.update(decode_groups(answer.body))
    return sorted(found)


async def create_topic(
    servers: AdminConnection,
    config: TopicConfig,
    *,
    cluster: str | None = None,
    broker: str | None = None,
    if_not_exists: bool = False,
) -> list[str]:
    """Create it; returns the names of the brokers where that was done.

    `TopicExists` where one has it, and then it is made nowhere; with `if_not_exists` it is made only where it is not.
    """
    _check(config)
    _check_all_are_read(config)
    targets = await masters(servers, cluster=cluster, broker=broker)
    there: dict[str, TopicConfig] = {}
    for target in targets:
        known = await _topic_config_or_none(servers, target, config.name)
        if known is not None:
            there[target.broker_name] = known
    if there and not if_not_exists:
        raise TopicExists(_what_exists(config.name, there, len(targets)))
    made = [target for target in targets if target.broker_name not in there]
    for target in made:
        await _put(servers, target, config, config.attributes)
    if made:
        await _until_visible(servers, {target.broker_name: config for target in made}, config.name)
    return [target.broker_name for target in made]


async def update_topic(
    servers: AdminConnection, topic: str, change: TopicChange, *, broker: str | None = None
) -> dict[str, TopicConfig]:
    """Change some settings of a topic that exists, on every master that has it or on one."""
    targets = await masters_of(servers, topic, broker)
    known = {target.broker_name: await _topic_config(servers, master(target), topic) for target in targets}
    changed = change.planned(known)
    for target in targets:
        await _put(servers, target, changed[target.broker_name])
    await _until_visible(servers, changed, topic)
    return changed


async def delete_topic(servers: AdminConnection, topic: str) -> list[str]:
    """Delete it on every master that has it and forget its route; returns those broker names."""
    targets = await masters_of(servers, topic)
    for target in targets:
        await servers.ask(master(target), RequestCode.DELETE_TOPIC_IN_BROKER, TopicRequest(topic).encode())
    for cluster in sorted({target.cluster for target in targets}):
        fields = DeleteTopicRoute(topic, cluster or None).encode()
        await servers.tell_nameservers(RequestCode.DELETE_TOPIC_IN_NAMESRV, fields)
    return [target.broker_name for target in targets]


async def topic_route(servers: AdminConnection, topic: str) -> TopicRoute:
    """What clients are told; `RouteNotFound` says what to do when no broker has the topic."""
    route = await _route_or_none(servers, topic)
    if route is None:
        there = await brokers_there(servers)
        near = await near_topic(servers, topic)
        meant = f"did you mean {printable(near)}? If not," if near else "see `bolide topic list`, or"
        raise RouteNotFound(
            f"no broker that is up ({listed(there.brokers)}) has a topic {topic!r}: {meant}"
            f" create it with `bolide topic create {topic}`"
        )
    return route


async def _route_or_none(servers: AdminConnection, topic: str) -> TopicRoute | None:
    fields = RouteRequest(check_topic(topic), accept_standard_json_only=True).encode()
    try:
        answer = await servers.ask_nameserver(RequestCode.GET_ROUTEINFO_BY_TOPIC, fields)
    except RemoteError as error:
        if error.response_code != ResponseCode.TOPIC_NOT_EXIST:
            raise
        return None
    return TopicRoute.decode(answer.body)


async def masters_of(servers: AdminConnection, topic: str, broker: str | None = None) -> list[BrokerData]:
    """The brokers that have the topic and take changes of it, or one of them; `NoBroker` while none of them is up."""
    route = await topic_route(servers, topic)
    found = [one for one in route.brokers if one.master is not None]
    if not found:
        raise NoBroker(f"no master of the topic {topic!r} is up")
    chosen = [one for one in found if broker in (None, one.broker_name)]
    if not chosen:
        there = listed([one.broker_name for one in found])
        raise RouteNotFound(f"the broker {broker!r} does not have the topic {topic!r}; {there} has it")
    return sorted(chosen, key=lambda one: one.broker_name)


async def _topic_config(servers: AdminConnection, address: str, topic: str) -> TopicConfig:
    fields = TopicRequest(topic).encode()
    try:
        answer = await servers.ask(address, RequestCode.GET_TOPIC_CONFIG, fields)
    except RemoteError as error:
        if error.response_code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            raise
        return await _topic_config_of_table(servers, address, topic)
    return decode_topic_config(answer.body)


async def _topic_config_of_table(servers: AdminConnection, address: str, topic: str) -> TopicConfig:
    """For brokers of 4.9, which tell of all topics or of none."""
    answer = await servers.ask(address, RequestCode.GET_ALL_TOPIC_CONFIG)
    config = decode_topic_table(answer.body).get(topic)
    if config is None:
        raise RemoteError(ResponseCode.TOPIC_NOT_EXIST, f"no topic {topic!r} on {address}")
    return config


async def _topic_config_or_none(
    servers: AdminConnection, broker: BrokerData, topic: str
) -> TopicConfig | None:
    try:
        return await _topic_config(servers, master(broker), topic)
    except RemoteError as error:
        if error.response_code != ResponseCode.TOPIC_NOT_EXIST:
            raise
        return None


def _what_exists(topic: str, there: Mapping[str, TopicConfig], targets: int) -> str:
    places = listed(
        [
            f"{name} ({config.read_queues} read and {config.write_queues} write queues)"
            for name, config in there.items()
        ]
    )
    content = "is content with it" if len(there) == targets else "makes it only where it is missing"
    change = "it belongs to the broker and cannot be changed"
    if not is_system_topic(topic):
        change = f"`bolide topic update {topic}` changes it"
    return (
        f"the topic {topic!r} exists on {places} and was left as it is: {change}, --if-not-exists {content}"
    )


async def _cluster_and_broker_names(servers: AdminConnection) -> set[str]:
    """They are topics too."""
    answer = await servers.ask_nameserver(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS)
    return set(TopicList.decode(answer.body).topics)


async def _put(
    servers: AdminConnection,
    broker: BrokerData,
    config: TopicConfig,
    attributes: Mapping[str, str] | None = None,
) -> None:
    """Attributes travel as changes: those that are not given stay."""
    header = UpdateTopic(
        topic=config.name,
        read_queues=config.read_queues,
        write_queues=config.write_queues,
        perm=int(config.perm),
        topic_filter_type=config.filter_type,
        topic_sys_flag=config.sys_flag,
        order=config.order,
        attributes=",".join(f"+{name}={value}" for name, value in (attributes or {}).items()) or None,
    )
    await servers.ask(master(broker), RequestCode.UPDATE_AND_CREATE_TOPIC, header.encode())


async def _until_visible(servers: AdminConnection, wanted: Mapping[str, TopicConfig], topic: str) -> None:
    """Return when the first name server that is up tells these settings."""
    deadline_ms = servers.clock.monotonic_ms() + VISIBLE_MS
    while not await _is_visible(servers, wanted, topic):
        if servers.clock.monotonic_ms() >= deadline_ms:
            raise CallTimeout(
                f"the brokers took the change of {topic!r}, but after {VISIBLE_MS // 1000} s the name server"
                " does not tell it: do the brokers register with this name server?"
            )
        await pause(VISIBLE_POLL_S)


async def _is_visible(servers: AdminConnection, wanted: Mapping[str, TopicConfig], topic: str) -> bool:
    route = await _route_or_none(servers, topic)
    if route is None:
        return False
    told = {queue.broker_name: (queue.read_queues, queue.write_queues, queue.perm) for queue in route.queues}
    return all(
        told.get(name) == (config.read_queues, config.write_queues, config.perm)
        for name, config in wanted.items()
    )


def _check(config: TopicConfig) -> None:
    check_topic(config.name)
    for what, number in (("read", config.read_queues), ("write", config.write_queues)):
        if not 1 <= number <= TOLD_QUEUES_MAX:
            raise InvalidRequest(f"{number} {what} queues are not possible: 1 to {TOLD_QUEUES_MAX}")


def _check_all_are_read(config: TopicConfig) -> None:
    """More write than read queues: messages would be taken that nobody gets."""
    if config.write_queues > config.read_queues:
        raise InvalidRequest(
            f"{config.write_queues} write queues and {config.read_queues} read queues: nobody could read what is sent"
            f" to queue {config.read_queues} and above; give as many read queues, or fewer write queues"
        )


def master(broker: BrokerData) -> str:
    """Where the master listens."""
    address = broker.master
    if address is None:
        raise BolideError(f"the broker {broker.broker_name!r} has no master")
    return address
