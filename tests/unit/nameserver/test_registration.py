"""Brokers and routes over real sockets (check-list NS-02 to NS-04, NS-07 to NS-09)."""

import asyncio

import pytest

from bolide.machines.registration import Registration
from bolide.machines.said import LINES_MAX
from bolide.model.data_version import DataVersion
from bolide.model.java_json import dumps, loads
from bolide.model.json_pieces import PIECE_ENTRIES
from bolide.model.topic import TopicConfig
from bolide.nameserver.config import NameServerConfig
from bolide.wire.bodies.registration import RegistrationBody
from bolide.wire.bodies.route import (
    BrokerData,
    ClusterInfo,
    QueueData,
    TopicRoute,
    decode_kv_table,
    decode_member_group,
)
from bolide.wire.codes import RequestCode, ResponseCode
from bolide.wire.headers.route import BrokerRequest, RegisterBroker
from bolide.wire.headers.topic import TopicRequest
from tests.unit.nameserver.stage import BUILT_IN, HeldClock, callers, eventually, pause, serving
from tests.unit.net.turns import counted_by_turn

ORDERS = TopicConfig("orders", 4, 4)
V4_9_3, V4_9_4, V4_9_7, V5_4_0 = 399, 401, 407, 493


@pytest.mark.parametrize(("compressed", "version"), [(False, V4_9_7), (False, V5_4_0), (True, V5_4_0)])
def test_a_registered_broker_is_in_the_route(compressed: bool, version: int) -> None:
    async def scenario() -> None:
        async with serving() as stage:
            answer = await stage.register("broker-a", ORDERS, compressed=compressed, version=version)
            assert answer.code == ResponseCode.SUCCESS
            assert await stage.route("orders") == TopicRoute(
                (QueueData("broker-a", 4, 4, 6),), (BrokerData("broker-a", "C", {0: "127.0.0.1:10911"}),)
            )
            assert await stage.route("unknown") is None

    asyncio.run(scenario())


def test_old_clients_get_bare_broker_ids_and_others_standard_json() -> None:
    async def scenario() -> None:
        async with serving() as stage:
            await stage.register("broker-a", ORDERS)

            async def body(version: int, **fields: str) -> bytes:
                fields["topic"] = "orders"
                answer = await stage.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, fields, version=version)
                return answer.body

            assert b"{0:" in await body(V4_9_3)
            assert b'{"0":' in await body(V4_9_4)
            assert b'{"0":' in await body(V4_9_3, acceptStandardJsonOnly="true")

    asyncio.run(scenario())


def test_a_closed_connection_removes_its_broker_at_once() -> None:
    async def scenario() -> None:
        async with serving(clock=HeldClock()) as stage, callers(1) as (broker,):
            await stage.register("broker-a", ORDERS, caller=broker)
            assert await stage.brokers() == {"broker-a"}
            await broker.close()

            async def gone() -> bool:
                return await stage.brokers() == set() and await stage.route("orders") is None

            await eventually(gone)

    asyncio.run(scenario())


def test_the_close_of_an_outdated_connection_removes_nobody() -> None:
    async def scenario() -> None:
        async with serving() as stage, callers(2) as (old, new):
            await stage.register("broker-a", caller=old)
            await stage.register("broker-a", caller=new)
            await old.close()
            await pause()
            assert await stage.brokers() == {"broker-a"}

    asyncio.run(scenario())


def test_a_silent_broker_is_gone_after_two_minutes_and_its_connection_with_it() -> None:
    async def scenario() -> None:
        clock = HeldClock()
        async with serving(NameServerConfig(scan_interval_ms=5), clock) as stage, callers(1) as (broker,):
            await stage.register("broker-a", caller=broker)
            link = await broker.link(stage.address)
            clock.ms += 120_000
            await pause()
            await pause()
            assert await stage.brokers() == {"broker-a"}
            clock.ms += 1
            await eventually(lambda: not link.is_open)
            assert await stage.brokers() == set()

    asyncio.run(scenario())


def test_heartbeats_and_version_queries_keep_a_broker_alive() -> None:
    async def scenario() -> None:
        clock = HeldClock()
        who = BrokerRequest("broker-a", "127.0.0.1:10911", "C", 0)
        async with serving(NameServerConfig(scan_interval_ms=5), clock) as stage:
            await stage.register("broker-a", lifetime_ms=10_000)
            for code in (RequestCode.BROKER_HEARTBEAT, RequestCode.QUERY_DATA_VERSION):
                clock.ms += 9_000
                assert (await stage.ask(code, who)).code == ResponseCode.SUCCESS
            clock.ms += 9_000
            await pause()
            await pause()
            assert await stage.brokers() == {"broker-a"}

    asyncio.run(scenario())


