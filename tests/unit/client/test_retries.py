"""Messages that the listener cannot handle: they go back to their broker and hold up nobody."""

import asyncio

import pytest

from bolide.aio import ConsumeContext, DedupWindow, Later, RetryLater, StoredMessage, Suspend
from bolide.client import push
from bolide.compat.rocketmq.consumers import ConsumeStatus
from bolide.machines import consumer as machine
from bolide.model.errors import ConfigError
from bolide.model.message import Property, format_properties
from bolide.model.pairs import parse_properties
from bolide.wire.codes import ResponseCode
from tests.unit.client.consuming import Collector, consumer_of, on_cluster
from tests.unit.client.scripted import Cluster, wait_for


def test_a_failed_message_goes_back_to_its_broker_and_the_offset_passes_it() -> None:
    """RY-04, RY-07."""

    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        collector.fail_on[b"3"] = 1
        for number in range(10):
            broker.store("orders", 0, b"%d" % number)
        async with await consumer_of(c, collector, start_from="first"):
            await wait_for(lambda: len(collector.bodies) == 9 and broker.sent_back, "all but the failed one")
        (back,) = broker.sent_back
        assert (back.group, back.delay_level, back.max_reconsume_times) == ("g", 0, 16)
        assert (back.origin_topic, broker.offsets["g", "orders", 0]) == ("orders", 10)
        assert b"3" not in collector.bodies

    on_cluster(scenario)


def test_a_message_that_always_fails_does_not_stop_its_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """RY-07: the queue goes on for more than the span of offsets that one consumer may hold."""
    monkeypatch.setattr(push, "PERSIST_PERIOD_MS", 50)

    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        collector.fail_on[b"bad"] = 1000
        broker.store("orders", 0, b"bad")
        for number in range(2500):
            broker.store("orders", 0, b"%d" % number)
        async with await consumer_of(c, collector, start_from="first", messages_max=100, attempts_max=3):
            await wait_for(lambda: len(collector.bodies) + 100 > 2500, "all but those of the failed call")
            await wait_for(lambda: broker.offsets.get(("g", "orders", 0)) == 2501, "the offset passes it")
        assert {back.max_reconsume_times for back in broker.sent_back} == {3}

    on_cluster(scenario)


@pytest.mark.parametrize("raises", [True, False])
@pytest.mark.parametrize("kind", [Later, RetryLater])
def test_a_listener_may_say_how_long_its_message_waits(kind: type[Later], raises: bool) -> None:
    """RY-02."""

    async def scenario(c: Cluster) -> None:
        broker = c.brokers[0]
        broker.store("orders", 0, b"hopeless")

        async def never(messages: list[StoredMessage]) -> Later:
            later = kind("not for us", delay_level=-1)
            if raises:
                raise later
            return later

        async with await consumer_of(c, never, start_from="first"):
            await wait_for(lambda: broker.sent_back, "the message sent back")
        assert broker.sent_back[0].delay_level == -1

    on_cluster(scenario)


@pytest.mark.parametrize(
    "found",
    [Later, Suspend, ValueError("no"), ValueError, False, True, "not yet", ConsumeStatus.RECONSUME_LATER],
)
@pytest.mark.parametrize("with_window", [False, True])
def test_whatever_a_listener_returns_but_none_is_not_done(found: object, with_window: bool) -> None:
    async def scenario(c: Cluster) -> None:
        broker, window = c.brokers[0], DedupWindow()
        broker.store("orders", 0, b"x", format_properties({Property.UNIQUE_KEY: "A"}).encode())

        def listener(messages: list[StoredMessage]) -> object:
            return found

        wrapped = window.wrap(listener) if with_window else listener
        async with await consumer_of(c, wrapped, start_from="first"):
            await wait_for(lambda: broker.sent_back, "the message sent back")
        assert len(window) == 0

    on_cluster(scenario)


