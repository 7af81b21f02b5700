"""Clients: heartbeats, member lists, connections.

Who is connected is decided by `machines.clients`; here requests go in and effects are carried out.  A heartbeat is
in force before the next frame of its connection is looked at: a short one because its handler is a plain call, a long
one, which is taken in steps, because its connection waits meanwhile.
"""

import logging
from collections import Counter
from collections.abc import Awaitable, Iterator
from dataclasses import replace

from bolide.broker.noted_filters import NotedFilters
from bolide.broker.notices import Notices
from bolide.broker.part import Part, Work, every
from bolide.broker.pull_terms import wanted_by
from bolide.broker.state import BrokerState
from bolide.machines.clients import ConsumerGroup, Differs, Disconnect, Effects, Member, NotifyGroup, Refused
from bolide.machines.variants import Variant
from bolide.model.addresses import host_of
from bolide.model.errors import RequestError, StoreRefusal, TableFull
from bolide.model.limits import HEARTBEAT_NEW_GROUPS_MAX, RETRY_TOPICS_PER_CONNECTION_MAX
from bolide.model.names import retry_topic
from bolide.model.steps import Steps, at_once
from bolide.model.topic import GroupConfig
from bolide.net.link import Link
from bolide.net.provoked import Provoked
from bolide.net.registry import Handler
from bolide.net.turns import Slices, in_turns
from bolide.rules.topic_creation import topic_for_retry
from bolide.wire.bodies.admin import encode_subscription, producer_table_pieces
from bolide.wire.bodies.connection import (
    ClientConnection,
    SubscriptionDifference,
    consumer_connection_pieces,
    producer_connection_pieces,
)
from bolide.wire.bodies.group import ClientCheck, ConsumerData, HeartbeatData, encode_member_ids
from bolide.wire.codes import RequestCode
from bolide.wire.command import LANGUAGES, Command
from bolide.wire.headers.admin import SubscriptionRequest
from bolide.wire.headers.group import GroupRequest, ProducerGroupRequest, UnregisterClient

log = logging.getLogger(__name__)

SWEEP_S = 10.0
EXPIRED_PER_TURN = 512

AT_ONCE_BYTES = 32 * 1024
"""Of a heartbeat that is taken in one go: about 150 subscriptions."""

JOINED_PER_TURN = 128
"""Groups and subscriptions of a long one."""

_LANGUAGES = dict(
    zip(LANGUAGES, LANGUAGES, strict=True)
)  # by name: whatever else a client says it is, is not kept