def test_a_stopped_name_server_starts_empty() -> None:
    async def scenario() -> None:
        async with serving() as first:
            await first.register("broker-a", ORDERS)
        async with serving() as second:
            assert await second.brokers() == set()

    asyncio.run(scenario())


def test_a_slave_changes_no_queues_and_learns_where_its_master_is() -> None:
    async def scenario() -> None:
        async with serving() as stage:
            await stage.register("broker-a", ORDERS, address="10.0.0.1:1")
            slave = await stage.register(
                "broker-a", TopicConfig("orders", 9, 9), address="10.0.0.2:1", broker_id=1, counter=5
            )
            assert slave.fields == {"masterAddr": "10.0.0.1:1", "haServerAddr": "10.0.0.1:19"}
            route = await stage.route("orders")
            assert route is not None
            assert route.queues == (QueueData("broker-a", 4, 4, 6),)
            assert route.brokers[0].addresses == {0: "10.0.0.1:1", 1: "10.0.0.2:1"}
            fields = {"clusterName": "C", "brokerName": "broker-a"}
            group = await stage.ask(RequestCode.GET_BROKER_MEMBER_GROUP, fields)
            assert decode_member_group(group.body) == {0: "10.0.0.1:1", 1: "10.0.0.2:1"}

    asyncio.run(scenario())


def test_a_first_registration_with_one_topic_is_refused_and_with_two_accepted() -> None:
    """NS-08."""

    async def scenario() -> None:
        async with serving() as stage:
            body = RegistrationBody(DataVersion(counter=1), (ORDERS,)).encode()
            header = RegisterBroker("broker-a", "x:1", "C")
            refused = await stage.ask(RequestCode.REGISTER_BROKER, header, body)
            assert refused.code == ResponseCode.SYSTEM_ERROR
            body = RegistrationBody(DataVersion(counter=1), (ORDERS, TopicConfig("bills"))).encode()
            assert (await stage.ask(RequestCode.REGISTER_BROKER, header, body)).code == ResponseCode.SUCCESS

    asyncio.run(scenario())


def test_a_wrong_checksum_is_refused_and_a_missing_one_is_not_checked() -> None:
    async def scenario() -> None:
        async with serving() as stage:
            body = RegistrationBody(DataVersion(counter=1), (ORDERS, TopicConfig("bills"))).encode()
            for crc, code in ((1, ResponseCode.SYSTEM_ERROR), (0, ResponseCode.SUCCESS)):
                header = RegisterBroker("broker-a", "x:1", "C", body_crc32=crc)
                assert (await stage.ask(RequestCode.REGISTER_BROKER, header, body)).code == code

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"brokerName": "a", "brokerAddr": "", "clusterName": "C"},
        {"brokerName": "a", "brokerAddr": "x:1", "clusterName": "C" * 300},
        {"brokerName": "a", "brokerAddr": "x:1", "clusterName": "C", "brokerId": "-1"},
        {"brokerName": "a", "brokerAddr": "x:1", "clusterName": "C", "compressed": "true"},
        {"brokerName": "a", "brokerAddr": "x:1", "clusterName": "C", "__ZONE_NAME": "z" * 300},
    ],
)
def test_a_malformed_registration_is_an_invalid_request(fields: dict[str, str]) -> None:
    async def scenario() -> None:
        async with serving() as stage:
            answer = await stage.ask(RequestCode.REGISTER_BROKER, fields, b"{}")
            assert answer.code == ResponseCode.INVALID_PARAMETER
            assert answer.remark
            assert await stage.brokers() == set()

    asyncio.run(scenario())


@pytest.mark.parametrize("servers", [("f" * 300,), tuple(f"f{number}:1" for number in range(17))])
def test_filter_servers_are_bounded_like_everything_that_is_kept(servers: tuple[str, ...]) -> None:
    async def scenario() -> None:
        async with serving() as stage:
            header = RegisterBroker("broker-a", "x:1", "C")
            body = RegistrationBody(DataVersion(), BUILT_IN, servers).encode()
            answer = await stage.ask(RequestCode.REGISTER_BROKER, header, body)
            assert answer.code == ResponseCode.INVALID_PARAMETER
            assert await stage.brokers() == set()

    asyncio.run(scenario())


def test_unregistering_removes_the_broker() -> None:
    async def scenario() -> None:
        async with serving() as stage:
            await stage.register("broker-a")
            who = BrokerRequest("broker-a", "127.0.0.1:10911", "C", 0)
            assert (await stage.ask(RequestCode.UNREGISTER_BROKER, who)).code == ResponseCode.SUCCESS
            assert await stage.brokers() == set()

    asyncio.run(scenario())


