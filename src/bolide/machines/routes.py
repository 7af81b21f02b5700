"""RouteTable: which brokers are alive and which topics they serve, as one name server knows it.

A broker says so itself by registering, again and again; what it does not repeat is forgotten when its connection
closes or its time is up.  The table never talks to anyone, keeps nothing on disk and knows no other name server.
Time comes in as `now_ms`, a connection as an opaque token.

What grows with topics goes in steps.  A broker that leaves is gone at once; its topics are swept out afterwards by
`tidy`, and count as nobody's until then.  Nobody can take the table from the others (`route_shares.py`).

Invariants: a broker name exists exactly while at least one address holds it; an address holds one id of a name and
is alive under that name; a broker's queue data is live exactly while the broker lists it; a topic has a place exactly
while it has queues.  An address may be alive without an id: another one has taken it.  Start at `registering`.
"""

import sys
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bolide.machines.registered import AliveBroker, RegisteredBroker
from bolide.machines.registration import Master, NamedQueues, Registration
from bolide.machines.route_shares import check_one_more, check_room, room
from bolide.model import limits
from bolide.model.data_version import DataVersion
from bolide.model.errors import RequestError, TopicNotFound
from bolide.model.steps import Steps, at_once, slices
from bolide.model.topic import UNIT_SUBSCRIPTION, Permission
from bolide.wire.bodies.route import MASTER_ID, BrokerData, ClusterInfo, QueueData, TopicList, TopicRoute

__all__ = ["Master", "Registration", "RouteTable"]

STEP_TOPICS = 256
"""Topics that are taken in, changed or swept out with one step."""

STEP_LISTED = 2048
"""Topics that are looked at with one step."""

UNIT = 1

WRITE_BIT = int(Permission.WRITE)
"""As a plain number: the complement of an IntFlag would drop bits that it does not know."""


