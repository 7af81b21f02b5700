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
    LitePullConsumer,
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
        ({"nameserver": "good:1;ba\ud800d:9876"}, "nameserver has a host that nobody can have"),
        ({"nameserver": "a..b:9876"}, "nameserver has a host that nobody can have"),
        ({"group": 7}, "group is a text, as in 'billing', not int 7"),
        ({"group": "a b"}, "group name 'a b' contains ' '"),
    ],
)
@pytest.mark.parametrize(
    "kind",
    [LitePullConsumer, Producer, PullConsumer, PushConsumer, bolide.Producer, bolide.PushConsumer],
)
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
        (Producer, {"compression": "gzip"}, 'compression is "zlib", "lz4" or "zstd", not str \'gzip\''),
        (Producer, {"compression": None}, "compression is"),
        (
            PushConsumer,
            {"listener": None},
            "listener is a function that takes a list of messages, not NoneType",
        ),
        (PushConsumer, {"listener": [listen]}, "listener is a function"),
        (PushConsumer, {"listener": lambda: None}, "or that and a context, and this one takes ()"),
        (PushConsumer, {"listener": lambda one, two, more: None}, "and this one takes (one, two, more)"),
        (
            PushConsumer,
            {"listener": lambda context: None},
            "messages and a context, and this one takes (context)",
        ),
        (PushConsumer, {"listener": generate}, "a call of it would do nothing"),
        (PushConsumer, {"start_from": "yesterday"}, 'start_from is "first", "last" or a moment'),
        (PushConsumer, {"start_from": "earliest"}, "not str 'earliest': did you mean \"first\"?"),
        (PushConsumer, {"start_from": "FIRST"}, 'did you mean "first"?'),
        (LitePullConsumer, {"start_from": "beginning"}, 'did you mean "first"?'),
        (LitePullConsumer, {"start_from": "Latest"}, 'did you mean "last", or datetime.now() for new'),
        (LitePullConsumer, {"start_from": "end"}, 'did you mean "last", or'),
        (PushConsumer, {"start_from": None}, "start_from is a datetime"),
        (PushConsumer, {"start_from": -1}, "start_from is a datetime"),
        (PushConsumer, {"start_from": 1_700_000_000}, "1700000000 looks like seconds"),
        (PushConsumer, {"start_from": 1.5}, "start_from is a datetime"),
        (PushConsumer, {"concurrency": 0}, "concurrency is a whole number from 1 to 1000"),
        (PushConsumer, {"concurrency": 10**9}, "concurrency"),
        (PushConsumer, {"messages_max": "32"}, "messages_max is a whole number from 1 to 1024"),
        (PushConsumer, {"close_timeout_ms": -1}, "close_timeout_ms"),
        (LitePullConsumer, {"auto_commit": "no"}, "auto_commit is True or False, not str 'no'"),
        (LitePullConsumer, {"commit_interval_ms": 1}, "commit_interval_ms is a whole number from 100"),
        (LitePullConsumer, {"start_from": "yesterday"}, 'start_from is "first", "last" or a moment'),
        (LitePullConsumer, {"bad_bodies": None}, "bad_bodies is"),
        (LitePullConsumer, {"strategy": "by lot"}, "there is no strategy 'by lot'"),
        (LitePullConsumer, {"strategy": lambda queues: queues}, "and this one takes (queues)"),
        (LitePullConsumer, {"on_queues_changed": 7}, "on_queues_changed is a function that takes a topic"),
        (PullConsumer, {"on_queues_changed": listen}, "and this one takes (messages"),
        (PushConsumer, {"bad_bodies": "ignore"}, 'bad_bodies is "deliver" or "skip", not str \'ignore\''),
        (PushConsumer, {"strategy": "circel"}, "there is no strategy 'circel': is 'circle' meant?"),
        (PushConsumer, {"strategy": lambda queues: queues}, "and this one takes (queues)"),
        (PushConsumer, {"orderly": "yes"}, "orderly is True or False, not str 'yes'"),
        (PushConsumer, {"auto_commit": False}, "auto_commit=False is for consumers with orderly=True"),
        (PushConsumer, {"broadcasting": True, "attempts_max": 3}, "broadcasting brings none again"),
        (PushConsumer, {"attempts_max": 2**31}, "attempts_max is a whole number"),
        (PushConsumer, {"instance_name": "a/b"}, "instance_name is a name of up to"),
        (
            PushConsumer,
            {"broadcasting": True, "offsets_dir": 7},
            "offsets_dir is the path of a folder, not int 7",
        ),
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


@pytest.mark.parametrize("shell", [bolide, bolide.aio])
@pytest.mark.parametrize(
    ("kind", "argument", "said"),
    [
        ("Producer", "grp", "Producer takes no argument 'grp': did you mean group?"),
        ("Producer", "timeout", "Producer takes no argument 'timeout': did you mean timeout_ms?"),
        ("Producer", "credential", "did you mean credentials?"),
        (
            "Producer",
            "surrounding",
            "Producer takes no argument 'surrounding'; there are nameserver, group, ",
        ),
        (
            "TransactionProducer",
            "topic",
            "TransactionProducer takes no argument 'topic': did you mean topics?",
        ),
        (
            "PullConsumer",
            "instanceName",
            "PullConsumer takes no argument 'instanceName': did you mean instance_",
        ),
        (
            "LitePullConsumer",
            "autocommit",
            "LitePullConsumer takes no argument 'autocommit': did you mean auto_",
        ),
        ("PushConsumer", "Orderly", "PushConsumer takes no argument 'Orderly': did you mean orderly?"),
    ],
)
def test_an_argument_that_a_client_does_not_take_is_told_with_the_one_that_was_meant(
    shell: Any, kind: str, argument: str, said: str
) -> None:
    given = {"PushConsumer": {"listener": listen}, "TransactionProducer": {"check": listen}}.get(kind, {})
    with pytest.raises(TypeError) as raised:
        getattr(shell, kind)(ADDRESS, group="g", **given, **{argument: "x"})
    assert said in str(raised.value)


