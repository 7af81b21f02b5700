"""Consuming in a group: nothing is lost, shares follow the members, offsets follow the work."""

import asyncio
import logging
import threading
from collections import Counter

import pytest

from bolide.aio import PushConsumer, StoredMessage
from bolide.client import assignment
from bolide.client.held import HeldQueue
from bolide.client.reader import Reading, read_queue
from bolide.model.errors import ConfigError, ConnectionLost
from bolide.wire.codes import RequestCode
from tests.unit.client.consuming import Collector, consumer_of, on_cluster
from tests.unit.client.scripted import Cluster, wait_for


def test_every_message_of_every_queue_reaches_the_listener_and_is_committed_at_the_end() -> None:
    """CO-10."""

    async def scenario(c: Cluster) -> None:
        (broker,) = c.brokers
        for number in range(100):
            broker.store("orders", number % 4, b"%d" % number)
        collector = Collector()
        async with await consumer_of(c, collector, start_from="first"):
            await wait_for(lambda: len(collector.bodies) == 100, "all stored messages")
            broker.store("orders", 2, b"new")
            await wait_for(lambda: b"new" in collector.bodies, "a message that arrives while a pull is held")
        assert Counter(collector.bodies) == Counter([b"%d" % n for n in range(100)] + [b"new"])
        assert {q: broker.offsets["g", "orders", q] for q in range(4)} == {0: 25, 1: 25, 2: 26, 3: 25}
        assert broker.members == []

    on_cluster(scenario)


def test_a_plain_function_runs_in_threads() -> None:
    async def scenario(c: Cluster) -> None:
        c.brokers[0].store("orders", 0, b"x")
        seen: list[bytes] = []
        async with await consumer_of(
            c, lambda messages: seen.extend(m.body for m in messages), start_from="first"
        ):
            await wait_for(lambda: seen == [b"x"], "the message")

    on_cluster(scenario)


def test_two_members_share_the_queues_and_one_takes_over_when_the_other_leaves() -> None:
    async def scenario(c: Cluster) -> None:
        broker = c.brokers[0]
        first, second = Collector(), Collector()
        async with await consumer_of(c, first, start_from="first") as one:
            assert len([q for q in one.queues if q.topic == "orders"]) == 4
            async with await consumer_of(c, second, start_from="first") as two:
                broker.notify_members("g")
                await wait_for(
                    lambda: [len([q for q in m.queues if q.topic == "orders"]) for m in (one, two)] == [2, 2],
                    "two queues each",
                )
                for number in range(40):
                    broker.store("orders", number % 4, b"%d" % number)
                await wait_for(lambda: len(first.bodies) + len(second.bodies) == 40, "all messages, once")
                assert len(first.bodies) == len(second.bodies) == 20
            broker.notify_members("g")
            await wait_for(lambda: len([q for q in one.queues if q.topic == "orders"]) == 4, "all four again")
            for number in range(40, 80):
                broker.store("orders", number % 4, b"%d" % number)
            await wait_for(lambda: len(first.bodies) == 60, "the rest")
        assert Counter(first.bodies + second.bodies) == Counter(b"%d" % n for n in range(80))

    on_cluster(scenario)


def test_closing_waits_for_the_listener_and_commits_what_it_finished() -> None:
    """CO-11."""

    async def scenario(c: Cluster) -> None:
        broker = c.brokers[0]
        broker.store("orders", 0, b"slow")
        begun, may_end = asyncio.Event(), asyncio.Event()

        async def listener(messages: list[StoredMessage]) -> None:
            begun.set()
            await may_end.wait()

        consumer = await consumer_of(c, listener, start_from="first")
        await consumer.start()
        await begun.wait()
        closing = asyncio.ensure_future(consumer.close())
        await wait_for(
            lambda: not any(task.get_name() == "rebalance" for task in asyncio.all_tasks()), "closing"
        )
        assert not closing.done()
        may_end.set()
        await closing
        assert broker.offsets["g", "orders", 0] == 1

    on_cluster(scenario)


def test_tags_are_compared_as_text_after_the_broker_compared_hashes() -> None:
    """FI-02."""

    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        for tag in ("Aa", "BB", "C"):  # "Aa" and "BB" have the same hash; this broker filters nothing at all
            broker.store("orders", 0, tag.encode(), f"TAGS\x01{tag}\x02".encode())
        broker.store("orders", 0, b"none")
        broker.store("orders", 0, b"last", b"TAGS\x01C\x02")
        consumer = PushConsumer(c.nameserver.address, group="g", listener=collector, start_from="first")
        await consumer.subscribe("orders", tags="Aa || C")
        async with consumer:
            await wait_for(lambda: b"last" in collector.bodies, "the last")
        assert collector.bodies == [b"Aa", b"C", b"last"]
        assert broker.offsets["g", "orders", 0] == 5
        heartbeat = broker.heartbeats[0]["consumerDataSet"][0]  # type: ignore[index]
        subscription = {item["topic"]: item for item in heartbeat["subscriptionDataSet"]}["orders"]
        assert (subscription["tagsSet"], subscription["codeSet"]) == (["Aa", "C"], [67, 2112])

    on_cluster(scenario)