class RouteTable:
    """See the module."""

    def __init__(self) -> None:
        self._brokers: dict[str, RegisteredBroker] = {}
        self._queues: dict[str, tuple[QueueData, ...]] = {}  # some may be of brokers that have left
        self._carried: dict[Hashable, dict[tuple[str, str], None]] = {}  # name and address by connection
        self._untidy: deque[Steps[Any]] = deque()
        self._addresses = 0
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
        if self._outranked(news):
            self.unregister(news.broker_name, news.address)
            return Master()
        self._check_admission(news, connection)
        before = self._alive(news.broker_name, news.address)
        changed = (
            before is None
            or not before.is_whole
            or before.data_version != news.data_version
            or self.member_group(news.broker_name).get(news.broker_id) != news.address
        )
        broker, alive = self._hold_address(now_ms, news, connection)
        if broker.takes_topics_of(news):
            if forget_absent_topics:
                yield from self._forgetting_absent(broker, news, alive)
            for some in slices(news.topics, STEP_TOPICS):
                if not self._is_current(news, alive):
                    return Master()
                self._update_topics(broker, news, some, connection, everything=changed)
                yield
        alive.is_whole = True
        return Master() if news.broker_id == MASTER_ID else broker.master()

    def unregister(self, broker_name: str, address: str) -> None:
        """A broker leaves.  Topics go with the last address of its name."""
        broker = self._brokers.get(broker_name)
        if broker is None:
            return
        alive = broker.alive.pop(address, None)
        if alive is not None:
            self._addresses -= 1
            self._let_go(alive.connection, (broker_name, address))
        held = broker.data.addresses
        addresses = {one: other for one, other in held.items() if other != address}
        if len(addresses) == len(held):
            return
        broker.data = replace(broker.data, addresses=addresses)
        if not addresses:
            self._remove(broker)
        elif broker.data.enable_acting_master and MASTER_ID not in addresses:
            self._untidy.append(self._changing_perm(broker, _without_write))

    def connection_lost(self, connection: Hashable) -> list[str]:
        """Remove at once whoever registered last over this connection; returns the broker names."""
        lost = list(self._carried.get(connection, ()))
        for key in lost:
            self.unregister(*key)
        return [name for name, _ in lost]

    def expire(self, now_ms: int) -> list[Hashable]:
        """Remove who has been silent for too long; returns their connections, which are of no use any more."""
        late = [
            (name, address, alive.connection)
            for name, broker in self._brokers.items()
            for address, alive in broker.alive.items()
            if alive.heard_ms + alive.lifetime_ms < now_ms
        ]
        for name, address, _ in late:
            self.unregister(name, address)
        return [connection for _, _, connection in late]

    def tidy(self) -> bool:
        """One step of what leaving brokers left behind; tells whether there is more."""
        if self._untidy and next(self._untidy[0], self) is self:
            self._untidy.popleft()
        return bool(self._untidy)

    def heartbeat(self, now_ms: int, broker_name: str, address: str) -> None:
        """A broker is still there; says nothing about brokers that never registered."""
        alive = self._alive(broker_name, address)
        if alive is not None:
            alive.heard_ms = now_ms

    def word_from(self, now_ms: int, broker_name: str, address: str, connection: Hashable) -> None:
        """A known broker registers over this connection: whatever becomes of that, it is there, and there.

        Except over one that carries as many others as it can: then its registration is refused.
        """
        alive = self._alive(broker_name, address)
        if alive is None:
            return
        alive.heard_ms = now_ms
        if len(self._carried.get(connection, ())) < limits.BROKERS_PER_CONNECTION_MAX:
            self._carry(alive, connection, (broker_name, address))

    def data_version(self, broker_name: str, address: str) -> DataVersion | None:
        """Of the last registration from there, if that broker is alive."""
        alive = self._alive(broker_name, address)
        return None if alive is None else alive.data_version

    def holder(self, broker_name: str, broker_id: int) -> tuple[str, Hashable] | None:
        """The address that holds an id of a name, and the connection over which it registered."""
        broker = self._brokers.get(broker_name)
        address = None if broker is None else broker.data.addresses.get(broker_id)
        if broker is None or address is None:
            return None
        return address, broker.alive[address].connection

    def connection_of(self, broker_name: str, address: str) -> Hashable | None:
        """Over which a broker has registered; None when it has not."""
        alive = self._alive(broker_name, address)
        return None if alive is None else alive.connection

    # ---- what clients and tools ask ------------------------------------------------------------------------

    def route(self, topic: str) -> TopicRoute:
        queues = self._live(topic)
        if not queues:
            raise TopicNotFound(f"no broker has registered the topic {topic[:255]!r}")
        brokers = [self._brokers[queue.broker_name] for queue in queues]
        servers = {address: some for broker in brokers for address, some in broker.filter_servers().items()}
        return TopicRoute(queues, tuple(broker.data for broker in brokers), servers)

    def cluster_info(self) -> ClusterInfo:
        clusters: dict[str, list[str]] = {}
        for name, broker in self._brokers.items():
            clusters.setdefault(broker.data.cluster, []).append(name)
        return ClusterInfo({name: broker.shown() for name, broker in self._brokers.items()}, clusters)

    def member_group(self, broker_name: str) -> Mapping[int, str]:
        """Broker id to address of one name; empty when there is no such name."""
        broker = self._brokers.get(broker_name)
        return {} if broker is None else broker.data.addresses

    def all_topics(self) -> Steps[TopicList]:
        return self._listing(lambda queues: True)

    def topics_of_cluster(self, cluster: str) -> Steps[TopicList]:
        names = {name for name, broker in self._brokers.items() if broker.data.cluster == cluster}
        if not names:
            raise RequestError(f"no broker of the cluster {cluster[:255]!r} is alive")
        return self._listing(lambda queues: any(queue.broker_name in names for queue in queues))

    def system_topics(self) -> TopicList:
        """Cluster and broker names, which are topics too, and the address of some broker to ask for the rest."""
        brokers = [broker.data for broker in self._brokers.values()]
        clusters = dict.fromkeys(broker.cluster for broker in brokers)
        address = next((held for broker in brokers for held in broker.addresses.values()), None)
        return TopicList((*clusters, *self._brokers), address)

    def unit_topics(self) -> Steps[TopicList]:
        return self._flagged(lambda flags: bool(flags & UNIT))

    def unit_subscription_topics(self) -> Steps[TopicList]:
        return self._flagged(lambda flags: bool(flags & UNIT_SUBSCRIPTION))

    def unit_subscription_topics_without_unit(self) -> Steps[TopicList]:
        return self._flagged(lambda flags: flags & (UNIT | UNIT_SUBSCRIPTION) == UNIT_SUBSCRIPTION)

    # ---- what operators change; a broker's next changed registration overrules it ----------------------------

    def wiping_write_permission(self, broker_name: str) -> Steps[int]:
        """Producers stop choosing this broker name; gives how many topics it concerns."""
        broker = self._brokers.get(broker_name)
        return (yield from self._changing_perm(broker, _without_write)) if broker else 0

    def adding_write_permission(self, broker_name: str) -> Steps[int]:
        broker = self._brokers.get(broker_name)
        return (yield from self._changing_perm(broker, _read_write)) if broker else 0

    def delete_topic(self, topic: str, cluster: str | None = None) -> None:
        """Forget a topic's route, everywhere or on the brokers of one cluster."""
        brokers = [self._brokers[queue.broker_name] for queue in self._live(topic)]
        gone = [one.topics.pop(topic) for one in brokers if not cluster or one.data.cluster == cluster]
        if gone:
            self._drop_all(topic, gone)

    def register_topic(self, topic: str, queues: Iterable[QueueData]) -> None:
        """One topic of brokers that are registered already; the last word of each broker counts."""
        rows = {queue.broker_name: queue for queue in queues}
        new = 0
        for name in rows:
            broker = self._brokers.get(name)
            if broker is None:
                raise RequestError(f"the broker {name[:255]!r} has not registered")
            if topic not in broker.topics:
                check_room(1, min(self._room(len(broker.topics), new), broker.room))
                new += 1
        self._put_all(topic, [(self._brokers[name], queue) for name, queue in rows.items()])

    # ---- the parts of a registration -----------------------------------------------------------------------

    def _outranked(self, news: Registration) -> bool:
        """Whether another address holds this id with a higher state version: it was elected later."""
        holder = self.member_group(news.broker_name).get(news.broker_id)
        if holder is None or holder == news.address:
            return False
        alive = self._alive(news.broker_name, holder)
        return alive is not None and alive.data_version.state_version > news.data_version.state_version

    def _check_admission(self, news: Registration, connection: Hashable) -> None:
        """Before anything is changed.  That it all fits is only sure at the end: see `_update_topics`."""
        broker = self._brokers.get(news.broker_name)
        if news.broker_id not in self.member_group(news.broker_name) and len(news.topics) == 1:
            # It is the news of one changed topic, meant for a name server that knows all the others.
            raise RequestError(
                f"broker {news.broker_name!r} (id {news.broker_id}) must register its whole topic table first"
            )
        if self._alive(news.broker_name, news.address) is None:
            check_one_more(self._addresses, limits.BROKERS_MAX, "brokers are registered")
            others = 0 if broker is None else len(broker.alive)
            check_one_more(
                others, limits.ADDRESSES_PER_BROKER_MAX, "addresses have registered under this name"
            )
        carried = self._carried.get(connection, {})
        if (news.broker_name, news.address) not in carried:
            check_one_more(
                len(carried),
                limits.BROKERS_PER_CONNECTION_MAX,
                "brokers have registered over this connection",
            )
        clusters = {broker.data.cluster for broker in self._brokers.values()}
        if news.cluster not in clusters:
            check_one_more(len(clusters), limits.CLUSTERS_MAX, "clusters are known")
        known = 0 if broker is None else len(broker.topics)
        more = len(news.topics) - known  # at least: they may be others than those that are known
        if more > 0 and (news.broker_id == MASTER_ID or news.enable_acting_master):
            check_room(more, min(self._room(self._held_by(connection)), limits.BROKER_TOPICS_MAX - known))

    def _hold_address(
        self, now_ms: int, news: Registration, connection: Hashable
    ) -> tuple[RegisteredBroker, AliveBroker]:
        """The address takes its id and gives up any other: a slave may have become the master."""
        held = self.member_group(news.broker_name)
        addresses = {one: address for one, address in held.items() if address != news.address}
        data = BrokerData(
            news.broker_name,
            news.cluster,
            {**addresses, news.broker_id: news.address},
            news.enable_acting_master,
            news.zone_name,
        )
        broker = self._brokers.get(news.broker_name)
        if broker is None:
            broker = self._brokers[news.broker_name] = RegisteredBroker(data)
        broker.data = data
        key = (news.broker_name, news.address)
        before = broker.alive.get(news.address)
        if before is None:
            self._addresses += 1
        else:
            self._let_go(before.connection, key)
        alive = broker.alive[news.address] = AliveBroker(
            now_ms,
            news.lifetime_ms,
            news.data_version,
            connection,
            news.ha_address,
            tuple(news.filter_servers),
        )
        self._carry(alive, connection, key)
        return broker, alive

    def _update_topics(
        self,
        broker: RegisteredBroker,
        news: Registration,
        topics: Sequence[NamedQueues],
        connection: Hashable,
        *,
        everything: bool,
    ) -> None:
        mask = ~0 if news.broker_id == MASTER_ID else ~WRITE_BIT
        left = min(self._room(self._held_by(connection)), broker.room)
        shapes: dict[tuple[int, int, int, int], QueueData] = {}  # most topics of a broker are alike
        for topic in topics:
            is_new = topic.name not in broker.topics
            if is_new:
                check_room(1, left)
                left -= 1
            elif not everything:
                continue
            shape = (topic.read_queues, topic.write_queues, int(topic.perm) & mask, topic.sys_flag)
            queue = shapes.get(shape)
            if queue is None:
                queue = shapes[shape] = QueueData(news.broker_name, *shape)
            self._put(broker, topic.name, queue)

    def _forgetting_absent(
        self, broker: RegisteredBroker, news: Registration, alive: AliveBroker
    ) -> Steps[None]:
        """Drop what the broker had and does not name any more."""
        kept: set[str] = set()
        for some in slices(news.topics, STEP_LISTED):
            kept.update(topic.name for topic in some)
            yield
        for names in slices(list(broker.topics), STEP_TOPICS):
            if not self._is_current(news, alive):
                return
            for name in names:
                if name not in kept and name in broker.topics:
                    self._drop(name, broker.topics.pop(name))
            yield

    def _is_current(self, news: Registration, alive: AliveBroker) -> bool:
        """Whether the broker is still there as it registered: it may have left, come anew, or lost its id."""
        holder = self.member_group(news.broker_name).get(news.broker_id)
        return holder == news.address and self._alive(news.broker_name, news.address) is alive

    # ---- room ----------------------------------------------------------------------------------------------

    def _held_by(self, connection: Hashable) -> int:
        """Entries of all broker names that register over a connection."""
        names = dict.fromkeys(name for name, _ in self._carried.get(connection, ()))
        return sum(len(self._brokers[name].topics) for name in names)

    def _room(self, held: int, others: int = 0) -> int:
        """How many entries somebody who holds so many may add, beside those of others in the same request."""
        return room(held, self._entries + others, len(self._queues))

    # ---- the tables ----------------------------------------------------------------------------------------

    def _alive(self, broker_name: str, address: str) -> AliveBroker | None:
        broker = self._brokers.get(broker_name)
        return None if broker is None else broker.alive.get(address)

    def _carry(self, alive: AliveBroker, connection: Hashable, key: tuple[str, str]) -> None:
        self._let_go(alive.connection, key)
        alive.connection = connection
        self._carried.setdefault(connection, {})[key] = None

    def _let_go(self, connection: Hashable, key: tuple[str, str]) -> None:
        carried = self._carried.get(connection)
        if carried is not None and key in carried:
            del carried[key]
            if not carried:
                del self._carried[connection]

    def _remove(self, broker: RegisteredBroker) -> None:
        """The last address of a name is gone, and with it those that had lost their id."""
        name = broker.data.broker_name
        del self._brokers[name]
        for address, alive in broker.alive.items():
            self._addresses -= 1
            self._let_go(alive.connection, (name, address))
        self._untidy.append(self._sweeping(broker.topics))

    def _sweeping(self, topics: dict[str, QueueData]) -> Steps[None]:
        """What a broker that has left had."""
        while topics:
            for _ in range(min(STEP_TOPICS, len(topics))):
                self._drop(*topics.popitem())
            yield

    def _put(self, broker: RegisteredBroker, topic: str, queue: QueueData) -> None:
        self._put_all(topic, ((broker, queue),))

    def _put_all(self, topic: str, rows: Iterable[tuple[RegisteredBroker, QueueData]]) -> None:
        """A topic's queues on some brokers, each named once: however many they are, all queues are copied once."""
        name = sys.intern(topic)  # every broker of a cluster lists the same ones
        changed, new = dict[int, QueueData](), list[QueueData]()
        for broker, queue in rows:
            before = broker.topics.get(name)
            if before is None:
                new.append(queue)
            else:
                changed[id(before)] = queue
            broker.topics[name] = queue
        queues = (*self._queues.get(name, ()), *new)
        if changed:
            queues = tuple(changed.get(id(one), one) for one in queues)
        self._entries += len(new)
        if queues:  # or nobody would ever take the topic out again
            self._queues[name] = queues

    def _drop(self, topic: str, queue: QueueData) -> None:
        """A broker's queues of a topic, which it does not list any more.  Its next life may have other ones."""
        self._drop_all(topic, (queue,))

    def _drop_all(self, topic: str, gone: Sequence[QueueData]) -> None:
        self._entries -= len(gone)
        ids = set(map(id, gone))
        left = tuple(one for one in self._queues[topic] if id(one) not in ids)
        if left:
            self._queues[topic] = left
        else:
            del self._queues[topic]

    def _live(self, topic: str) -> tuple[QueueData, ...]:
        """The queues of a topic without those of brokers that have left."""
        queues = self._queues.get(topic, ())
        if not self._untidy:
            return queues
        return tuple(queue for queue in queues if self._lists(topic, queue))

    def _lists(self, topic: str, queue: QueueData) -> bool:
        broker = self._brokers.get(queue.broker_name)
        return broker is not None and broker.topics.get(topic) is queue

    def _changing_perm(self, broker: RegisteredBroker, change: Callable[[int], int]) -> Steps[int]:
        """Gives how many topics it concerns.  A broker that leaves meanwhile needs no more of it."""
        count = 0
        for names in slices(list(broker.topics), STEP_TOPICS):
            if self._brokers.get(broker.data.broker_name) is not broker:
                break
            shapes: dict[QueueData, QueueData] = {}
            for name in names:
                queue = broker.topics.get(name)
                if queue is not None:
                    if queue not in shapes:
                        shapes[queue] = replace(queue, perm=change(queue.perm))
                    self._put(broker, name, shapes[queue])
                    count += 1
            yield
        return count

    def _listing(self, wanted: Callable[[tuple[QueueData, ...]], bool]) -> Steps[TopicList]:
        """Topics whose queues are wanted."""
        listed: list[str] = []
        for names in slices(list(self._queues), STEP_LISTED):
            for name in names:
                queues = self._live(name)
                if queues and wanted(queues):
                    listed.append(name)
            yield
        return TopicList(tuple(listed))

    def _flagged(self, wanted: Callable[[int], bool]) -> Steps[TopicList]:
        """Topics whose flags, as the first broker says them, are wanted."""
        return self._listing(lambda queues: wanted(queues[0].sys_flag))


def _without_write(perm: int) -> int:
    return perm & ~WRITE_BIT


def _read_write(perm: int) -> int:
    return int(Permission.READ_WRITE)