class Clients(Part):
    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._notices = Notices()
        self._filters = NotedFilters(state)
        self._provoked = Provoked(state.clock)
        self._retry_topics: Counter[Link] = Counter()  # how many each connection has made
        self._expiring = Slices(self._expire_some)

    def handlers(self) -> dict[RequestCode, Handler]:
        return {
            RequestCode.HEART_BEAT: self.heartbeat,
            RequestCode.UNREGISTER_CLIENT: self.unregister_client,
            RequestCode.CHECK_CLIENT_CONFIG: self.check_client,
            RequestCode.GET_CONSUMER_LIST_BY_GROUP: self.list_members,
            RequestCode.GET_CONSUMER_CONNECTION_LIST: self.consumer_connections,
            RequestCode.GET_PRODUCER_CONNECTION_LIST: self.producer_connections,
            RequestCode.GET_ALL_PRODUCER_INFO: self.all_producers,
            RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER: self.subscription_of_group,
        }

    def work(self) -> list[Work]:
        return [("silent clients", every(SWEEP_S, self.expire))]

    def connection_lost(self, link: Link) -> None:
        """What the connection held is gone, and its groups hear of it at once."""
        self._retry_topics.pop(link, None)
        self._carry_out(self._state.clients.connection_lost(link))

    def figures(self) -> dict[str, str]:
        """What clients take, against the limit that they have."""
        return {"clientBytes": str(self._state.clients.bytes_kept)}

    def close(self) -> None:
        self._notices.close()
        self._filters.close()
        self._expiring.close()

    def expire(self) -> None:
        """Forget clients that have been silent for too long."""
        self._expiring.go()
        self._filters.sweep()

    def _expire_some(self) -> bool:
        effects = self._state.clients.expire(self._state.clock.monotonic_ms(), EXPIRED_PER_TURN)
        self._carry_out(effects)
        return self._state.clients.is_anybody_late(self._state.clock.monotonic_ms())

    # ---- they come and go ----------------------------------------------------------------------------------

    def heartbeat(self, link: Link, request: Command) -> Command | Awaitable[Command]:
        """34: register the client's groups.

        A group that does not exist and may not be created is left out, as in the original; its pulls are refused with
        the reason.  Many new ones come into being over some heartbeats.  A heartbeat that is handled after its
        connection closed registers nothing: it would leave a member that nobody can reach.
        """
        if len(request.body) <= AT_ONCE_BYTES:
            at_once(self._hear(link, request))
            return request.answer()
        link.hold()
        return self._heard_in_turns(link, request)

    async def _heard_in_turns(self, link: Link, request: Command) -> Command:
        try:
            await in_turns(self._hear(link, request))
        finally:
            link.let_on()
        return request.answer()

    def _hear(self, link: Link, request: Command) -> Steps[None]:
        data = yield from HeartbeatData.decoding(request.body)
        new = 0
        for some in _portions(data):
            if not link.is_open:
                return
            admitted, made = self._admitted(link, some.consumers, HEARTBEAT_NEW_GROUPS_MAX - new)
            new += made
            effects = self._state.clients.heartbeat(
                link,
                replace(some, consumers=admitted),
                self._state.clock.monotonic_ms(),
                language=_LANGUAGES.get(request.language, "OTHER"),
                version=request.version,
            )
            self._carry_out(effects)
            self._filters.heard(admitted)
            yield

    def unregister_client(self, link: Link, request: Command) -> Command:
        """35: a client leaves its groups in good order."""
        header = UnregisterClient.decode(request.fields)
        effects = self._state.clients.unregister(
            link, producer_group=header.producer_group, consumer_group=header.consumer_group
        )
        self._carry_out(effects)
        return request.answer()

    def check_client(self, link: Link, request: Command) -> Command:
        """46: any answer but success keeps a consumer from starting, so it learns here what it would miss later."""
        check = ClientCheck.decode(request.body)
        if check.subscription is not None:
            wanted_by(self._state, check.subscription)
        return request.answer()

    def _admitted(
        self, link: Link, consumers: tuple[ConsumerData, ...], new_max: int
    ) -> tuple[tuple[ConsumerData, ...], int]:
        """Those of these groups that may have members here, and how many of them are new."""
        admitted: list[ConsumerData] = []
        refused: list[str] = []
        new = 0
        for consumer in consumers:
            is_new = consumer.group not in self._state.groups
            if is_new and new == new_max:
                continue
            new += is_new
            try:
                self._admit(link, consumer)
                admitted.append(consumer)
            except (RequestError, StoreRefusal) as error:
                refused.append(f"{consumer.group!r}: {error}")
        if refused:  # in one line, however many a client names
            text = "%s does not join %d groups, first %s"
            self._provoked.say(log, logging.WARNING, link.remote, text, link.remote, len(refused), refused[0])
        return tuple(admitted), new

    def _admit(self, link: Link, consumer: ConsumerData) -> None:
        """Create the group where that is needed; an error says why it may not have members here."""
        settings = self._state.settings.now
        host = host_of(link.remote)
        group = self._state.groups.find(consumer.group, auto_create=settings.auto_create_group, host=host)
        self._see_to_retry_topic(link, consumer, group)

    def _see_to_retry_topic(self, link: Link, consumer: ConsumerData, group: GroupConfig) -> None:
        """It must exist when a member wants to read it: clients ask for its route.  The first message that is sent to
        it makes it too, so one that cannot be made now keeps nobody from joining."""
        state, name = self._state, retry_topic(group.name)
        known = state.topics.get(name)
        if known is None:
            wanted = any(one.topic == name for one in consumer.subscriptions)
            wanted = wanted and not state.new_topics.must_wait(name)
            if not wanted or self._retry_topics[link] >= RETRY_TOPICS_PER_CONNECTION_MAX:
                return
        ordered = (state.topics.get(one.topic) for one in consumer.subscriptions)
        order = any(topic is not None and topic.order for topic in ordered)
        try:
            state.new_topics.put(
                topic_for_retry(
                    group.name, known, group.retry_queues, order=order, unit_mode=consumer.unit_mode
                )
            )
        except TableFull as error:
            text = "the group %.255r has no retry topic yet: %s"
            self._provoked.say(log, logging.INFO, link.remote, text, group.name, error)
        else:
            self._retry_topics[link] += known is None

    def _carry_out(self, effects: Effects[Link]) -> None:
        """Do what the table of clients found necessary."""
        refused: list[str] = []
        for effect in effects:
            match effect:
                case NotifyGroup(group, links):
                    self._notices.send(group, links)
                case Refused(group):
                    refused.append(group)
                case Differs(group, client_id):
                    self._say_difference(group, client_id)
                case Disconnect(link):
                    text = "closing the connection of %s: no heartbeat for two minutes"
                    self._provoked.say(log, logging.INFO, link.remote, text, link.remote)
                    link.close()
        if refused:
            text = (
                "no room for all groups of a client, or for what they subscribe to: %d left out, %r for one"
            )
            self._provoked.say(log, logging.WARNING, "", text, len(refused), refused[0])

    def _say_difference(self, group: str, client_id: str) -> None:
        """Members that subscribe differently lose messages, and nobody else tells them."""
        link = self._state.clients.connection_of(group, client_id)
        others = self._state.clients.member_ids(group)
        text = (
            "members of the group %.255r subscribe to different things, so some of them miss messages: %.255r of %s "
            "wants something else than others of the %d; `bolide group describe` shows who wants what"
        )
        remote = "" if link is None else link.remote
        self._provoked.say(log, logging.WARNING, remote, text, group, client_id, remote, len(others))

    # ---- who is there --------------------------------------------------------------------------------------

    def list_members(self, link: Link, request: Command) -> Command:
        """38: the client ids among which members share the queues."""
        group = GroupRequest.decode(request.fields).consumer_group
        client_ids = self._state.clients.member_ids(group)
        if not client_ids:
            raise RequestError(f"no consumer of the group {group[:255]!r} is connected")
        return request.answer(body=encode_member_ids(client_ids))

    def consumer_connections(self, link: Link, request: Command) -> Awaitable[Command | None]:
        """203."""
        name = GroupRequest.decode(request.fields).consumer_group
        group = self._state.clients.require(name)
        return self._state.large_answers.make(
            link, request, lambda: _group_pieces(name, group, self._state.clients.variants(name))
        )

    def producer_connections(self, link: Link, request: Command) -> Awaitable[Command | None]:
        """204."""
        group = ProducerGroupRequest.decode(request.fields).producer_group
        clients = self._state.clients
        if not clients.has_producers(group):
            raise RequestError(f"no producer of the group {group[:255]!r} is connected")

        def pieces() -> Iterator[bytes]:
            return producer_connection_pieces(map(_connection, clients.producers(group)))

        return self._state.large_answers.make(link, request, pieces)

    def all_producers(self, link: Link, request: Command) -> Awaitable[Command | None]:
        """328: by group, each with when it was heard last."""
        return self._state.large_answers.make(
            link, request, lambda: producer_table_pieces(self._producers_by_group())
        )

    def _producers_by_group(self) -> Iterator[tuple[str, list[tuple[ClientConnection, int]]]]:
        clients, clock = self._state.clients, self._state.clock
        for group in clients.producer_groups():
            ago = clock.now_ms() - clock.monotonic_ms()  # from the steady clock to the calendar
            yield (
                group,
                [
                    (_connection(member), ago + (clients.heard_ms(member.connection, group) or 0))
                    for member in clients.producers(group)
                ],
            )

    def subscription_of_group(self, link: Link, request: Command) -> Command:
        """345: what an online group wants of a topic; no subscription in the answer when it is not online."""
        header = SubscriptionRequest.decode(request.fields)
        group = self._state.clients.group(header.group)
        subscription = None if group is None else group.subscriptions.get(header.topic)
        return request.answer(body=encode_subscription(header.group, header.topic, subscription))


def _group_pieces(name: str, group: ConsumerGroup[Link], variants: list[Variant]) -> Iterator[bytes]:
    described = ConsumerData(
        name,
        group.consume_type,
        group.message_model,
        group.consume_from,
        tuple(group.subscriptions.values()),
    )
    differences = [SubscriptionDifference(one.client_ids, one.wishes) for one in variants]
    return consumer_connection_pieces(map(_connection, list(group.members.values())), described, differences)


def _connection(member: Member[Link]) -> ClientConnection:
    return ClientConnection(member.client_id, member.connection.remote, member.language, member.version)


def _portions(data: HeartbeatData) -> Iterator[HeartbeatData]:
    """The same in pieces, the producers with the last one."""
    some: list[ConsumerData] = []
    size = 0
    for consumer in data.consumers:
        some.append(consumer)
        size += 1 + len(consumer.subscriptions)
        if size >= JOINED_PER_TURN:
            yield replace(data, consumers=tuple(some), producers=())
            some, size = [], 0
    yield replace(data, consumers=tuple(some))
