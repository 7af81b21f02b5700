"""Clients of one instance name are one client to the brokers (CM-04); others are on their own."""

import asyncio
from typing import Any

import pytest

import bolide
from bolide.aio import (
    ClientNotRunning,
    ClientOptions,
    ConfigError,
    LitePullConsumer,
    Message,
    Producer,
    PullConsumer,
    PushConsumer,
)
from bolide.client import hub
from bolide.net.link import Link
from bolide.testing import AsyncEmbeddedServer
from bolide.wire.codes import RequestCode, ResponseCode
from bolide.wire.command import Command
from tests.unit.client.scripted import Cluster, cluster, wait_for
from tests.unit.client.test_blocking import running_cluster


async def consumer_of(c: Cluster, group: str, **options: Any) -> PushConsumer:
    consumer = PushConsumer(c.nameserver.address, group=group, listener=print, **options)
    await consumer.subscribe("orders")
    return consumer


def groups_of(beat: dict[str, Any]) -> tuple[list[str], list[str]]:
    return tuple(
        sorted(one["groupName"] for one in beat[kind]) for kind in ("producerDataSet", "consumerDataSet")
    )  # type: ignore[return-value]


def test_clients_of_one_name_share_one_connection_and_their_heartbeat_has_all_groups() -> None:
    """CM-04"""

    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 2)
            address, broker = c.nameserver.address, c.brokers[0]
            names: ClientOptions = {"instance_name": "shop", "unit_name": "u1"}
            async with (
                Producer(address, group="p", **names) as producer,
                await consumer_of(c, "g", **names),
                await consumer_of(c, "h", **names),
                PullConsumer(address, **names) as reader,
            ):
                await producer.send(Message("orders", b"x"))
                assert len(await reader.queues("orders")) == 2
                assert (len(broker.links), len(c.nameserver.links)) == (1, 1)
                assert groups_of(broker.heartbeats[-1]) == (["p"], ["g", "h"])
                assert {beat["clientID"] for beat in broker.heartbeats} == {"127.0.0.1@shop@u1"}
                assert broker.members == ["127.0.0.1@shop@u1"]
            assert hub._hubs == {}
            await wait_for(lambda: not broker.links and not c.nameserver.links, "the connections are closed")

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "other", [{}, {"instance_name": "other"}, {"instance_name": "shop", "unit_name": "u"}], ids=str
)
def test_clients_of_different_names_and_those_without_one_stay_apart(other: ClientOptions) -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            one = Producer(c.nameserver.address, instance_name="shop" if other else None)
            async with one, Producer(c.nameserver.address, **other) as two:
                await one.send(Message("orders", b"x"))
                await two.send(Message("orders", b"x"))
                assert len(c.brokers[0].links) == 2
                assert one._instance.client_id != two._instance.client_id

    asyncio.run(scenario())


def test_who_leaves_takes_its_group_along_and_the_others_go_on() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            broker = c.brokers[0]
            gone: list[dict[str, str]] = []
            answer = broker._unregister

            def unregister(link: Link, request: Command) -> Command:
                gone.append(request.fields)
                return answer(link, request)

            broker._unregister = unregister  # type: ignore[method-assign]
            await broker.stop()
            await broker.start()
            first = Producer(c.nameserver.address, group="p", instance_name="shop")
            second = Producer(c.nameserver.address, group="p", instance_name="shop")
            consumer = await consumer_of(c, "g", instance_name="shop")
            await first.start()
            await second.start()
            await consumer.start()
            await first.send(Message("orders", b"x"))
            await consumer.close()
            assert gone == [{"clientID": "127.0.0.1@shop", "consumerGroup": "g"}]
            await first.close()  # the group has another producer here
            assert len(gone) == 1
            (link,) = broker.links
            await second.send(Message("orders", b"x"))
            await second._instance.beat_now()
            assert groups_of(broker.heartbeats[-1]) == (["p"], [])
            assert broker.links == {link}
            with pytest.raises(ClientNotRunning, match="closed"):
                await first.send(Message("orders", b"x"))
            await second.close()
            assert gone[1:] == [{"clientID": "127.0.0.1@shop", "producerGroup": "p"}]

    asyncio.run(scenario())


def test_a_second_consumer_of_a_group_under_the_same_name_is_refused() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            async with await consumer_of(c, "g", instance_name="shop"):
                second = await consumer_of(c, "g", instance_name="shop")
                with pytest.raises(ConfigError, match=r"'g' was created already.*another instance_name"):
                    await second.start()
                await second.close()
                async with await consumer_of(c, "g", instance_name="other"):
                    assert len(c.brokers[0].members) == 2
            async with await consumer_of(c, "g", instance_name="shop"):  # the first has left
                pass

    asyncio.run(scenario())


