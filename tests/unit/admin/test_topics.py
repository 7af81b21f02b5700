"""What an operator does with topics, against a real server."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

import pytest

from bolide import Message, Producer
from bolide.admin.cluster import broker_state, cluster_info, masters
from bolide.admin.connection import AdminConnection
from bolide.admin.topics import (
    TopicChange,
    create_topic,
    delete_topic,
    describe_topic,
    list_topics,
    topic_route,
    update_topic,
)
from bolide.model.errors import ConnectionLost, InvalidRequest, RouteNotFound
from bolide.model.topic import Permission, TopicConfig
from bolide.testing import EmbeddedServer
from tests.peers.ports import free_port

T = TypeVar("T")


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer() as server:
        yield server


def ask(address: str, work: Callable[[AdminConnection], Awaitable[T]]) -> T:
    async def run() -> T:
        async with AdminConnection(address) as servers:
            return await work(servers)

    return asyncio.run(run())


def test_a_created_topic_can_be_used_when_the_call_returns(server: EmbeddedServer) -> None:
    config = TopicConfig("created", read_queues=3, write_queues=2, perm=Permission.READ_WRITE)
    names = ask(server.nameserver, lambda servers: create_topic(servers, config))
    assert names == ["broker-a"]
    route = ask(server.nameserver, lambda servers: topic_route(servers, "created"))
    assert [(queue.read_queues, queue.write_queues, queue.perm) for queue in route.queues] == [(3, 2, 6)]
    assert "created" in ask(server.nameserver, list_topics)


def test_a_description_has_settings_and_the_state_of_every_queue(server: EmbeddedServer) -> None:
    ask(server.nameserver, lambda servers: create_topic(servers, TopicConfig("told", 2, 2)))
    with Producer(server.nameserver, group="tests") as producer:
        receipts = [producer.send(Message("told", b"x")) for _ in range(3)]
    found = ask(server.nameserver, lambda servers: describe_topic(servers, "told"))
    assert found.configs["broker-a"].read_queues == 2
    assert found.addresses == {"broker-a": server.broker}
    counts = {queue.queue_id: queue.messages for queue in found.queues}
    assert counts == {0: 0, 1: 0} | {
        queue: sum(receipt.queue.queue_id == queue for receipt in receipts)
        for queue in {receipt.queue.queue_id for receipt in receipts}
    }
    assert found.messages == 3
    assert all(queue.bounds.last_stored_ms > 0 for queue in found.queues if queue.messages)


def test_an_update_changes_only_what_it_names(server: EmbeddedServer) -> None:
    config = TopicConfig("updated", read_queues=4, write_queues=4, order=True)
    ask(server.nameserver, lambda servers: create_topic(servers, config))
    ask(server.nameserver, lambda servers: update_topic(servers, "updated", TopicChange(write_queues=2)))
    found = ask(server.nameserver, lambda servers: describe_topic(servers, "updated"))
    changed = found.configs["broker-a"]
    assert (changed.read_queues, changed.write_queues, changed.perm, changed.order) == (4, 2, 6, True)
    closed = TopicChange(perm=Permission.READ)
    assert ask(server.nameserver, lambda servers: update_topic(servers, "updated", closed)) == {
        "broker-a": TopicConfig("updated", 4, 2, perm=Permission.READ, order=True)
    }


def test_a_deleted_topic_is_gone_for_clients_at_once(server: EmbeddedServer) -> None:
    ask(server.nameserver, lambda servers: create_topic(servers, TopicConfig("deleted")))
    assert ask(server.nameserver, lambda servers: delete_topic(servers, "deleted")) == ["broker-a"]
    assert "deleted" not in ask(server.nameserver, list_topics)
    with pytest.raises(RouteNotFound, match="bolide topic create deleted"):
        ask(server.nameserver, lambda servers: describe_topic(servers, "deleted"))


def test_the_list_hides_what_rocketmq_makes_for_itself(server: EmbeddedServer) -> None:
    ask(server.nameserver, lambda servers: create_topic(servers, TopicConfig("mine")))
    own = ask(server.nameserver, list_topics)
    everything = ask(server.nameserver, lambda servers: list_topics(servers, system=True))
    hidden = {"TBW102", "DefaultCluster", "broker-a", "DefaultCluster_REPLY_TOPIC"}
    assert "mine" in own
    assert hidden.isdisjoint(own)
    assert hidden < set(everything)


@pytest.mark.parametrize("name", ["", "a/b", "../x", "a" * 128, "tab\t"])
def test_an_illegal_name_never_leaves_this_side(server: EmbeddedServer, name: str) -> None:
    with pytest.raises(InvalidRequest):
        ask(server.nameserver, lambda servers: create_topic(servers, TopicConfig(name)))
    with pytest.raises(InvalidRequest):
        ask(server.nameserver, lambda servers: topic_route(servers, name))


@pytest.mark.parametrize(("read", "write"), [(0, 1), (1, 70_000)])
def test_queue_numbers_have_limits(server: EmbeddedServer, read: int, write: int) -> None:
    with pytest.raises(InvalidRequest, match=r"queues|QueueNums"):
        ask(server.nameserver, lambda servers: create_topic(servers, TopicConfig("limits", read, write)))


def test_clusters_and_brokers_are_told_and_unknown_ones_named(server: EmbeddedServer) -> None:
    info = ask(server.nameserver, cluster_info)
    assert info.clusters == {"DefaultCluster": ["broker-a"]}
    state = ask(server.nameserver, lambda servers: broker_state(servers, server.broker))
    assert state["brokerActive"] == "true"
    with pytest.raises(RouteNotFound, match="broker-a"):
        ask(server.nameserver, lambda servers: masters(servers, broker="broker-z"))
    with pytest.raises(RouteNotFound, match="DefaultCluster"):
        ask(server.nameserver, lambda servers: masters(servers, cluster="Other"))


def test_one_name_server_that_is_down_is_no_obstacle(server: EmbeddedServer) -> None:
    addresses = f"127.0.0.1:{free_port()};{server.nameserver}"
    ask(addresses, lambda servers: create_topic(servers, TopicConfig("reached")))
    assert "reached" in ask(addresses, list_topics)
    ask(addresses, lambda servers: delete_topic(servers, "reached"))


def test_no_name_server_at_all_is_said_with_every_address() -> None:
    first, second = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    with pytest.raises(ConnectionLost, match=f"{first}.*{second}"):
        ask(f"{first};{second}", list_topics)
