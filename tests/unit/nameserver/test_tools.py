"""What clients and tools ask of a name server, over real sockets."""

import asyncio
from pathlib import Path

import pytest

from bolide.model.errors import ConfigError
from bolide.model.topic import TopicConfig
from bolide.nameserver.app import NameServer
from bolide.nameserver.config import NameServerConfig
from bolide.nameserver.registry import HANDLERS
from bolide.wire.bodies.properties import parse_settings
from bolide.wire.bodies.route import TopicList, decode_kv_table
from bolide.wire.codes import REQUESTS, RequestCode, ResponseCode
from tests.unit.nameserver.stage import HeldClock, Stage, serving

ORDERS = TopicConfig("orders", 4, 4)


async def topics(stage: Stage, code: RequestCode, **fields: str) -> set[str]:
    answer = await stage.ask(code, fields)
    assert answer.code == ResponseCode.SUCCESS, answer.remark
    return set(TopicList.decode(answer.body).topics)


def test_every_code_of_a_name_server_has_its_handler() -> None:
    codes = {100, 101, 102, 103, 104, 105, 106, 205, 206, 216, 217, 219, 224, 304, 311, 312, 313}
    assert set(HANDLERS) == codes | {318, 319, 322, 327, 901, 904}
    assert set(HANDLERS) <= set(REQUESTS)


def test_topic_lists() -> None:
    async def scenario() -> None:
        async with serving() as stage:
            flags = [TopicConfig("unit", sys_flag=1), TopicConfig("sub", sys_flag=2)]
            await stage.register("broker-a", ORDERS, *flags)
            everything = {"orders", "unit", "sub", "SELF_TEST_TOPIC", "TBW102"}
            assert await topics(stage, RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER) == everything
            assert await topics(stage, RequestCode.GET_TOPICS_BY_CLUSTER, cluster="C") == everything
            assert await topics(stage, RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS) == {"C", "broker-a"}
            assert await topics(stage, RequestCode.GET_UNIT_TOPIC_LIST) == {"unit"}
            assert await topics(stage, RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST) == {"sub"}
            assert await topics(stage, RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST) == {"sub"}
            unknown = await stage.ask(RequestCode.GET_TOPICS_BY_CLUSTER, {"cluster": "none"})
            assert unknown.code == ResponseCode.SYSTEM_ERROR

    asyncio.run(scenario())


def test_topic_lists_can_be_switched_off() -> None:
    async def scenario() -> None:
        config = NameServerConfig(enable_all_topic_list=False, enable_topic_list=False)
        async with serving(config) as stage:
            codes = (RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, RequestCode.GET_UNIT_TOPIC_LIST)
            for code in codes:
                assert (await stage.ask(code)).code == ResponseCode.SYSTEM_ERROR

    asyncio.run(scenario())


def test_a_deleted_topic_has_no_route() -> None:
    async def scenario() -> None:
        async with serving() as stage:
            await stage.register("broker-a", ORDERS)
            await stage.ask(RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": "orders", "clusterName": "other"})
            assert await stage.route("orders") is not None
            await stage.ask(RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": "orders"})
            assert await stage.route("orders") is None

    asyncio.run(scenario())


def test_a_route_request_without_a_topic_finds_none() -> None:
    async def scenario() -> None:
        async with serving() as stage:
            assert (await stage.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC)).code == ResponseCode.TOPIC_NOT_EXIST

    asyncio.run(scenario())


def test_an_unknown_code_is_answered_with_3() -> None:
    async def scenario() -> None:
        async with serving() as stage:
            answer = await stage.ask(4711)
            assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
            assert "4711" in (answer.remark or "")

    asyncio.run(scenario())


def test_the_order_of_a_topic_is_in_its_route_only_when_switched_on() -> None:
    async def scenario() -> None:
        async with serving() as stage:
            await stage.register("broker-a", ORDERS)
            put = {"namespace": "ORDER_TOPIC_CONFIG", "key": "orders", "value": "broker-a:4"}
            await stage.ask(RequestCode.PUT_KV_CONFIG, put)
            route = await stage.route("orders")
            assert route is not None
            assert route.order_config is None
            update = await stage.ask(RequestCode.UPDATE_NAMESRV_CONFIG, body=b"orderMessageEnable=true\n")
            assert update.code == ResponseCode.SUCCESS
            route = await stage.route("orders")
            assert route is not None
            assert route.order_config == "broker-a:4"

    asyncio.run(scenario())


def test_a_name_server_may_keep_quiet_until_its_brokers_had_time_to_come() -> None:
    async def scenario() -> None:
        clock = HeldClock()
        config = NameServerConfig(need_wait_for_service=True, wait_seconds_for_service=45)
        async with serving(config, clock) as stage:
            await stage.register("broker-a", ORDERS)
            early = await stage.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "orders"})
            assert early.code == ResponseCode.SYSTEM_ERROR
            clock.ms += 45_000
            assert await stage.route("orders") is not None

    asyncio.run(scenario())