def test_a_broker_learns_whether_its_topics_are_news() -> None:
    async def scenario() -> None:
        async with serving() as stage:
            who = BrokerRequest("broker-a", "127.0.0.1:10911", "C", 0)

            async def changed(version: DataVersion) -> tuple[str, object]:
                answer = await stage.ask(RequestCode.QUERY_DATA_VERSION, who, dumps(version.as_json()))
                return answer.fields["changed"], loads(answer.body) if answer.body else None

            known = DataVersion(counter=1)
            assert await changed(known) == ("true", None)
            await stage.register("broker-a", counter=1)
            assert await changed(known) == ("false", known.as_json())
            assert await changed(known.next(5)) == ("true", known.as_json())

    asyncio.run(scenario())


def test_one_topic_can_be_registered_alone() -> None:
    async def scenario() -> None:
        async with serving() as stage:
            await stage.register("broker-a")
            code, fields = RequestCode.REGISTER_TOPIC_IN_NAMESRV, {"topic": "late"}
            body = TopicRoute((QueueData("broker-a", 2, 2, 6),)).encode()
            assert (await stage.ask(code, fields, body)).code == ResponseCode.SUCCESS
            assert await stage.route("late") is not None
            stranger = TopicRoute((QueueData("stranger", 2, 2, 6),)).encode()
            assert (await stage.ask(code, fields, stranger)).code == ResponseCode.SYSTEM_ERROR
            absurd = TopicRoute((QueueData("broker-a", -2, 2, 6),)).encode()
            assert (await stage.ask(code, fields, absurd)).code == ResponseCode.INVALID_PARAMETER

    asyncio.run(scenario())


def test_write_permission_is_wiped_and_given_back() -> None:
    async def scenario() -> None:
        async with serving() as stage:
            await stage.register("broker-a", ORDERS)

            async def perm() -> int:
                route = await stage.route("orders")
                assert route is not None
                return route.queues[0].perm

            fields = {"brokerName": "broker-a"}
            wiped = await stage.ask(RequestCode.WIPE_WRITE_PERM_OF_BROKER, fields)
            assert (wiped.fields["wipeTopicCount"], await perm()) == ("3", 4)
            added = await stage.ask(RequestCode.ADD_WRITE_PERM_OF_BROKER, fields)
            assert (added.fields["addTopicCount"], await perm()) == ("3", 6)

    asyncio.run(scenario())


def test_a_registration_is_answered_with_the_ordered_topics() -> None:
    async def scenario() -> None:
        async with serving() as stage:
            assert (await stage.register("broker-a")).body == b""
            put = {"namespace": "ORDER_TOPIC_CONFIG", "key": "orders", "value": "broker-a:4"}
            await stage.ask(RequestCode.PUT_KV_CONFIG, put)
            assert decode_kv_table((await stage.register("broker-a")).body) == {"orders": "broker-a:4"}
            stage.server.change({"returnOrderTopicConfigToBroker": "false"})
            assert (await stage.register("broker-a")).body == b""

    asyncio.run(scenario())


def test_a_refused_registration_is_a_sign_of_life_and_its_reason_is_in_the_log_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        clock = HeldClock()
        async with serving(NameServerConfig(scan_interval_ms=5), clock) as stage, callers(2) as (old, new):
            await stage.register("broker-a", ORDERS, caller=old)
            header = RegisterBroker("broker-a", "127.0.0.1:10911", "C")
            for _ in range(3):
                clock.ms += 100_000
                answer = await stage.ask(RequestCode.REGISTER_BROKER, header, b"[", caller=new)
                assert answer.code == ResponseCode.INVALID_PARAMETER
            await old.close()  # which is not its life line any more
            await pause()
            await pause()
            assert await stage.route("orders") is not None

    asyncio.run(scenario())
    refusals = [line for line in caplog.messages if "refusing a registration" in line]
    assert len(refusals) == 1
    assert "'broker-a'" in refusals[0]
    assert "malformed" in refusals[0]


