"""RouteTable: which brokers are alive and which topics they serve, as one name server knows it.

A broker says so itself by registering, again and again; what it does not repeat is forgotten when its connection
closes or its time is up.  The table never talks to anyone, keeps nothing on disk and knows no other name server.
Time comes in as `now_ms`, a connection as an opaque token.

Invariants: a broker name exists exactly while at least one address holds it; an address holds one id of a name and
is alive under that name; queue data exists only for broker names that exist.  Start reading at `register`.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from bolide.model.data_version import DataVersion
from bolide.model.errors import RequestError, TopicNotFound
from bolide.model.steps import Steps, at_once
from bolide.model.topic import UNIT_SUBSCRIPTION, Permission, TopicConfig
from bolide.wire.bodies.route import MASTER_ID, BrokerData, ClusterInfo, QueueData, TopicList, TopicRoute

LIFETIME_MS = 120_000
"""How long a broker counts as alive after its last word, unless its registration says otherwise."""

BROKERS_MAX = 10_000
ENTRIES_MAX = 1_000_000
"""Pairs of topic and broker name; bounds the memory that registrations can take."""

STEP_TOPICS = 512
"""Topics of a registration that are taken in with one step."""

UNIT = 1

WRITE_BIT = int(Permission.WRITE)
"""As a plain number: the complement of an IntFlag would drop bits that it does not know."""


@dataclass(frozen=True, slots=True)
class Registration:
    """What a broker says about itself."""

    cluster: str
    broker_name: str
    address: str
    broker_id: int
    data_version: DataVersion
    topics: Sequence[TopicConfig] = ()
    ha_address: str = ""
    lifetime_ms: int | None = None
    enable_acting_master: bool = False
    zone_name: str | None = None
    filter_servers: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Master:
    """What a slave learns from its registration; a master learns nothing."""

    address: str | None = None
    ha_address: str | None = None


@dataclass(slots=True)
class _Alive:
    heard_ms: int
    lifetime_ms: int
    data_version: DataVersion
    connection: Hashable
    ha_address: str
    filter_servers: Sequence[str]
    is_whole: bool = False
    """Whether all topics of the registration are taken in."""


class RouteTable:
    """See the module."""

    def __init__(self) -> None:
        self._queues: dict[str, dict[str, QueueData]] = {}
        self._brokers: dict[str, BrokerData] = {}
        self._alive: dict[tuple[str, str], _Alive] = {}  # by broker name and address
        self._entries = 0

    # ---- brokers come and go -------------------------------------------------------------------------------

    def register(
        self, now_ms: int, news: Registration, connection: Hashable, *, forget_absent_topics: bool = False
    ) -> Master:
        """`registering`, in one go."""
        return at_once(self.registering(now_ms, news, connection, forget_absent_topics=forget_absent_topics))

    def registering(
        self, now_ms: int, news: Registration, connection: Hashable, *, forget_absent_topics: bool = False
    ) -> Steps[Master]:
        """Take a registration in; refuses one that cannot be a broker's first word or does not fit.

        The broker is there with the first step, its topics come in with the steps that follow.  If it leaves in
        between, in whatever way, or registers anew, nothing more of this is taken in.
        """
        key = (news.broker_name, news.address)
        if self._outranked(news):
            self.unregister(*key)
            return Master()
        self._check_admission(news)
        before = self._alive.get(key)
        changed = (
            before is None
            or not before.is_whole
            or before.data_version != news.data_version
            or news.broker_id not in self._addresses(news.broker_name)
        )
        self._hold_address(news)
        alive = self._alive[key] = _Alive(
            now_ms,
            LIFETIME_MS if news.lifetime_ms is None else news.lifetime_ms,
            news.data_version,
            connection,
            news.ha_address,
            tuple(news.filter_servers),
        )
        if self._may_write_topics(news):
            if forget_absent_topics:
                self._forget_others(news.broker_name, {topic.name for topic in news.topics})
                yield
            for first in range(0, len(news.topics), STEP_TOPICS):
                if not self._is_current(news, alive):
                    return Master()
                self._update_topics(news, news.topics[first : first + STEP_TOPICS], everything=changed)
                yield
        alive.is_whole = True
        return Master() if news.broker_id == MASTER_ID else self._master_of(news)

    def unregister(self, broker_name: str, address: str) -> None:
        """A broker leaves.  Topics go with the last address of its name."""
        self._alive.pop((broker_name, address), None)
        broker = self._brokers.get(broker_name)
        if broker is None:
            return
        addresses = {one: held for one, held in broker.addresses.items() if held != address}
        if addresses:
            self._brokers[broker_name] = replace(broker, addresses=addresses)
            if broker.enable_acting_master and MASTER_ID not in addresses:
                self._set_perm(broker_name, lambda perm: perm & ~WRITE_BIT)
        else:
            del self._brokers[broker_name]
            self._forget_others(broker_name, frozenset())

    def connection_lost(self, connection: Hashable) -> list[str]:
        """Remove at once whoever registered last over this connection; returns the broker names."""
        lost = [key for key, alive in self._alive.items() if alive.connection == connection]
        for key in lost:
            self.unregister(*key)
        return [name for name, _ in lost]

    def expire(self, now_ms: int) -> list[Hashable]:
        """Remove who has been silent for too long; returns their connections, which are of no use any more."""
        late = [key for key, alive in self._alive.items() if alive.heard_ms + alive.lifetime_ms < now_ms]
        connections = [self._alive[key].connection for key in late]
        for key in late:
            self.unregister(*key)
        return connections

    def heartbeat(self, now_ms: int, broker_name: str, address: str) -> None:
        """A broker is still there; says nothing about brokers that never registered."""
        alive = self._alive.get((broker_name, address))
        if alive is not None:
            alive.heard_ms = now_ms

    def data_version(self, broker_name: str, address: str) -> DataVersion | None:
        """Of the last registration from there, if that broker is alive."""
        alive = self._alive.get((broker_name, address))
        return None if alive is None else alive.data_version

    # ---- what clients and tools ask ------------------------------------------------------------------------

    def route(self, topic: str) -> TopicRoute:
        queues = self._queues.get(topic)
        if not queues:
            raise TopicNotFound(f"no broker has registered the topic {topic!r}")
        brokers = tuple(self._brokers[name] for name in queues)
        return TopicRoute(tuple(queues.values()), brokers, self._filter_servers(brokers))

    def cluster_info(self) -> ClusterInfo:
        clusters: dict[str, list[str]] = {}
        for name, broker in self._brokers.items():
            clusters.setdefault(broker.cluster, []).append(name)
        return ClusterInfo(dict(self._brokers), clusters)

    def member_group(self, broker_name: str) -> dict[int, str]:
        """Broker id to address of one name; empty when there is no such name."""
        return dict(self._addresses(broker_name))

    def all_topics(self) -> TopicList:
        return TopicList(tuple(self._queues))

    def topics_of_cluster(self, cluster: str) -> TopicList:
        names = {name for name, broker in self._brokers.items() if broker.cluster == cluster}
        if not names:
            raise RequestError(f"no broker of the cluster {cluster!r} is alive")
        return TopicList(
            tuple(topic for topic, queues in self._queues.items() if not names.isdisjoint(queues))
        )

    def system_topics(self) -> TopicList:
        """Cluster and broker names, which are topics too, and the address of some broker to ask for the rest."""
        clusters = dict.fromkeys(broker.cluster for broker in self._brokers.values())
        address = next(
            (held for broker in self._brokers.values() for held in broker.addresses.values()), None
        )
        return TopicList((*clusters, *self._brokers), address)

    def unit_topics(self) -> TopicList:
        return self._flagged(lambda flags: bool(flags & UNIT))

    def unit_subscription_topics(self) -> TopicList:
        return self._flagged(lambda flags: bool(flags & UNIT_SUBSCRIPTION))

    def unit_subscription_topics_without_unit(self) -> TopicList:
        return self._flagged(lambda flags: flags & (UNIT | UNIT_SUBSCRIPTION) == UNIT_SUBSCRIPTION)

    # ---- what operators change; a broker's next changed registration overrules it ----------------------------

    def wipe_write_permission(self, broker_name: str) -> int:
        """Producers stop choosing this broker name; returns how many topics it concerns."""
        return self._set_perm(broker_name, lambda perm: perm & ~WRITE_BIT)

    def add_write_permission(self, broker_name: str) -> int:
        return self._set_perm(broker_name, lambda perm: int(Permission.READ_WRITE))

    def delete_topic(self, topic: str, cluster: str | None = None) -> None:
        """Forget a topic's route, everywhere or on the brokers of one cluster."""
        for name in list(self._queues.get(topic, ())):
            if not cluster or self._brokers[name].cluster == cluster:
                self._drop(topic, name)

    def register_topic(self, topic: str, queues: Iterable[QueueData]) -> None:
        """One topic of brokers that are registered already."""
        queues = tuple(queues)
        unknown = [queue.broker_name for queue in queues if queue.broker_name not in self._brokers]
        if unknown:
            raise RequestError(f"the broker {unknown[0]!r} has not registered")
        self._check_room(len(queues))
        for queue in queues:
            self._put(topic, queue)

    # ---- the parts of a registration -----------------------------------------------------------------------

    def _outranked(self, news: Registration) -> bool:
        """Whether another address holds this id with a higher state version: it was elected later."""
        holder = self._addresses(news.broker_name).get(news.broker_id)
        if holder is None or holder == news.address:
            return False
        alive = self._alive.get((news.broker_name, holder))
        return alive is not None and alive.data_version.state_version > news.data_version.state_version

    def _check_admission(self, news: Registration) -> None:
        if news.broker_id not in self._addresses(news.broker_name) and len(news.topics) == 1:
            # It is the news of one changed topic, meant for a name server that knows all the others.
            raise RequestError(
                f"broker {news.broker_name!r} (id {news.broker_id}) must register its whole topic table first"
            )
        if len(self._alive) >= BROKERS_MAX and (news.broker_name, news.address) not in self._alive:
            raise RequestError(f"{BROKERS_MAX} brokers are registered already")
        if self._entries + len(news.topics) > ENTRIES_MAX:
            have = sum(1 for topic in news.topics if news.broker_name in self._queues.get(topic.name, ()))
            self._check_room(len(news.topics) - have)

    def _check_room(self, more: int) -> None:
        if self._entries + more > ENTRIES_MAX:
            raise RequestError(f"the table is full: {ENTRIES_MAX} topics on brokers")

    def _hold_address(self, news: Registration) -> None:
        """The address takes its id and gives up any other: a slave may have become the master."""
        held = self._addresses(news.broker_name)
        addresses = {one: address for one, address in held.items() if address != news.address}
        self._brokers[news.broker_name] = BrokerData(
            news.broker_name,
            news.cluster,
            {**addresses, news.broker_id: news.address},
            news.enable_acting_master,
            news.zone_name,
        )

    def _may_write_topics(self, news: Registration) -> bool:
        """A master may.  A slave only stands in where acting masters are wanted and it comes first."""
        if news.broker_id == MASTER_ID:
            return True
        return news.enable_acting_master and news.broker_id == min(self._addresses(news.broker_name))

    def _update_topics(self, news: Registration, topics: Sequence[TopicConfig], *, everything: bool) -> None:
        mask = ~0 if news.broker_id == MASTER_ID else ~WRITE_BIT
        for topic in topics:
            if everything or news.broker_name not in self._queues.get(topic.name, ()):
                self._put(
                    topic.name,
                    QueueData(
                        news.broker_name,
                        topic.read_queues,
                        topic.write_queues,
                        int(topic.perm) & mask,
                        topic.sys_flag,
                    ),
                )

    def _is_current(self, news: Registration, alive: _Alive) -> bool:
        """Whether the broker is still there as it registered: it may have left, come anew, or lost its id."""
        holder = self._addresses(news.broker_name).get(news.broker_id)
        return holder == news.address and self._alive.get((news.broker_name, news.address)) is alive

    def _master_of(self, news: Registration) -> Master:
        address = self._addresses(news.broker_name).get(MASTER_ID)
        alive = None if address is None else self._alive.get((news.broker_name, address))
        return Master() if alive is None else Master(address, alive.ha_address)

    # ---- the tables ----------------------------------------------------------------------------------------

    def _addresses(self, broker_name: str) -> Mapping[int, str]:
        broker = self._brokers.get(broker_name)
        return {} if broker is None else broker.addresses

    def _put(self, topic: str, queue: QueueData) -> None:
        queues = self._queues.setdefault(topic, {})
        self._entries += queue.broker_name not in queues
        queues[queue.broker_name] = queue

    def _drop(self, topic: str, broker_name: str) -> None:
        queues = self._queues[topic]
        del queues[broker_name]
        self._entries -= 1
        if not queues:
            del self._queues[topic]

    def _forget_others(self, broker_name: str, keep: Iterable[str]) -> None:
        """Drop the topics of a broker name that are not in `keep`."""
        kept = frozenset(keep)
        gone = [
            topic for topic, queues in self._queues.items() if broker_name in queues and topic not in kept
        ]
        for topic in gone:
            self._drop(topic, broker_name)

    def _set_perm(self, broker_name: str, change: Callable[[int], int]) -> int:
        count = 0
        for queues in self._queues.values():
            queue = queues.get(broker_name)
            if queue is not None:
                queues[broker_name] = replace(queue, perm=int(change(queue.perm)))
                count += 1
        return count

    def _filter_servers(self, brokers: Iterable[BrokerData]) -> dict[str, list[str]]:
        servers: dict[str, list[str]] = {}
        for broker in brokers:
            for address in broker.addresses.values():
                alive = self._alive.get((broker.broker_name, address))
                if alive is not None and alive.filter_servers:
                    servers[address] = list(alive.filter_servers)
        return servers

    def _flagged(self, wanted: Callable[[int], bool]) -> TopicList:
        """Topics whose flags, as the first broker says them, are wanted."""
        return TopicList(
            tuple(
                topic
                for topic, queues in self._queues.items()
                if wanted(next(iter(queues.values())).sys_flag)
            )
        )