def test_key_value_settings_survive_a_restart(tmp_path: Path) -> None:
    config = NameServerConfig(kv_config_path=str(tmp_path / "namesrv" / "kvConfig.json"))

    async def write() -> None:
        async with serving(config) as stage:
            for key, value in (("a", "1"), ("b", "zwei ü")):
                put = {"namespace": "shelf", "key": key, "value": value}
                assert (await stage.ask(RequestCode.PUT_KV_CONFIG, put)).code == ResponseCode.SUCCESS
            await stage.ask(RequestCode.DELETE_KV_CONFIG, {"namespace": "shelf", "key": "a"})
            await stage.ask(RequestCode.DELETE_KV_CONFIG, {"namespace": "shelf", "key": "never"})

    async def read() -> None:
        async with serving(config) as stage:
            got = await stage.ask(RequestCode.GET_KV_CONFIG, {"namespace": "shelf", "key": "b"})
            assert got.fields == {"value": "zwei ü"}
            gone = await stage.ask(RequestCode.GET_KV_CONFIG, {"namespace": "shelf", "key": "a"})
            assert gone.code == ResponseCode.QUERY_NOT_FOUND
            all_of = await stage.ask(RequestCode.GET_KVLIST_BY_NAMESPACE, {"namespace": "shelf"})
            assert decode_kv_table(all_of.body) == {"b": "zwei ü"}
            nothing = await stage.ask(RequestCode.GET_KVLIST_BY_NAMESPACE, {"namespace": "empty"})
            assert nothing.code == ResponseCode.QUERY_NOT_FOUND

    asyncio.run(write())
    asyncio.run(read())


def test_settings_are_shown_with_the_keys_of_the_original() -> None:
    async def scenario() -> None:
        async with serving() as stage:
            shown = parse_settings((await stage.ask(RequestCode.GET_NAMESRV_CONFIG)).body)
            assert shown["orderMessageEnable"] == "false"
            assert shown["scanNotActiveBrokerInterval"] == "5000"

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("text", "code", "reason"),
    [
        (b"listenPort=1", ResponseCode.NO_PERMISSION, "set it and restart"),
        (b"kvConfigPath=/etc/passwd", ResponseCode.NO_PERMISSION, "set it and restart"),
        (b"orderMessageEnabled=true", ResponseCode.SYSTEM_ERROR, "orderMessageEnable"),
        (b"orderMessageEnable=perhaps", ResponseCode.SYSTEM_ERROR, "true or false"),
        (b"serverWorkerThreads=9", ResponseCode.SYSTEM_ERROR, "unknown setting"),
        (b"", ResponseCode.INVALID_PARAMETER, "no setting"),
        (b"nonsense", ResponseCode.INVALID_PARAMETER, "key=value"),
        (b"enableTopicList=false\nlistenPort=1", ResponseCode.NO_PERMISSION, "set it and restart"),
    ],
)
def test_a_setting_that_cannot_be_changed_is_refused_with_the_reason(
    text: bytes, code: ResponseCode, reason: str
) -> None:
    async def scenario() -> None:
        async with serving() as stage:
            before = stage.server.config.as_settings()
            answer = await stage.ask(RequestCode.UPDATE_NAMESRV_CONFIG, body=text)
            assert answer.code == code
            assert reason in (answer.remark or "")
            assert stage.server.config.as_settings() == before

    asyncio.run(scenario())


def test_a_port_in_use_is_a_clear_error() -> None:
    async def scenario() -> None:
        async with serving() as stage:
            second = NameServer(NameServerConfig(host="127.0.0.1", port=stage.server.port))
            with pytest.raises(ConfigError, match="already in use"):
                await second.start()

    asyncio.run(scenario())