def test_an_argument_that_a_class_of_the_application_hands_on_is_told_of_the_client() -> None:
    class Own(bolide.Producer):
        def __init__(self, **given: Any) -> None:
            super().__init__(ADDRESS, **given)

    with pytest.raises(TypeError, match=r"^Producer takes no argument 'grop': did you mean group"):
        Own(grop="x")


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
        (Message("orders", b"x", properties={"": "x"}), "a property has a name, and str 'x' is given none"),
        (Message("orders", b"x", properties={" \t": "x"}), "a property has a name"),
        (
            Message("orders", b"x", properties={"TRAN_MSG": "True", "PGROUP": "g"}),
            "the property TRAN_MSG makes a message wait for the end of a transaction, and this one has none:"
            " send it with send_in_transaction of a TransactionProducer",
        ),
        (Message("orders", b"x", properties={"a": "\ud800"}), "are no text"),
        (Message("orders", b"x", tags="\ud800"), "are no text"),
        (Message("orders", b"x", keys=["\udfff"]), "are no text"),
        (Message("orders", b"x", sharding_key="\ud800"), "are no text"),
        (Message("or\ud800ders", b"x"), "letters, digits"),
        (Message("orders", "\ud800"), "the body of a message is bytes, not str"),  # type: ignore[arg-type]
        (Message("orders", b"x", sharding_key=7), "sharding_key is a text, as in 'order-42', not int 7"),  # type: ignore[arg-type]
        (Message("orders", b"x", sharding_key=""), "and not an empty one"),
        (
            Message("orders", b"x", sharding_key="a", properties={"__SHARDINGKEY": "b"}),
            "give it once, as sharding_key",
        ),
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
@pytest.mark.parametrize("how", ["send", "batch", "many", "one way", "request"])
def test_what_is_wrong_with_a_message_is_named_before_it_leaves(message: Any, said: str, how: str) -> None:
    async def scenario(c: Cluster, producer: Producer) -> None:
        sends: dict[str, Callable[[], Awaitable[object]]] = {
            "send": lambda: producer.send(message),
            "batch": lambda: producer.send_batch([Message("orders", b"good"), message]),
            "many": lambda: producer.send_many([Message("orders", b"good"), message]),
            "one way": lambda: producer.send_oneway(message),
            "request": lambda: producer.request(message),
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
        ({"queue": MessageQueue(None, "b", 0)}, "topic is a text, as in 'orders', not NoneType"),  # type: ignore[arg-type]
        ({"timeout_ms": "5"}, "timeout_ms is a whole number"),
    ],
)
def test_what_is_wrong_with_a_send_is_named(arguments: dict[str, Any], said: str) -> None:
    async def scenario(c: Cluster, producer: Producer) -> None:
        with pytest.raises((ConfigError, InvalidRequest)) as raised:
            await producer.send(Message("orders", b"x"), **arguments)
        assert said in str(raised.value)

    with_producer(scenario)


@pytest.mark.parametrize("name", ["", " \t"])
def test_a_property_without_a_name_is_refused_by_send_soon_to_a_known_topic_too(name: str) -> None:
    async def scenario(c: Cluster, producer: Producer) -> None:
        await (await producer.send_soon(Message("orders", b"good")))
        with pytest.raises(MessageIllegal, match="a property has a name"):
            await producer.send_soon(Message("orders", b"x", properties={name: "x"}))

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


def test_what_is_wrong_with_a_question_to_a_polling_consumer_is_named() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            async with LitePullConsumer(c.nameserver.address, group="g") as consumer:
                await consumer.subscribe("orders")
                wrong: list[tuple[str, Awaitable[object]]] = [
                    ("timeout_ms is a whole number", consumer.poll(timeout_ms=-1)),
                    ("messages_max is a whole number from 1", consumer.poll(messages_max=0)),
                    ("queue is a MessageQueue", consumer.seek("orders", 0)),  # type: ignore[arg-type]
                    ("offset is a whole number", consumer.seek(QUEUE, -1)),
                    ("offset is a whole number", consumer.seek(QUEUE, None)),  # type: ignore[arg-type]
                    ('to is an offset, a datetime, "first" or "last"', consumer.seek(QUEUE, "middle")),
                    ("queues is a list of MessageQueue", consumer.pause(QUEUE)),  # type: ignore[arg-type]
                    ("queue is a MessageQueue", consumer.resume("orders")),  # type: ignore[arg-type]
                    ("queues is a list of MessageQueue", consumer.assign(7)),  # type: ignore[arg-type]
                    ("queue is a MessageQueue", consumer.committed(None)),  # type: ignore[arg-type]
                    ("topic is a text", consumer.subscribe(7)),  # type: ignore[arg-type]
                    ("SQL", consumer.subscribe("orders", tags="a > 3")),
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
