"""A broker's registration with real name servers, some of them down (check-list NS-01, NS-03, NS-06)."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from bolide.broker import register
from bolide.broker.register import BrokerIdentity, RegisterOptions, Registrar, RegistrationNews
from bolide.model.data_version import DataVersion
from bolide.model.errors import ConfigError
from bolide.model.topic import TopicConfig
from bolide.nameserver.app import NameServer
from bolide.nameserver.config import NameServerConfig
from bolide.net.caller import Caller
from bolide.net.clock import SystemClock
from bolide.net.link import Link
from bolide.testing import EmbeddedServer
from bolide.wire.bodies.route import QueueData
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from tests.unit.nameserver.stage import Stage, eventually, serving

ME = BrokerIdentity("C", "broker-a", "127.0.0.1:10911", ha_address="127.0.0.1:10912")


class Topics:
    """The topic table of a broker, as far as a registrar sees it."""

    def __init__(self, *topics: TopicConfig) -> None:
        self.version = DataVersion(counter=1)
        self.topics = list(topics)

    def __call__(self) -> tuple[DataVersion, Sequence[TopicConfig]]:
        return self.version, self.topics

    def add(self, topic: TopicConfig) -> None:
        self.topics.append(topic)
        self.version = self.version.next(0)


@asynccontextmanager
async def registering(
    addresses: Sequence[str],
    topics: Topics,
    *,
    permission: Callable[[], int] = lambda: 6,
    options: RegisterOptions | None = None,
    news: list[RegistrationNews] | None = None,
    identity: BrokerIdentity = ME,
) -> AsyncIterator[Registrar]:
    def on_close(address: str) -> None:
        registrar.connection_lost(address)

    def on_request(link: Link, request: Command) -> None:
        assert request.code == RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE
        registrar.place_taken(link)

    caller = Caller(SystemClock(), on_request=on_request, on_close=on_close)
    registrar = Registrar(
        caller,
        addresses,
        identity,
        topics,
        permission=permission,
        options=options,
        on_news=None if news is None else news.append,
    )
    await registrar.start()
    try:
        yield registrar
    finally:
        await registrar.stop()
        await caller.close()


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def count_requests(server: NameServer, code: int) -> list[Command]:
    """The requests of one code that reach the server from now on."""
    seen: list[Command] = []
    handle = server.on_request

    def on_request(link: Link, request: Command) -> None:
        if request.code == code:
            seen.append(request)
        handle(link, request)

    server.on_request = on_request  # type: ignore[method-assign]
    return seen


def knows(stage: Stage, name: str = "broker-a") -> Callable[[], Awaitable[bool]]:
    async def check() -> bool:
        return name in await stage.brokers()

    return check


def test_every_listed_name_server_is_told_and_no_other() -> None:
    async def scenario() -> None:
        async with serving() as first, serving() as second, serving() as unlisted:
            async with registering([first.address, second.address], Topics(TopicConfig("orders", 4, 4))):
                for stage in (first, second):
                    route = await stage.route("orders")
                    assert route is not None
                    assert route.brokers[0].addresses == {0: ME.address}
                assert await unlisted.brokers() == set()
            for stage in (first, second):
                assert await stage.brokers() == set()

    asyncio.run(scenario())


@pytest.mark.parametrize("topics", [Topics(), Topics(TopicConfig("orders"))])
def test_even_a_broker_with_one_topic_or_none_is_accepted(topics: Topics) -> None:
    async def scenario() -> None:
        async with serving() as stage, registering([stage.address], topics) as registrar:
            assert registrar.problems() == {}
            assert await stage.brokers() == {"broker-a"}

    asyncio.run(scenario())


def test_a_dead_name_server_delays_nobody_and_is_told_when_it_comes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(register, "RETRY_MS", 20)

    async def scenario() -> None:
        dead = f"127.0.0.1:{closed_port()}"
        topics = Topics(TopicConfig("orders"))
        async with serving() as stage, registering([dead, stage.address], topics) as registrar:
            assert await stage.brokers() == {"broker-a"}
            assert list(registrar.problems()) == [dead]
            topics.add(TopicConfig("bills"))
            registrar.topic_changed()
            assert await registrar.settled()
            assert await stage.route("bills") is not None

            late = NameServer(NameServerConfig(host="127.0.0.1", port=int(dead.rpartition(":")[2])))
            await late.start()
            try:
                await eventually(lambda: not registrar.problems())
                assert await knows(Stage(late, stage.caller))()
            finally:
                await late.stop()

    asyncio.run(scenario())


def test_a_name_server_that_accepts_and_says_nothing_delays_nobody() -> None:
    async def scenario() -> None:
        mute = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
        address = f"127.0.0.1:{mute.sockets[0].getsockname()[1]}"
        async with serving() as stage:
            caller = Caller(SystemClock())
            registrar = Registrar(caller, [address, stage.address], ME, Topics())
            start = asyncio.create_task(registrar.start())
            await eventually(knows(stage))
            start.cancel()
            await registrar.stop()
            await caller.close()
        mute.close()

    asyncio.run(scenario())


def test_a_restarted_name_server_is_filled_again_without_waiting_for_the_period(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(register, "RETRY_MS", 20)

    async def scenario() -> None:
        async with serving() as stage, registering([stage.address], Topics()):
            port = stage.server.port
            await stage.server.stop()
            again = NameServer(NameServerConfig(host="127.0.0.1", port=port))
            await again.start()
            try:
                await eventually(knows(Stage(again, stage.caller)))
            finally:
                await again.stop()

    asyncio.run(scenario())


def test_a_changed_topic_is_told_at_once() -> None:
    async def scenario() -> None:
        topics = Topics(TopicConfig("orders", 4, 4))
        async with serving() as stage, registering([stage.address], topics) as registrar:
            topics.add(TopicConfig("new", 2, 2))
            registrar.topic_changed()
            assert await registrar.settled()
            assert await stage.route("new") is not None

    asyncio.run(scenario())


def test_changes_that_come_together_are_told_together() -> None:
    async def scenario() -> None:
        topics = Topics()
        async with serving() as stage, registering([stage.address], topics) as registrar:
            seen = count_requests(stage.server, RequestCode.REGISTER_BROKER)
            for number in range(100):
                topics.add(TopicConfig(f"topic-{number}"))
                registrar.topic_changed()
            assert await registrar.settled()
            assert await stage.route("topic-99") is not None
            assert len(seen) <= 2

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "case", ["one change", "old name server", "refused alone", "deletion", "many changes"]
)
def test_a_small_change_is_told_alone_and_everything_else_with_the_whole_table(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if case == "old name server":
        monkeypatch.setattr(register, "VERSION_TAKES_ONE_TOPIC", 10_000)

    async def scenario() -> None:
        topics = Topics(TopicConfig("orders", 4, 4))
        async with serving() as stage, registering([stage.address], topics) as registrar:
            if case == "refused alone":
                del stage.server._dispatcher._registry._rows[RequestCode.REGISTER_TOPIC_IN_NAMESRV]
            if case == "deletion":
                topics.topics.clear()
            alone = count_requests(stage.server, RequestCode.REGISTER_TOPIC_IN_NAMESRV)
            whole = count_requests(stage.server, RequestCode.REGISTER_BROKER)
            for number in range(17 if case == "many changes" else 1):
                topics.add(TopicConfig(f"new-{number}", 3, 2, perm=4))
            registrar.topic_changed()
            assert await registrar.settled()
            assert len(alone) == (1 if case in ("one change", "refused alone") else 0)
            assert len(whole) == (0 if case == "one change" else 1)
            route = await stage.route("new-0")
            assert route is not None
            assert route.queues == (QueueData("broker-a", 3, 2, 4),)

    asyncio.run(scenario())


def test_a_changed_topic_told_alone_replaces_what_was_known() -> None:
    async def scenario() -> None:
        topics = Topics(TopicConfig("orders", 4, 4))
        async with serving() as stage, registering([stage.address], topics) as registrar:
            for queues in (8, 6):
                topics.topics[0] = TopicConfig("orders", queues, queues)
                topics.version = topics.version.next(0)
                registrar.topic_changed()
                assert await registrar.settled()
                route = await stage.route("orders")
                assert route is not None
                assert route.queues[0].read_queues == queues

    asyncio.run(scenario())


def test_registration_is_repeated_every_period(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(register, "PERIOD_MS_MIN", 5)

    async def scenario() -> None:
        options = RegisterOptions(period_ms=5)
        async with serving() as stage, registering([stage.address], Topics(), options=options):
            seen = count_requests(stage.server, RequestCode.REGISTER_BROKER)
            await eventually(lambda: len(seen) >= 3)

    asyncio.run(scenario())


def test_a_broker_whose_topics_change_all_the_time_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic told alone does not tell the name server that the broker lives; only the whole registration does."""
    monkeypatch.setattr(register, "PERIOD_MS_MIN", 300)

    async def scenario() -> None:
        topics, options = Topics(TopicConfig("orders", 4, 4)), RegisterOptions(period_ms=300)
        async with serving() as stage, registering([stage.address], topics, options=options) as registrar:
            whole = count_requests(stage.server, RequestCode.REGISTER_BROKER)

            async def change_and_look() -> bool:
                queues = topics.topics[0].read_queues % 8 + 1
                topics.topics[0] = TopicConfig("orders", queues, queues)
                topics.version = topics.version.next(0)
                registrar.topic_changed()
                assert await registrar.settled()
                return len(whole) >= 2

            await eventually(change_and_look, seconds=30)

    asyncio.run(scenario())


