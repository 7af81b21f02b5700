"""What applications hand over by mistake: every error is one of ours, names the argument and says what is expected."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import bolide
import bolide.aio
from bolide.aio import (
    BolideError,
    ConfigError,
    InvalidRequest,
    Message,
    MessageIllegal,
    MessageQueue,
    Producer,
    PullConsumer,
    PushConsumer,
    SubscriptionMalformed,
)
from bolide.client import checks
from tests.unit.client.scripted import Cluster, cluster

ADDRESS = "127.0.0.1:9876"
QUEUE = MessageQueue("orders", "broker-0", 0)

Wrong = tuple[dict[str, Any], str]


def listen(messages: list[Any]) -> None:
    pass


def generate(messages: list[Any]) -> Any:
    yield messages


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"nameserver": ["h:1"]}, "nameserver is a text, as in 'host:9876;host:9876', not list ['h:1']"),
        ({"nameserver": None}, "nameserver is a text"),
        ({"nameserver": "nowhere"}, "'nowhere' is not an address"),
        ({"nameserver": ""}, "no name server address"),
        ({"group": 7}, "group is a text, as in 'billing', not int 7"),
        ({"group": "a b"}, "group name 'a b' contains ' '"),
    ],
)
@pytest.mark.parametrize("kind", [Producer, PullConsumer, PushConsumer, bolide.Producer, bolide.PushConsumer])
def test_every_client_names_what_is_wrong_with_its_address_and_group(
    kind: type[Any], arguments: dict[str, Any], said: str
) -> None:
    given = {"nameserver": ADDRESS, "group": "g"} | arguments
    if kind in (PushConsumer, bolide.PushConsumer):
        given["listener"] = listen
    with pytest.raises((ConfigError, InvalidRequest)) as raised:
        kind(given.pop("nameserver"), **given)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("kind", "arguments", "said"),
    [
        (Producer, {"timeout_ms": "5"}, "timeout_ms is a whole number from 1 to 86400000, not str '5'"),
        (Producer, {"timeout_ms": 0}, "timeout_ms"),
        (Producer, {"timeout_ms": 10**400}, "timeout_ms"),
        (Producer, {"timeout_ms": 2.5}, "timeout_ms"),
        (Producer, {"timeout_ms": True}, "timeout_ms"),
        (Producer, {"retries": -1}, "retries is a whole number from 0 to 100, not int -1"),
        (Producer, {"pack_from_bytes": None}, "pack_from_bytes"),
        (
            PushConsumer,
            {"listener": None},
            "listener is a function that takes a list of messages, not NoneType",
        ),
        (PushConsumer, {"listener": [listen]}, "listener is a function"),
        (PushConsumer, {"listener": lambda: None}, "takes a list of messages, and this one takes ()"),
        (PushConsumer, {"listener": lambda one, two: None}, "and this one takes (one, two)"),
        (PushConsumer, {"listener": generate}, "a call of it would do nothing"),
        (PushConsumer, {"start_from": "yesterday"}, 'start_from is "first", "last" or a moment'),
        (PushConsumer, {"start_from": None}, "start_from is a datetime"),
        (PushConsumer, {"start_from": -1}, "start_from is a datetime"),
        (PushConsumer, {"start_from": 1_700_000_000}, "1700000000 looks like seconds"),
        (PushConsumer, {"start_from": 1.5}, "start_from is a datetime"),
        (PushConsumer, {"concurrency": 0}, "concurrency is a whole number from 1 to 1000"),
        (PushConsumer, {"concurrency": 10**9}, "concurrency"),
        (PushConsumer, {"messages_max": "32"}, "messages_max is a whole number from 1 to 1024"),
        (PushConsumer, {"close_timeout_ms": -1}, "close_timeout_ms"),
        (PushConsumer, {"bad_bodies": "ignore"}, 'bad_bodies is "deliver" or "skip", not str \'ignore\''),
        (PullConsumer, {"bad_bodies": None}, "bad_bodies"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_named(
    kind: type[Any], arguments: dict[str, Any], said: str
) -> None:
    given = {"listener": listen} if kind is PushConsumer else {}
    with pytest.raises(ConfigError) as raised:
        kind(ADDRESS, group="g", **given | arguments)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (b"x", "a message is a Message, as in Message('orders', b'...'), not bytes b'x'"),
        (None, "a message is a Message"),
        (Message(None, b"x"), "topic is a text, as in 'orders', not NoneType None"),  # type: ignore[arg-type]
        (Message("", b"x"), "blank"),
        (Message("orders", "text"), "the body of a message is bytes, not str 'text'"),  # type: ignore[arg-type]
        (Message("orders", None), "the body of a message is bytes, not NoneType"),  # type: ignore[arg-type]
        (Message("orders", {"a": 1}), "the body of a message is bytes, not dict"),  # type: ignore[arg-type]
        (Message("orders", b"x", tags=["a"]), "tags is a text, as in 'paid', not list ['a']"),  # type: ignore[arg-type]
        (Message("orders", b"x", tags="a||b"), "tags is one word, as in 'paid', not str 'a||b'"),
        (Message("orders", b"x", tags="a b"), "tags is one word"),
        (Message("orders", b"x", tags="*"), "tags is one word"),
        (Message("orders", b"x", properties={"TAGS": "a||b"}), "tags is one word"),
        (Message("orders", b"x", tags="a", properties={"TAGS": "b"}), "properties has another TAGS, str 'b'"),
        (
            Message("orders", b"x", keys=["k"], properties={"KEYS": "l"}),
            "properties has another KEYS, str 'l'",
        ),
        (Message("orders", b"x", keys=["x y"]), "each of keys is one word, as in '42', not str 'x y'"),
        (Message("orders", b"x", keys=[42]), "each of keys is a text, as in '42', not int 42"),  # type: ignore[list-item]
        (Message("orders", b"x", keys=42), "keys is a list of texts, as in ['42'], not int 42"),  # type: ignore[arg-type]
        (Message("orders", b"x", keys=b"42"), "keys is a list of texts"),  # type: ignore[arg-type]
        (Message("orders", b"x", keys=None), "keys is a list of texts"),  # type: ignore[arg-type]
        (
            Message("orders", b"x", properties={"a": 1}),  # type: ignore[dict-item]
            "properties are texts, name and value: str 'a' is given int 1",
        ),
        (Message("orders", b"x", properties=[("a", "b")]), "properties is a dict of texts"),  # type: ignore[arg-type]
        (Message("orders", b"x", properties={"a": "\ud800"}), "are no text"),
        (Message("orders", b"x", flag="1"), "flag is a whole number"),  # type: ignore[arg-type]
        (Message("orders", b"x", flag=2**31), "flag is a whole number"),
        (Message("orders", b"x", delay_level=-1), "delay_level is a whole number from 0 to 256, not int -1"),
        (Message("orders", b"x", delay_level=257), "delay_level is a whole number from 0 to 256"),
        (Message("orders", b"x", delay_level="10s"), "delay_level is a whole number"),  # type: ignore[arg-type]
        (Message("orders", b"x", delay_level=True), "delay_level is a whole number"),
        (
            Message("orders", b"x", delay_level=3, properties={"DELAY": "4"}),
            "delay_level says str '3', and properties has another DELAY, str '4'",
        ),
    ],
)
@pytest.mark.parametrize("how", ["send", "batch", "one way"])
def test_what_is_wrong_with_a_message_is_named_before_it_leaves(message: Any, said: str, how: str) -> None:
    async def scenario(c: Cluster, producer: Producer) -> None:
        sends: dict[str, Callable[[], Awaitable[object]]] = {
            "send": lambda: producer.send(message),
            "batch": lambda: producer.send_batch([Message("orders", b"good"), message]),
            "one way": lambda: producer.send_oneway(message),
        }
        with pytest.raises((MessageIllegal, InvalidRequest)) as raised:
            await sends[how]()
        assert said in str(raised.value)
        assert c.brokers[0].sends == []

    with_producer(scenario)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            {"selector": lambda queues, message: 3},
            "one of the queues that it is given, as in queues[0], not int 3",
        ),
        ({"selector": lambda queues, message: None}, "not NoneType None"),
        ({"selector": lambda queues, message: MessageQueue("other", "b", 0)}, "returns one of the queues"),
        (
            {"selector": lambda queues: queues[0]},
            "takes the queues and the message, and this one takes (queues)",
        ),
        ({"selector": 3}, "selector is a function that takes the queues and the message, not int 3"),
        ({"selector": lambda queues, message: queues[0], "queue": QUEUE}, "a queue or a selector, not both"),
        ({"queue": 0}, "queue is a MessageQueue, such as those that queues(topic) gives, not int 0"),
        ({"queue": MessageQueue("other", "broker-0", 0)}, "other@broker-0:0 is no queue of 'orders'"),
        ({"timeout_ms": "5"}, "timeout_ms is a whole number"),
    ],
)
def test_what_is_wrong_with_a_send_is_named(arguments: dict[str, Any], said: str) -> None:
    async def scenario(c: Cluster, producer: Producer) -> None:
        with pytest.raises((ConfigError, InvalidRequest)) as raised:
            await producer.send(Message("orders", b"x"), **arguments)
        assert said in str(raised.value)

    with_producer(scenario)


def test_a_batch_is_a_list_of_messages() -> None:
    async def scenario(c: Cluster, producer: Producer) -> None:
        for wrong in (Message("orders", b"x"), None, 7):
            with pytest.raises(MessageIllegal, match="messages is a list of messages, not"):
                await producer.send_batch(wrong)  # type: ignore[arg-type]

    with_producer(scenario)


def test_bodies_that_can_change_are_copied_before_they_leave() -> None:
    async def scenario(c: Cluster, producer: Producer) -> None:
        body = bytearray(b"first")
        message = Message("orders", body)  # type: ignore[arg-type]
        await asyncio.gather(producer.send(message), _overwrite(body))
        await producer.send(Message("orders", memoryview(b"view")))  # type: ignore[arg-type]
        assert c.brokers[0].bodies == [b"first", b"view"]

    async def _overwrite(body: bytearray) -> None:
        body[:] = b"later"

    with_producer(scenario)


@pytest.mark.parametrize(
    "tags",
    [
        "a > 3 AND b IS NOT NULL",
        "a=3",
        "TAGS = 'paid'",
        "colour IN ('blue')",
        "paid refunded",
        "paid | refunded",
        "paid || *",
        "paid || a > 3",
    ],
)
def test_what_is_no_tag_expression_is_refused_and_not_consumed_as_nothing(tags: str) -> None:
    async def scenario() -> None:
        consumer = PushConsumer(ADDRESS, group="g", listener=listen)
        with pytest.raises(SubscriptionMalformed, match="if it is an SQL expression, give it as sql"):
            await consumer.subscribe("orders", tags)
        async with PullConsumer(ADDRESS) as reader:
            with pytest.raises(SubscriptionMalformed, match="SQL"):
                await reader.pull(QUEUE, 0, tags=tags)

    asyncio.run(scenario())


@pytest.mark.parametrize("tags", ["paid,refunded", "paid, refunded", "paid | refunded", "paid||a,b"])
def test_tags_that_are_joined_otherwise_are_refused_with_how_to_join_them(tags: str) -> None:
    with pytest.raises(SubscriptionMalformed, match=r"several tags are joined by \|\|"):
        checks.subscription("orders", tags)


@pytest.mark.parametrize("tags", ["*", "", " * ", "paid", "paid || refunded", "Größe||a-b_c.d/e:f;g%20"])
def test_tag_expressions_are_taken(tags: str) -> None:
    async def scenario() -> None:
        await PushConsumer(ADDRESS, group="g", listener=listen).subscribe("orders", tags)

    asyncio.run(scenario())


def test_what_is_wrong_with_a_subscription_is_named() -> None:
    async def scenario() -> None:
        consumer = PushConsumer(ADDRESS, group="g", listener=listen)
        with pytest.raises(InvalidRequest, match="topic is a text, as in 'orders', not NoneType"):
            await consumer.subscribe(None)  # type: ignore[arg-type]
        with pytest.raises(
            SubscriptionMalformed, match=r"tags is a text, as in 'paid \|\| refunded', not list"
        ):
            await consumer.subscribe("orders", ["paid"])  # type: ignore[arg-type]

    asyncio.run(scenario())


def test_what_is_wrong_with_a_question_about_a_queue_is_named() -> None:
    async def scenario() -> None:
        async with PullConsumer(ADDRESS) as reader:
            wrong: list[tuple[str, Awaitable[object]]] = [
                ("queue is a MessageQueue", reader.pull("orders", 0)),  # type: ignore[arg-type]
                ("queue is a MessageQueue", reader.pull_block(None, 0)),  # type: ignore[arg-type]
                ("queue is a MessageQueue", reader.max_offset(0)),  # type: ignore[arg-type]
                ("offset is a whole number", reader.pull(QUEUE, "0")),  # type: ignore[arg-type]
                ("offset is a whole number", reader.pull(QUEUE, -1)),
                ("offset is a whole number", reader.commit(QUEUE, 2**63)),
                ("offset is a whole number", reader.commit(QUEUE, None)),  # type: ignore[arg-type]
                ("max_messages is a whole number", reader.pull(QUEUE, 0, 0)),
                ("max_bytes is a whole number", reader.pull_block(QUEUE, 0, max_bytes=0)),
                ("wait_ms is a whole number", reader.pull(QUEUE, 0, wait_ms=10**12)),
                ("moment is a datetime", reader.offset_at(QUEUE, "2026-01-01")),  # type: ignore[arg-type]
                ("topic is a text", reader.queues(7)),  # type: ignore[arg-type]
            ]
            for said, asking in wrong:
                with pytest.raises(BolideError, match=said):
                    await asking

    asyncio.run(scenario())


def test_whole_numbers_of_other_libraries_are_whole_numbers() -> None:
    class Number:
        def __index__(self) -> int:
            return 7

    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            async with PullConsumer(c.nameserver.address) as reader:
                await reader.commit(QUEUE, Number())  # type: ignore[arg-type]
                assert await reader.committed_offset(QUEUE) == 7

    asyncio.run(scenario())


def with_producer(scenario: Callable[[Cluster, Producer], Awaitable[None]]) -> None:
    async def run() -> None:
        async with cluster() as c:
            c.create("orders")
            async with Producer(c.nameserver.address) as producer:
                await scenario(c, producer)

    asyncio.run(run())