@pytest.mark.parametrize("kind", [LitePullConsumer, PullConsumer])
def test_nor_does_one_get_in_that_subscribes_after_its_start(
    kind: type[LitePullConsumer | PullConsumer],
) -> None:
    """Also when the other one has come later, and when that is one that pushes."""

    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 4)

            def member(**options: Any) -> LitePullConsumer | PullConsumer:
                return kind(c.nameserver.address, group="g", **options)

            async with member(instance_name="shop") as late, member(instance_name="shop") as first:
                await first.subscribe("orders")
                for _ in range(2):
                    with pytest.raises(ConfigError, match=r"'g' was created already.*another instance_name"):
                        await late.subscribe("orders")
                await late.close()
                async with member(instance_name="other") as other:
                    await other.subscribe("orders")
                    assert len(c.brokers[0].members) == 2
            async with member(instance_name="shop") as late:
                async with await consumer_of(c, "g", instance_name="shop"):
                    with pytest.raises(ConfigError, match="'g' was created already"):
                        await late.subscribe("orders")
                await late.subscribe("orders")  # the other one has left

    asyncio.run(scenario())


def test_notices_and_requests_of_brokers_go_to_the_member_they_are_for() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            heard: list[str] = []

            def serving(group: str) -> hub.Serve:
                async def answer(request: Command) -> Command:
                    return request.answer(remark=f"from {group}")

                def serve(link: Link, request: Command) -> Any:
                    return answer(request) if request.fields["producerGroup"] == group else None

                return serve

            producers = [
                Producer(c.nameserver.address, group=group, instance_name="shop") for group in ("p", "q")
            ]
            code = RequestCode.CHECK_TRANSACTION_STATE
            for group, producer in zip("pq", producers, strict=True):
                producer._instance.act_as_producer(group, {code: serving(group)})
            consumers = [await consumer_of(c, group, instance_name="shop") for group in ("g", "h")]
            for consumer in consumers:
                group = consumer._group
                consumer._instance._member.on_change = lambda group=group: heard.append(group)
            async with producers[0], producers[1], consumers[0], consumers[1]:
                await producers[0].send(Message("orders", b"x"))
                (link,) = c.brokers[0].links
                for group in ("q", "p"):
                    answer = await link.call(Command(code, {"producerGroup": group}), 5_000)
                    assert answer.remark == f"from {group}"
                answer = await link.call(Command(code, {"producerGroup": "nobody"}), 5_000)
                assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
                c.brokers[0].notify_members("h")
                c.brokers[0].notify_members("nobody")
                await wait_for(lambda: heard, "the notice")
                assert heard == ["h"]

    asyncio.run(scenario())


def test_a_consumer_that_joins_later_is_a_member_before_anything_is_asked_in_its_name() -> None:
    """With a real broker: it shares out queues only to those that it knows."""

    async def scenario() -> None:
        async with AsyncEmbeddedServer() as server:
            producer = Producer(server.nameserver, instance_name="shop")
            async with producer:
                await producer.send(Message("orders", b"x"))
                got: list[bytes] = []
                for group in ("g", "h"):
                    consumer = PushConsumer(
                        server.nameserver,
                        group=group,
                        listener=lambda messages: got.extend(one.body for one in messages),
                        start_from="first",
                        instance_name="shop",
                    )
                    await consumer.subscribe("orders")
                    async with consumer:
                        assert len(consumer.queues) >= 4
                        await wait_for(lambda: got == [b"x"], "the message")
                    got.clear()
                await producer.send(Message("orders", b"x"))

    asyncio.run(scenario())


@pytest.mark.parametrize("name", ["", "a b", "a@b", "../a", "x" * 65, 5])
def test_a_name_that_is_none_is_refused_where_it_is_given(name: Any) -> None:
    for argument in ("instance_name", "unit_name"):
        with pytest.raises(ConfigError, match=argument):
            Producer("127.0.0.1:9876", **{argument: name})
    with pytest.raises(TypeError, match="no argument 'instancename'"):
        Producer("127.0.0.1:9876", instancename="x")  # type: ignore[call-arg]


def test_blocking_clients_share_too() -> None:
    with (
        running_cluster() as c,
        bolide.Producer(c.nameserver.address, instance_name="shop") as one,
        bolide.Producer(c.nameserver.address, group="q", instance_name="shop") as two,
    ):
        one.send(bolide.Message("orders", b"x"))
        two.send(bolide.Message("orders", b"x"))
        assert len(c.brokers[0].links) == 1


def test_clients_that_nobody_closed_do_not_keep_their_loop() -> None:
    async def forgotten() -> None:
        async with cluster() as c:
            await Producer(c.nameserver.address, instance_name="shop").start()

    async def next_one() -> None:
        async with cluster() as c, Producer(c.nameserver.address, instance_name="shop"):
            assert len(hub._hubs) == 1

    asyncio.run(forgotten())
    asyncio.run(next_one())
    assert hub._hubs == {}