def test_a_group_begins_where_it_is_told_and_goes_on_where_it_was() -> None:
    """CO-07."""

    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        for number in range(5):
            broker.store("orders", 0, b"%d" % number)
        async with await consumer_of(c, collector, start_from="last"):
            broker.store("orders", 0, b"5")
            await wait_for(lambda: collector.bodies == [b"5"], "only the new one")
        broker.offsets["g", "orders", 0] = 3
        async with await consumer_of(c, collector, start_from="last"):
            await wait_for(lambda: len(collector.bodies) == 4, "from the group's offset")
        assert collector.bodies == [b"5", b"3", b"4", b"5"]

    on_cluster(scenario)


def test_an_offset_before_the_first_message_goes_on_at_the_first() -> None:
    """RD-08."""

    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        for number in range(10):
            broker.store("orders", 0, b"%d" % number)
        broker.first["orders", 0] = 6
        broker.offsets["g", "orders", 0] = 2
        async with await consumer_of(c, collector):
            await wait_for(lambda: len(collector.bodies) == 4, "what is left")
        assert collector.bodies == [b"6", b"7", b"8", b"9"]

    on_cluster(scenario)


def test_an_offset_behind_the_end_goes_back_to_the_end() -> None:
    """RD-08."""

    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        broker.store("orders", 0, b"old")
        broker.offsets["g", "orders", 0] = 77
        async with await consumer_of(c, collector):
            await wait_for(lambda: broker.offsets["g", "orders", 0] == 1, "the offset is corrected")
            broker.store("orders", 0, b"new")
            await wait_for(lambda: collector.bodies == [b"new"], "what comes then")

    on_cluster(scenario)


def test_messages_of_the_retry_topic_show_the_topic_they_came_from() -> None:
    async def scenario(c: Cluster) -> None:
        collector = Collector()
        c.brokers[0].store("%RETRY%g", 0, b"again", b"RETRY_TOPIC\x01orders\x02")
        async with await consumer_of(c, collector):
            await wait_for(lambda: collector.bodies == [b"again"], "the message sent back by another client")
        assert collector.messages[0].topic == "orders"

    on_cluster(scenario)