def test_a_listener_that_returns_what_is_no_answer_is_told_what_is(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(c: Cluster) -> None:
        c.brokers[0].store("orders", 0, b"x")
        async with await consumer_of(c, lambda messages: 42, start_from="first"):
            await wait_for(lambda: c.brokers[0].sent_back, "the message sent back")

    on_cluster(scenario)
    assert "a listener returns None when all is done" in caplog.text
    assert "42" in caplog.text


def test_of_a_batch_those_behind_the_last_acknowledged_come_again() -> None:
    async def scenario(c: Cluster) -> None:
        broker, contexts = c.brokers[0], list[ConsumeContext]()
        for number in range(10):
            broker.store("orders", 0, b"%d" % number)

        def listener(messages: list[StoredMessage], context: ConsumeContext) -> None:
            contexts.append(context)
            context.ack_index = 6
            context.delay_level_next = 5

        async with await consumer_of(c, listener, start_from="first", messages_max=10):
            await wait_for(lambda: len(broker.sent_back) == 3, "the last three sent back")
        assert [back.offset for back in broker.sent_back] == [7, 8, 9]
        assert {back.delay_level for back in broker.sent_back} == {5}
        assert contexts[0].queue.topic == "orders"
        assert broker.offsets["g", "orders", 0] == 10

    on_cluster(scenario)


def test_a_context_refuses_what_cannot_be_meant() -> None:
    context = ConsumeContext(None)  # type: ignore[arg-type]
    for name, value in (("ack_index", -2), ("ack_index", "1"), ("delay_level_next", None)):
        with pytest.raises(ConfigError, match=name):
            setattr(context, name, value)
    with pytest.raises(Exception, match="auto_commit=False"):
        context.commit()
    for wrong in ({"why": 5}, {"delay_level": "5"}):
        with pytest.raises(ConfigError, match="delay_level=5"):
            Later(**wrong)


@pytest.mark.parametrize(
    ("answer", "limit", "said", "traced"),
    [
        (Later("the till is closed"), 16, "wants later (the till is closed) 1 messages", False),
        (Later("no", delay_level=-1), 16, "they are dead letters now", False),
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

        async with await consumer_of(c, listen, start_from="first", attempts_max=limit):
            await wait_for(lambda: broker.sent_back, "the message sent back")

    on_cluster(scenario)
    record = next(record for record in caplog.records if "the listener" in record.message)
    assert said in record.message
    assert bool(record.exc_info) == traced
    assert ("brings them again" in record.message) == ("dead letters" not in record.message)


def test_what_the_broker_does_not_take_back_is_sent_to_the_retry_topic() -> None:
    """RY-05."""

    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        broker.refusals = 1
        collector.fail_on[b"x"] = 1
        broker.store(
            "orders",
            0,
            b"x",
            b"UNIQ_KEY\x01ID\x02TAGS\x01two words\x02DELAY\x011\x02REAL_TOPIC\x01orders\x02",
        )
        async with await consumer_of(c, collector, start_from="first"):
            await wait_for(lambda: collector.bodies == [b"x"], "the copy comes")
        (sent,) = broker.sends
        assert (sent.topic, sent.producer_group) == ("%RETRY%g", "CLIENT_INNER_PRODUCER")
        assert (sent.reconsume_times, sent.max_reconsume_times) == (1, 16)
        properties = parse_properties(sent.properties)
        assert properties.pop("ORIGIN_MESSAGE_ID")
        assert properties == {"UNIQ_KEY": "ID", "TAGS": "two words", "RETRY_TOPIC": "orders", "DELAY": "3"}
        assert collector.messages[0].topic == "orders"
        assert broker.sent_back == []
        assert broker.offsets["g", "orders", 0] == 1

    on_cluster(scenario)


def test_what_nobody_takes_back_comes_again_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """RY-05."""
    monkeypatch.setattr(machine, "RETRY_PAUSE_MS", 50)

    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        broker.refusals = 1
        broker.answers = [ResponseCode.SYSTEM_ERROR]
        collector.fail_on[b"x"] = 1
        broker.store("orders", 0, b"x")
        async with await consumer_of(c, collector, start_from="first"):
            await wait_for(lambda: collector.bodies == [b"x"], "the second try, here")
        assert collector.messages[0].reconsume_times == 1
        assert broker.sent_back == []
        assert broker.offsets["g", "orders", 0] == 1

    on_cluster(scenario)


def test_a_message_that_the_listener_has_for_too_long_goes_back_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """RY-06.  What the listener says of it later does not count any more."""
    monkeypatch.setattr(push, "SWEEP_PERIOD_MS", 50)
    monkeypatch.setattr(push, "PERSIST_PERIOD_MS", 50)
    monkeypatch.setattr(push, "CONSUME_TIMEOUT_MS_MIN", 1)

    async def scenario(c: Cluster) -> None:
        broker, may_end, ended = c.brokers[0], asyncio.Event(), asyncio.Event()
        broker.store("orders", 0, b"slow")

        async def listener(messages: list[StoredMessage]) -> None:
            await may_end.wait()
            ended.set()
            raise RuntimeError("too late")

        async with await consumer_of(c, listener, start_from="first", consume_timeout_ms=10):
            await wait_for(lambda: broker.sent_back, "the message sent back")
            await wait_for(lambda: broker.offsets.get(("g", "orders", 0)) == 1, "the offset goes on")
            may_end.set()
            await ended.wait()
        assert [back.delay_level for back in broker.sent_back] == [3]

    on_cluster(scenario)


def test_a_queue_that_went_to_another_member_is_that_ones_care() -> None:
    async def scenario(c: Cluster) -> None:
        broker, begun, may_end = c.brokers[0], asyncio.Event(), asyncio.Event()
        broker.store("orders", 0, b"slow")

        async def listener(messages: list[StoredMessage]) -> None:
            begun.set()
            await may_end.wait()
            raise RuntimeError("not ours any more")

        async with await consumer_of(c, listener, start_from="first") as consumer:
            await begun.wait()
            (held,) = [one for one in consumer._assignment.held if not one.process.is_idle]
            broker.members.insert(0, "0-another")
            broker.notify_members("g")
            await wait_for(lambda: held.is_gone, "the queue is the other one's")
            may_end.set()
        assert broker.sent_back == []
        assert broker.offsets["g", "orders", 0] == 0

    on_cluster(scenario)


def test_what_the_listener_has_not_finished_is_not_committed() -> None:
    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        for number in range(10):
            broker.store("orders", 0, b"%d" % number)

        async def listener(messages: list[StoredMessage]) -> None:
            if messages[0].body == b"4":
                await asyncio.Event().wait()
            await collector(messages)

        async with await consumer_of(c, listener, start_from="first", close_timeout_ms=0):
            await wait_for(lambda: len(collector.bodies) == 9, "all but one")
        assert broker.offsets["g", "orders", 0] == 4
        async with await consumer_of(c, collector):
            await wait_for(lambda: b"4" in collector.bodies, "it comes to the next member")

    on_cluster(scenario)
