"""Registrations of many topics: they take many turns of the event loop, and whatever happens in between is in order."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from bolide.machines import routes
from bolide.machines.routes import RouteTable
from bolide.model import limits
from bolide.model.data_version import DataVersion
from bolide.model.errors import ConnectionLost
from bolide.model.topic import TopicConfig
from bolide.nameserver.config import NameServerConfig
from bolide.wire.bodies import registration_blocks, registration_text, registration_topics
from bolide.wire.bodies.registration import RegistrationBody
from bolide.wire.bodies.route import QueueData, TopicList
from bolide.wire.codes import RequestCode, ResponseCode
from bolide.wire.headers.route import BrokerNameRequest, BrokerRequest, RegisterBroker
from tests.unit.nameserver.stage import BUILT_IN, Stage, callers, eventually, serving
from tests.unit.net.turns import counted_by_turn

MANY = 4 * routes.STEP_TOPICS


def topics(queues: int = 4, count: int = MANY) -> list[TopicConfig]:
    return [TopicConfig(f"t{number}", queues, queues) for number in range(count)]


async def known(stage: Stage) -> set[str]:
    answer = await stage.ask(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
    return set(TopicList.decode(answer.body).topics)


def before_step(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, number: int, act: Callable[[], object]
) -> None:
    """Do something before the function is called for the `number`th time."""
    function, calls = getattr(owner, name), 0

    def called(*args: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == number:
            act()
        return function(*args, **options)

    monkeypatch.setattr(owner, name, called)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("count", [MANY, 2 * MANY])
def test_what_a_turn_takes_in_does_not_grow_with_the_number_of_topics(compressed: bool, count: int) -> None:
    async def scenario() -> None:
        async with serving() as stage:
            with (
                counted_by_turn(registration_topics, "told") as decoded,
                counted_by_turn(RouteTable, "_put") as taken,
            ):
                answer = await stage.register("broker-a", *topics(count=count), compressed=compressed)
            assert answer.code == ResponseCode.SUCCESS
            assert decoded.total == taken.total == count + len(BUILT_IN)
            assert decoded.most <= max(registration_blocks.STEP_BLOCKS, registration_text.STEP_MEMBERS)
            assert taken.most <= routes.STEP_TOPICS

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("owner", "name", "number"),
    [
        (registration_topics, "told", 400),
        (RouteTable, "_update_topics", 1),
        (RouteTable, "_update_topics", 3),
    ],
)
def test_a_connection_that_closes_in_between_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, number: int
) -> None:
    async def scenario() -> None:
        async with serving() as stage, callers(1) as (broker,):
            await broker.link(stage.address)

            def cut() -> None:
                for link in list(stage.server._server.links):
                    link.abort()

            before_step(monkeypatch, owner, name, number, cut)
            with pytest.raises(ConnectionLost):
                await stage.register("broker-a", *topics(), caller=broker)
            async with asyncio.timeout(5):
                await stage.register("broker-b")  # comes after it, when it has ended
            assert await stage.brokers() == {"broker-b"}
            assert await known(stage) == {topic.name for topic in BUILT_IN}

    asyncio.run(scenario())


def test_of_two_registrations_in_a_row_the_second_counts() -> None:
    async def scenario() -> None:
        async with serving() as stage:
            await asyncio.gather(
                stage.register("broker-a", *topics(4), counter=1),
                stage.register("broker-a", *topics(8), counter=2),
            )
            for name in ("t0", f"t{MANY - 1}"):
                route = await stage.route(name)
                assert route is not None
                assert route.queues == (QueueData("broker-a", 8, 8, 6),)

    asyncio.run(scenario())


def test_a_broker_that_leaves_behind_its_registration_has_left() -> None:
    async def scenario() -> None:
        async with serving() as stage:
            goodbye = BrokerRequest("broker-a", "127.0.0.1:10911", "C", 0)
            await asyncio.gather(
                stage.register("broker-a", *topics()),
                stage.ask(RequestCode.UNREGISTER_BROKER, goodbye),
            )
            assert await stage.brokers() == set()
            assert await known(stage) == set()

    asyncio.run(scenario())


def test_a_broker_that_leaves_and_comes_back_is_there() -> None:
    async def scenario() -> None:
        async with serving() as stage:
            goodbye = BrokerRequest("broker-a", "127.0.0.1:10911", "C", 0)
            await asyncio.gather(
                stage.register("broker-a", *topics()),
                stage.ask(RequestCode.UNREGISTER_BROKER, goodbye),
                stage.register("broker-a", *topics()),
            )
            assert len(await known(stage)) == MANY + len(BUILT_IN)

    asyncio.run(scenario())


def test_a_permission_that_is_wiped_behind_a_registration_is_wiped_of_all_its_topics() -> None:
    async def scenario() -> None:
        async with serving() as stage:
            _, wiped = await asyncio.gather(
                stage.register("broker-a", *topics()),
                stage.ask(RequestCode.WIPE_WRITE_PERM_OF_BROKER, BrokerNameRequest("broker-a")),
            )
            assert wiped.fields["wipeTopicCount"] == str(MANY + len(BUILT_IN))
            route = await stage.route(f"t{MANY - 1}")
            assert route is not None
            assert route.queues[0].perm == 4

    asyncio.run(scenario())


def test_a_registration_that_is_refused_at_its_last_topic_changes_nothing() -> None:
    async def scenario() -> None:
        async with serving() as stage:
            await stage.register("broker-a", *topics(4))
            impossible = (*topics(8), TopicConfig("new", 8, 8), TopicConfig("last"))
            body = RegistrationBody(DataVersion(counter=2), impossible).encode()
            body = body.replace(b"last", b"x" * 300)
            header = RegisterBroker("broker-a", "127.0.0.1:10911", "C")
            answer = await stage.ask(RequestCode.REGISTER_BROKER, header, body)
            assert answer.code == ResponseCode.INVALID_PARAMETER
            route = await stage.route("t0")
            assert route is not None
            assert route.queues[0].read_queues == 4
            assert "new" not in await known(stage)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("limit", "value"),
    [
        ("CHANGES_BYTES_MAX", 300_000),
        ("CHANGES_PER_CONNECTION_BYTES_MAX", 300_000),
        ("CHANGES_PER_CONNECTION_MAX", 2),
    ],
)
def test_registrations_that_would_take_too_much_memory_while_they_wait_are_refused(
    limit: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, limit, value)

    async def scenario() -> None:
        async with serving() as stage:
            answers = await asyncio.gather(*(stage.register("broker-a", *topics()) for _ in range(5)))
            codes = [answer.code for answer in answers]
            assert codes[0] == ResponseCode.SUCCESS
            assert ResponseCode.SYSTEM_BUSY in codes
            assert (await stage.register("broker-a", *topics())).code == ResponseCode.SUCCESS

    asyncio.run(scenario())


def test_a_small_registration_waits_for_a_step_of_each_large_one_and_not_for_its_end() -> None:
    async def scenario() -> None:
        async with serving() as stage, callers(4) as hogs:
            large = [
                asyncio.create_task(stage.register(f"hog-{number}", *topics(), caller=caller))
                for number, caller in enumerate(hogs)
            ]
            await eventually(lambda: len(stage.server._state.changes._waiting) == len(hogs))
            with counted_by_turn(stage.server._state.changes, "_step") as steps:
                assert (await stage.register("broker-a")).code == ResponseCode.SUCCESS
            assert not any(task.done() for task in large)
            assert steps.most <= 1
            assert steps.total <= 5 * (len(hogs) + 1)
            for answer in await asyncio.gather(*large):
                assert answer.code == ResponseCode.SUCCESS

    asyncio.run(scenario())


def test_a_small_registration_is_heard_however_much_others_have_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "CHANGES_BYTES_MAX", 100)

    async def scenario() -> None:
        async with serving() as stage, callers(2) as (hog, another):
            first = asyncio.create_task(stage.register("hog", *topics(count=30 * MANY), caller=hog))
            await eventually(lambda: stage.server._state.changes._bytes)
            busy = await stage.register("another", *topics(), caller=another)
            assert busy.code == ResponseCode.SYSTEM_BUSY
            assert (await stage.register("broker-a", *topics(count=10))).code == ResponseCode.SUCCESS
            assert not first.done()
            await first

    asyncio.run(scenario())


def test_what_a_closed_connection_leaves_behind_is_swept_out_in_steps() -> None:
    async def scenario() -> None:
        config = NameServerConfig(scan_interval_ms=3_600_000)
        async with serving(config) as stage, callers(1) as (broker,):
            await stage.register("broker-a", *topics(), caller=broker)
            with counted_by_turn(RouteTable, "_drop") as dropped:
                await broker.close()
                await eventually(lambda: dropped.total == MANY + len(BUILT_IN))
            assert dropped.most <= routes.STEP_TOPICS
            assert await known(stage) == set()

    asyncio.run(scenario())