@pytest.mark.parametrize(("asked", "used"), [(1, 10_000), (30_000, 30_000), (600_000, 60_000)])
def test_the_period_stays_between_ten_seconds_and_a_minute(asked: int, used: int) -> None:
    options = RegisterOptions(period_ms=asked)
    assert Registrar(Caller(SystemClock()), [], ME, Topics(), options=options).period_ms == used


def test_without_force_a_broker_asks_first_and_registers_only_news(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(register, "PERIOD_MS_MIN", 5)

    async def scenario() -> None:
        topics, options = Topics(), RegisterOptions(period_ms=5, force=False)
        async with serving() as stage, registering([stage.address], topics, options=options):
            asked = count_requests(stage.server, RequestCode.QUERY_DATA_VERSION)
            told = count_requests(stage.server, RequestCode.REGISTER_BROKER)
            await eventually(lambda: len(asked) >= 3)
            assert told == []
            topics.add(TopicConfig("news"))
            await eventually(lambda: len(told) == 1)
            assert await stage.route("news") is not None

    asyncio.run(scenario())


def test_over_a_new_connection_a_broker_registers_without_asking_first() -> None:
    """The name server may still hold the old connection; when that closes, it would drop the broker."""

    async def scenario() -> None:
        options = RegisterOptions(force=False)
        async with serving() as stage, registering([stage.address], Topics(), options=options):
            asked = count_requests(stage.server, RequestCode.QUERY_DATA_VERSION)
            told = count_requests(stage.server, RequestCode.REGISTER_BROKER)
            for link in list(stage.server._server.links):
                link.close()
            await eventually(lambda: len(told) == 1)
            assert asked == []

    asyncio.run(scenario())


def test_a_broker_that_stops_says_goodbye() -> None:
    async def scenario() -> None:
        async with serving() as stage:
            goodbyes = count_requests(stage.server, RequestCode.UNREGISTER_BROKER)
            async with registering([stage.address], Topics()) as registrar:
                await registrar.stop()
                assert [request.fields["brokerAddr"] for request in goodbyes] == [ME.address]
                assert await stage.brokers() == set()

    asyncio.run(scenario())


def test_what_the_broker_does_not_permit_no_topic_permits() -> None:
    async def scenario() -> None:
        permission = 6
        topics = Topics(TopicConfig("orders", 4, 4), TopicConfig("TBW102", 8, 8, perm=7))
        async with (
            serving() as stage,
            registering([stage.address], topics, permission=lambda: permission) as registrar,
        ):

            async def perms() -> list[int]:
                routes = [await stage.route(topic) for topic in ("orders", "TBW102")]
                return [route.queues[0].perm for route in routes if route is not None]

            assert await perms() == [6, 7]
            permission = 4
            topics.version = topics.version.next(0)
            registrar.topic_changed()
            assert await registrar.settled()
            assert await perms() == [4, 4]

    asyncio.run(scenario())


def test_a_compressed_registration_arrives() -> None:
    async def scenario() -> None:
        options = RegisterOptions(compressed=True)
        topics = Topics(TopicConfig("orders", 4, 2, attributes={"message.type": "FIFO"}))
        async with serving() as stage, registering([stage.address], topics, options=options):
            route = await stage.route("orders")
            assert route is not None
            assert (route.queues[0].read_queues, route.queues[0].write_queues) == (4, 2)

    asyncio.run(scenario())


def test_a_slave_learns_its_master_and_everyone_the_ordered_topics() -> None:
    async def scenario() -> None:
        news: list[RegistrationNews] = []
        async with serving() as stage:
            put = {"namespace": "ORDER_TOPIC_CONFIG", "key": "orders", "value": "broker-a:4"}
            await stage.ask(RequestCode.PUT_KV_CONFIG, put)
            slave = replace(ME, address="127.0.0.1:20911", broker_id=1, ha_address="")
            async with (
                registering([stage.address], Topics()),
                registering([stage.address], Topics(), identity=slave, news=news),
            ):
                assert news == [RegistrationNews({"orders": "broker-a:4"}, ME.address, ME.ha_address)]

    asyncio.run(scenario())


def test_a_refusal_is_a_problem_with_its_reason() -> None:
    async def scenario() -> None:
        identity = replace(ME, cluster="x" * 300)
        async with serving() as stage, registering([stage.address], Topics(), identity=identity) as registrar:
            assert "255 characters" in registrar.problems()[stage.address]

    asyncio.run(scenario())


def test_a_broker_at_the_name_server_s_address_is_called_one() -> None:
    async def scenario(address: str) -> None:
        async with registering([address], Topics()) as registrar:
            assert "it is a broker, not a name server" in registrar.problems()[address]

    with EmbeddedServer() as server:
        asyncio.run(scenario(server.broker))


@pytest.mark.parametrize("address", ["0.0.0.0:10911", "[::]:10911", "nowhere"])
def test_an_address_that_clients_cannot_use_is_refused(address: str) -> None:
    with pytest.raises(ConfigError):
        BrokerIdentity("C", "broker-a", address)


# ---- somebody else speaks for our name ---------------------------------------------------------------------------


async def take_place(stage: Stage, stranger: Caller) -> None:
    await stage.register(ME.name, address="10.6.6.6:1", caller=stranger)


async def speak_for(stage: Stage, stranger: Caller) -> None:
    """Its connection is the broker's life line now, and closes."""
    await stage.register(ME.name, address=ME.address, caller=stranger)
    await stranger.close()


async def say_goodbye(stage: Stage, stranger: Caller) -> None:
    fields = {"brokerName": ME.name, "brokerAddr": ME.address, "clusterName": ME.cluster, "brokerId": "0"}
    await stage.ask(RequestCode.UNREGISTER_BROKER, fields, caller=stranger)


@pytest.mark.parametrize("force", [True, False])
@pytest.mark.parametrize("take", [take_place, speak_for, say_goodbye])
def test_a_broker_whose_place_is_taken_is_back_at_once(
    take: Callable[[Stage, Caller], Awaitable[None]], force: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its messages were out of reach until its next period, whoever said so."""
    monkeypatch.setattr(Registrar, "period_ms", 3_600_000)

    async def main() -> None:
        async with serving() as stage:
            options = RegisterOptions(force=force)
            async with registering([stage.address], Topics(TopicConfig("t")), options=options):
                registrations = count_requests(stage.server, RequestCode.REGISTER_BROKER)
                stranger = Caller(SystemClock())
                await take(stage, stranger)
                own = {ME.name: {0: ME.address}}
                await eventually(
                    lambda: [one for one in registrations if one.fields["brokerAddr"] == ME.address]
                )
                await eventually(lambda: holders(stage) == own)
                await stranger.close()
                await eventually(lambda: holders(stage) == own)

    asyncio.run(main())


def holders(stage: Stage) -> dict[str, dict[int, str]]:
    return {ME.name: dict(stage.server._state.routes.member_group(ME.name))}


def test_two_brokers_that_take_each_others_place_do_so_ever_more_rarely() -> None:
    async def main() -> None:
        async with serving() as stage:
            other = replace(ME, address="127.0.0.1:20911")
            registrations = count_requests(stage.server, RequestCode.REGISTER_BROKER)
            async with (
                registering([stage.address], Topics(TopicConfig("t"))) as first,
                registering([stage.address], Topics(TopicConfig("t")), identity=other) as second,
            ):
                await eventually(lambda: all(one._contacts[stage.address].hurries for one in (first, second)))
                contact = first._contacts[stage.address]
                assert contact.link is not None
                for _ in range(1000):
                    first.place_taken(contact.link)
                assert contact.hurries <= 3
                assert len(registrations) <= 6

    asyncio.run(main())