def test_a_broker_that_comes_back_is_told_who_we_are_and_read_on(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        async with await consumer_of(c, collector, start_from="first"):
            broker.store("orders", 0, b"before")
            await wait_for(lambda: collector.bodies == [b"before"], "the first")
            port = int(broker.address.rpartition(":")[2])
            await broker.stop()
            broker.members, broker.seen = [], []
            await wait_for(lambda: not broker.links, "the connection is gone")
            await broker.start(port)
            broker.store("orders", 0, b"after")
            await wait_for(lambda: b"after" in collector.bodies, "the one behind the restart")
            assert broker.seen[0] == RequestCode.HEART_BEAT
            assert len(broker.members) == 1
        said = [line for line in caplog.messages if line.startswith("reading orders@broker-0:0: ")]
        assert len(said) >= 2, "when it begins, and when it is over"
        assert said[-1].endswith("the trouble has passed, it works again")

    on_cluster(scenario)


def test_a_topic_that_appears_later_is_found(caplog: pytest.LogCaptureFixture) -> None:
    """NS-05."""

    async def scenario(c: Cluster) -> None:
        collector = Collector()
        consumer = PushConsumer(c.nameserver.address, group="g", listener=collector, start_from="first")
        await consumer.subscribe("young")
        async with consumer:
            c.create("young", 1)
            c.brokers[0].store("young", 0, b"x")
            await wait_for(lambda: collector.bodies == [b"x"], "its first message")

    with caplog.at_level(logging.INFO):
        on_cluster(scenario)
    assert "bolide topic create young" in caplog.text


def test_a_topic_can_be_subscribed_to_while_consuming() -> None:
    async def scenario(c: Cluster) -> None:
        c.create("more", 1)
        c.brokers[0].store("more", 0, b"x")
        collector = Collector()
        async with await consumer_of(c, collector, start_from="first") as consumer:
            await consumer.subscribe("more")
            await wait_for(lambda: collector.bodies == [b"x"], "its message")

    on_cluster(scenario)


def test_starting_without_a_name_server_fails_in_seconds() -> None:
    async def scenario() -> None:
        consumer = PushConsumer("127.0.0.1:1", group="g", listener=Collector())
        await consumer.subscribe("orders")
        with pytest.raises(ConnectionLost, match="no name server answers"):
            await consumer.start()

    asyncio.run(scenario())


def test_impossible_options_are_refused() -> None:
    for options in (
        {"start_from": "yesterday"},
        {"concurrency": 0},
        {"pull_interval_ms": -1},
        {"consume_timeout_ms": 1},
    ):
        with pytest.raises(ConfigError):
            PushConsumer("127.0.0.1:9876", group="g", listener=Collector(), **options)


def test_topics_that_are_added_while_queues_are_being_shared_are_consumed_too() -> None:
    async def scenario(c: Cluster) -> None:
        topics = [f"late-{number}" for number in range(20)]
        for topic in topics:
            c.create(topic, 1)
        async with await consumer_of(c, Collector()) as consumer:
            for topic in topics:
                c.brokers[0].notify_members("g")  # so that shares are worked out all the time
                await consumer.subscribe(topic)
            await wait_for(lambda: set(topics) <= {queue.topic for queue in consumer.queues}, "all queues")

    on_cluster(scenario)


def test_one_message_per_call_unless_told_otherwise() -> None:
    async def scenario(c: Cluster) -> None:
        for number in range(40):
            c.brokers[0].store("orders", 0, b"%d" % number)
        single, several = Collector(), Collector()
        async with await consumer_of(c, single, start_from="first"):
            await wait_for(lambda: len(single.bodies) == 40, "all")
        c.brokers[0].offsets.clear()
        async with await consumer_of(c, several, start_from="first", messages_max=16):
            await wait_for(lambda: len(several.bodies) == 40, "all")
        assert set(single.sizes) == {1}
        assert max(several.sizes) == 16

    on_cluster(scenario)


def test_while_suspended_nothing_begins_and_then_it_goes_on() -> None:
    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        async with await consumer_of(c, collector, start_from="first") as consumer:
            broker.store("orders", 0, b"before")
            await wait_for(lambda: collector.bodies == [b"before"], "the first")
            await consumer.suspend()
            broker.store("orders", 0, b"meanwhile")  # the pull that is held brings it
            held = consumer._assignment.held
            await wait_for(lambda: any(not one.process.is_idle for one in held), "it has come")
            broker.seen.clear()
            broker.store("orders", 0, b"later")
            await consumer._rebalance()
            assert RequestCode.PULL_MESSAGE not in broker.seen
            assert collector.bodies == [b"before"]
            await consumer.resume()
            await wait_for(lambda: collector.bodies == [b"before", b"meanwhile", b"later"], "both")

    on_cluster(scenario)


def test_the_number_of_calls_at_once_can_be_changed() -> None:
    async def scenario(c: Cluster) -> None:
        for number in range(8):
            c.brokers[0].store("orders", number % 4, b"x")
        running, may_end = 0, asyncio.Event()

        async def listener(messages: list[StoredMessage]) -> None:
            nonlocal running
            running += 1
            await may_end.wait()

        async with await consumer_of(c, listener, start_from="first", concurrency=2) as consumer:
            await wait_for(lambda: running == 2, "two at once")
            await consumer.resize(5)
            await wait_for(lambda: running == 5, "five at once")
            with pytest.raises(ConfigError, match="concurrency"):
                await consumer.resize(0)
            may_end.set()
            await wait_for(lambda: running == 8, "all")

    on_cluster(scenario)


def test_threads_of_a_plain_listener_follow_its_new_size() -> None:
    async def scenario(c: Cluster) -> None:
        barrier = threading.Barrier(3)
        seen: list[bytes] = []

        def listener(messages: list[StoredMessage]) -> None:
            if messages[0].body == b"together":
                barrier.wait(10)
            seen.extend(message.body for message in messages)

        async with await consumer_of(c, listener, start_from="first", concurrency=1) as consumer:
            c.brokers[0].store("orders", 0, b"alone")
            await wait_for(lambda: seen == [b"alone"], "the first")
            await consumer.resize(3)
            for queue in range(3):
                c.brokers[0].store("orders", queue, b"together")
            await wait_for(lambda: len(seen) == 4, "three at once")

    on_cluster(scenario)


def test_between_two_pulls_of_a_queue_there_is_the_interval() -> None:
    """CO-10."""

    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        c.create("one", 1)
        for number in range(100):
            broker.store("one", 0, b"%d" % number)
        consumer = PushConsumer(
            c.nameserver.address, group="g", listener=collector, start_from="first", pull_interval_ms=60_000
        )
        await consumer.subscribe("one")
        async with consumer:
            await wait_for(lambda: len(collector.bodies) == 32, "what one pull brings")
            pulls = [code for code in broker.seen if code == RequestCode.PULL_MESSAGE]
            assert len(pulls) == 2, "one of this queue, one of the retry topic's"

    on_cluster(scenario)


def test_a_queue_that_nobody_pulls_from_is_begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """CO-14.  Goal: no queue is lost to a reader that hangs.  Method: the first readers do nothing at all."""
    readers = 0

    async def read(held: HeldQueue, reading: Reading) -> None:
        nonlocal readers
        readers += 1
        if readers <= 5:  # four queues and the retry topic's
            held.pulled_ms -= 120_001
            await held.gone.wait()
        await read_queue(held, reading)

    monkeypatch.setattr(assignment, "read_queue", read)

    async def scenario(c: Cluster) -> None:
        c.brokers[0].store("orders", 0, b"x")
        collector = Collector()
        async with await consumer_of(c, collector, start_from="first"):
            c.brokers[0].notify_members("g")
            await wait_for(lambda: collector.bodies == [b"x"], "the message of the queue")
            await wait_for(lambda: readers == 10, "a second reader of each queue")

    on_cluster(scenario)