def test_two_brokers_of_one_name_are_in_the_log_and_in_what_operators_see(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        async with serving() as stage, callers(2) as (one, other):
            for _ in range(3):
                await stage.register("broker-a", address="10.0.0.1:1", caller=one)
                await stage.register("broker-a", address="10.0.0.2:1", caller=other)
            answer = await stage.ask(RequestCode.GET_BROKER_CLUSTER_INFO)
            assert ClusterInfo.decode(answer.body).brokers["broker-a"].rivals == ("10.0.0.1:1",)

    asyncio.run(scenario())
    said = [line for line in caplog.messages if "two brokers call themselves" in line]
    assert len(said) == 1
    assert "'10.0.0.1:1', and now '10.0.0.2:1'" in said[0]


def test_a_broker_that_moves_or_is_elected_is_nobodys_rival(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with serving() as stage, callers(1) as (elected,):
            await stage.register("broker-a", address="10.0.0.1:1")
            await stage.register("broker-a", address="10.0.0.1:2")  # over the same connection
            version = DataVersion(state_version=1)
            body = RegistrationBody(version, BUILT_IN).encode()
            header = RegisterBroker("broker-a", "10.0.0.3:1", "C")
            await stage.ask(RequestCode.REGISTER_BROKER, header, body, caller=elected)
            assert await stage.brokers() == {"broker-a"}

    asyncio.run(scenario())
    assert "two brokers" not in caplog.text


def test_a_broker_that_somebody_else_takes_out_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with serving() as stage, callers(1) as (broker,):
            await stage.register("broker-a\n", caller=broker)
            who = BrokerRequest("broker-a\n", "127.0.0.1:10911", "C", 0)
            await stage.ask(RequestCode.UNREGISTER_BROKER, who)
            assert await stage.brokers() == set()

    asyncio.run(scenario())
    (said,) = [line for line in caplog.messages if "is taken out by" in line]
    assert "broker-a\\n" in said


def test_what_strangers_make_up_does_not_silence_the_alarm_about_two_brokers_of_one_name(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        async with serving() as stage, callers(2) as (one, other):
            for number in range(2 * LINES_MAX):
                header = RegisterBroker(f"made-up-{number}", "10.0.0.9:1", "C")
                await stage.ask(RequestCode.REGISTER_BROKER, header, b"[")
            for number in range(2 * LINES_MAX):
                await stage.register("broker-x", address=f"10.0.0.9:{number}")
                who = BrokerRequest("broker-x", f"10.0.0.9:{number}", "C", 0)
                await stage.ask(RequestCode.UNREGISTER_BROKER, who, caller=other)
            await stage.register("broker-a", address="10.0.0.1:1", caller=one)
            await stage.register("broker-a", address="10.0.0.2:1", caller=other)

    asyncio.run(scenario())
    assert sum("two brokers call themselves 'broker-a'" in line for line in caplog.messages) == 1
    for text in ("refusing a registration", "is taken out by"):
        assert sum(text in line for line in caplog.messages) == 1, "one line for a host"


def test_the_route_of_a_topic_on_many_brokers_is_made_in_pieces() -> None:
    async def scenario() -> None:
        async with serving() as stage:
            names = {f"b{number}" for number in range(3 * PIECE_ENTRIES)}
            for name in names:
                news = Registration("C", name, f"{name}:1", 0, DataVersion(), (*BUILT_IN, ORDERS))
                stage.server._state.routes.register(0, news, name)
            with counted_by_turn(QueueData, "as_json") as encoded:
                route = await stage.route("orders")
            assert route is not None
            assert {queue.broker_name for queue in route.queues} == names
            assert encoded.total == len(names)
            assert encoded.most <= PIECE_ENTRIES

    asyncio.run(scenario())


@pytest.mark.parametrize("code", [RequestCode.REGISTER_TOPIC_IN_NAMESRV, RequestCode.QUERY_DATA_VERSION])
def test_small_words_of_brokers_are_small(code: RequestCode) -> None:
    async def scenario() -> None:
        async with serving() as stage:
            fields = {"topic": "t", "brokerName": "a", "brokerAddr": "x:1", "clusterName": "C"}
            answer = await stage.ask(code, fields, b" " * 70_000)
            assert answer.code == ResponseCode.INVALID_PARAMETER
            assert "65536 are allowed" in (answer.remark or "")

    asyncio.run(scenario())


@pytest.mark.parametrize("member", ["perm", "topicSysFlag"])
def test_a_topic_whose_numbers_no_client_could_read_is_refused(member: str) -> None:
    """Goal: one of 2^40 would be in every route of the topic, and Java clients could read none of them."""

    async def scenario() -> None:
        async with serving() as stage:
            await stage.register("broker-a")
            queues = {
                "brokerName": "broker-a",
                "readQueueNums": 1,
                "writeQueueNums": 1,
                "perm": 6,
                member: 2**40,
            }
            body = dumps({"queueDatas": [queues]})
            answer = await stage.ask(RequestCode.REGISTER_TOPIC_IN_NAMESRV, TopicRequest("odd"), body)
            assert answer.code == ResponseCode.INVALID_PARAMETER
            assert await stage.route("odd") is None

    asyncio.run(scenario())
