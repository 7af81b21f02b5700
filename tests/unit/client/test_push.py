"""Consuming in a group: nothing is lost, shares follow the members, offsets follow the work."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from bolide.aio import PushConsumer, StoredMessage
from bolide.machines import consumer as machine
from bolide.model.errors import ConfigError, ConnectionLost, RetryLater
from bolide.wire.codes import RequestCode
from tests.unit.client.scripted import Cluster, cluster, wait_for


class Collector:
    """A listener that remembers bodies and fails when told to."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.messages: list[StoredMessage] = []
        self.fail_on: Counter[bytes] = Counter()
        self.sizes: list[int] = []

    async def __call__(self, messages: list[StoredMessage]) -> None:
        self.sizes.append(len(messages))
        for message in messages:
            if self.fail_on[message.body] > 0:
                self.fail_on[message.body] -= 1
                raise RuntimeError(f"{message.body!r} is not wanted yet")
        self.messages += messages
        self.bodies += [message.body for message in messages]


def on_cluster(scenario: Callable[[Cluster], Awaitable[None]], brokers: int = 1) -> None:
    async def run() -> None:
        async with cluster(brokers) as c:
            c.create("orders", 4)
            c.create("%RETRY%g", 1)
            await scenario(c)

    asyncio.run(run())


async def consumer_of(c: Cluster, listener: Callable[..., object], **options: object) -> PushConsumer:
    consumer = PushConsumer(c.nameserver.address, group="g", listener=listener, **options)  # type: ignore[arg-type]
    await consumer.subscribe("orders")
    return consumer


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


def test_a_failed_message_comes_again_alone_and_the_offset_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine, "RETRY_PAUSES_MS", (50,))

    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        collector.fail_on[b"3"] = 2
        for number in range(10):
            broker.store("orders", 0, b"%d" % number)
        async with await consumer_of(c, collector, start_from="first"):
            await wait_for(lambda: len(collector.bodies) == 10, "all, the failed ones too")
            by_body = {message.body: message for message in collector.messages}
            assert by_body[b"3"].reconsume_times == 2
            assert max(message.reconsume_times for message in collector.messages) == 2
            assert collector.sizes[0] == 10
            assert set(collector.sizes[1:]) == {1}
        assert broker.offsets["g", "orders", 0] == 10

    on_cluster(scenario)


def test_with_a_limit_a_failed_message_goes_back_to_its_broker_and_the_offset_passes_it() -> None:
    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        collector.fail_on[b"3"] = 1
        for number in range(10):
            broker.store("orders", 0, b"%d" % number)
        options = {"start_from": "first", "messages_max": 1, "max_reconsume_times": 5}
        async with await consumer_of(c, collector, **options):
            await wait_for(lambda: len(collector.bodies) == 9 and broker.sent_back, "all but the failed one")
        (back,) = broker.sent_back
        assert (back.group, back.delay_level, back.max_reconsume_times) == ("g", 0, 5)
        assert (back.origin_topic, broker.offsets["g", "orders", 0]) == ("orders", 10)
        assert b"3" not in collector.bodies

    on_cluster(scenario)


def test_a_listener_may_say_how_long_its_message_waits() -> None:
    async def scenario(c: Cluster) -> None:
        broker = c.brokers[0]
        broker.store("orders", 0, b"hopeless")

        async def never(messages: list[StoredMessage]) -> None:
            raise RetryLater("not for us", delay_level=-1)

        async with await consumer_of(c, never, start_from="first", max_reconsume_times=16):
            await wait_for(lambda: broker.sent_back, "the message sent back")
        assert broker.sent_back[0].delay_level == -1

    on_cluster(scenario)


@pytest.mark.parametrize(
    ("answer", "limit", "said", "traced"),
    [
        (RetryLater("the till is closed"), 16, "wants later (the till is closed) 1 messages", False),
        (RetryLater("no", delay_level=-1), 16, "they are dead letters now", False),
        (RuntimeError("broken"), 0, "that was their last attempt, they are dead letters now", True),
        (RuntimeError("broken"), 16, "failed for 1 messages", True),
    ],
)
def test_the_log_tells_what_becomes_of_a_message_and_traces_accidents_alone(
    answer: Exception, limit: int, said: str, traced: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(c: Cluster) -> None:
        broker = c.brokers[0]
        broker.store("orders", 0, b"x")

        async def listen(messages: list[StoredMessage]) -> None:
            raise answer

        async with await consumer_of(c, listen, start_from="first", max_reconsume_times=limit):
            await wait_for(lambda: broker.sent_back, "the message sent back")

    on_cluster(scenario)
    record = next(record for record in caplog.records if "the listener" in record.message)
    assert said in record.message
    assert bool(record.exc_info) == traced
    assert ("brings them again" in record.message) == ("dead letters" not in record.message)


def test_what_the_broker_does_not_take_back_comes_again_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "RETRY_PAUSES_MS", (50,))

    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        broker.refusals = 1
        collector.fail_on[b"x"] = 2
        broker.store("orders", 0, b"x")
        async with await consumer_of(c, collector, start_from="first", max_reconsume_times=16):
            await wait_for(lambda: broker.sent_back, "the second failure sent back")
        assert collector.sizes == [1, 1]
        assert broker.offsets["g", "orders", 0] == 1

    on_cluster(scenario)


def test_what_the_listener_has_not_finished_is_not_committed() -> None:
    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        collector.fail_on[b"4"] = 1000
        for number in range(10):
            broker.store("orders", 0, b"%d" % number)
        async with await consumer_of(c, collector, start_from="first", messages_max=1):
            await wait_for(lambda: len(collector.bodies) == 9, "all but one")
        assert broker.offsets["g", "orders", 0] == 4
        collector.fail_on.clear()
        async with await consumer_of(c, collector):
            await wait_for(lambda: b"4" in collector.bodies, "it comes to the next member")

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


def test_starting_without_a_name_server_fails_at_once() -> None:
    async def scenario() -> None:
        consumer = PushConsumer("127.0.0.1:1", group="g", listener=Collector())
        await consumer.subscribe("orders")
        with pytest.raises(ConnectionLost, match="no name server answers"):
            await consumer.start()

    asyncio.run(scenario())


def test_impossible_options_are_refused() -> None:
    for options in ({"start_from": "yesterday"}, {"concurrency": 0}, {"messages_max": 0}):
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
