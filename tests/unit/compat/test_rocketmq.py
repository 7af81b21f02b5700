"""Code that was written for rocketmq-client-python, with other imports and nothing else changed."""

import inspect
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import bolide
from bolide.compat.rocketmq import client, consts, exceptions
from bolide.compat.rocketmq.client import (
    ConsumeStatus,
    Message,
    MessageModel,
    Producer,
    PullConsumer,
    PushConsumer,
    ReceivedMessage,
    SendStatus,
    TransactionMQProducer,
    TransactionStatus,
)
from bolide.compat.rocketmq.consts import MessageProperty
from bolide.compat.rocketmq.exceptions import (
    ConsumerException,
    NotSupported,
    ProducerException,
    ProducerSendOrderlyFailed,
    ProducerSendSyncFailed,
    ProducerStartFailed,
    PullConsumerFetchMQFailed,
    PushConsumerStartFailed,
    RocketMQException,
)
from bolide.model.java_hash import java_hash
from bolide.testing import EmbeddedServer
from tests.peers.waiting import PATIENCE_SECONDS, wait_until

RETRY_SOON = {"messageDelayLevel": " ".join(["0s"] * 18)}


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer(settings=RETRY_SOON) as server:
        yield server


@pytest.fixture
def producer(server: EmbeddedServer) -> Iterator[Producer]:
    producer = Producer("test-group", timeout=1000 * PATIENCE_SECONDS)
    producer.set_name_server_address(server.nameserver)
    producer.start()
    yield producer
    producer.shutdown()


def a_message(topic: str, body: str | bytes = "a body") -> Message:
    msg = Message(topic)
    msg.set_keys("k1")
    msg.set_tags("paid")
    msg.set_body(body)
    msg.set_property("colour", "blå")
    return msg


def consume(
    server: EmbeddedServer, topic: str, callback: Callable[[ReceivedMessage], Any], expression: str = "*"
) -> PushConsumer:
    consumer = PushConsumer(f"group-of-{topic}")
    consumer.set_namesrv_addr(server.nameserver)
    consumer.subscribe(topic, callback, expression)
    consumer.start()
    return consumer


def test_a_message_that_is_sent_comes_to_a_callback_as_it_was(
    server: EmbeddedServer, producer: Producer
) -> None:
    result = producer.send_sync(a_message("first", b"one\0two"))
    assert (result.status, result.offset) == (SendStatus.OK, 0)
    came: list[ReceivedMessage] = []

    def callback(msg: ReceivedMessage) -> ConsumeStatus:
        came.append(msg)
        return ConsumeStatus.CONSUME_SUCCESS

    consumer = consume(server, "first", callback, "paid || refunded")
    wait_until(lambda: came, PATIENCE_SECONDS, "the message")
    consumer.shutdown()
    (msg,) = came
    assert (msg.topic, msg.id, msg.body, bytes(msg)) == ("first", result.msg_id, b"one\0two", b"one\0two")
    assert (msg.tags, msg.keys, str(msg)) == (b"paid", b"k1", "one\0two")
    assert (msg.get_property("colour"), msg[b"colour"], msg["none"]) == ("blå".encode(), "blå".encode(), b"")
    assert (msg.get_property(MessageProperty.KEYS), msg.delay_time_level) == (b"k1", 0)
    assert (msg.queue_offset, msg.reconsume_times, msg.queue_id in range(8)) == (0, 0, True)
    assert msg.born_timestamp <= msg.store_timestamp
    assert msg.commit_log_offset >= 0
    assert repr(msg) == f"<ReceivedMessage topic='first' id='{msg.id}' body=b'one\\x00two'>"
    for unknown in ("store_size", "prepared_transaction_offset"):
        with pytest.raises(NotSupported, match=unknown):
            getattr(msg, unknown)


def test_a_message_comes_again_until_its_callback_says_that_it_is_done(
    server: EmbeddedServer, producer: Producer, caplog: pytest.LogCaptureFixture
) -> None:
    """Every other answer brings it again: later, an error, and what is no answer at all."""
    producer.send_sync(a_message("again"))
    tries: list[int] = []

    def callback(msg: ReceivedMessage) -> Any:
        tries.append(msg.reconsume_times)
        if len(tries) == 1:
            return ConsumeStatus.RECONSUME_LATER
        if len(tries) == 2:
            raise RuntimeError("broken")
        return "done" if len(tries) == 3 else None

    with caplog.at_level(logging.WARNING):
        consumer = consume(server, "again", callback)
        wait_until(lambda: len(tries) == 4, PATIENCE_SECONDS, lambda: f"tries: {tries}")
        consumer.shutdown()
    assert tries == [0, 1, 2, 3]
    assert "a callback returns a ConsumeStatus, not 'done'" in caplog.text


def test_each_topic_has_its_own_callback(server: EmbeddedServer, producer: Producer) -> None:
    came: dict[str, list[str]] = {"one": [], "two": []}

    def listener(name: str) -> Callable[[ReceivedMessage], ConsumeStatus]:
        def callback(msg: ReceivedMessage) -> ConsumeStatus:
            came[name].append(msg.topic)
            return ConsumeStatus.CONSUME_SUCCESS

        return callback

    producer.send_sync(a_message("one"))
    producer.send_sync(a_message("two"))
    consumer = PushConsumer("both")
    consumer.set_name_server_address(server.nameserver)
    consumer.set_thread_count(2)
    consumer.set_message_batch_max_size(8)
    consumer.subscribe("one", listener("one"))
    with consumer:
        consumer.subscribe("two", listener("two"))
        wait_until(lambda: all(came.values()), PATIENCE_SECONDS, lambda: str(came))
    assert came == {"one": ["one"], "two": ["two"]}


def test_messages_of_a_sharding_key_lie_in_one_queue_in_order(
    server: EmbeddedServer, producer: Producer
) -> None:
    """In the queue that a Java producer would choose."""
    results = [
        producer.send_orderly_with_sharding_key(a_message("sharded", str(n)), f"k{n % 5}") for n in range(20)
    ]
    assert all(result.status == SendStatus.OK for result in results)
    with bolide.PullConsumer(server.nameserver) as reader:
        queues = reader.queues("sharded")
        found = [message for queue in queues for message in reader.pull(queue, 0).messages]
    for number in range(5):
        key = f"k{number}"
        mine = [message for message in found if message.properties["__SHARDINGKEY"] == key]
        assert {message.queue_id for message in mine} == {java_hash(key) % len(queues)}
        assert [int(message.body) for message in mine] == [number, number + 5, number + 10, number + 15]


def test_a_pull_brings_what_is_there_and_ends(server: EmbeddedServer, producer: Producer) -> None:
    for number in range(40):
        msg = a_message("pulled", str(number))
        msg.set_tags("even" if number % 2 == 0 else "odd")
        producer.send_sync(msg)
    consumer = PullConsumer("pulls")
    consumer.set_namesrv_addr(server.nameserver)
    with consumer:
        assert sorted(int(msg.body) for msg in consumer.pull("pulled", max_num=3)) == list(range(40))
        assert sorted(int(msg.body) for msg in consumer.pull("pulled", "odd")) == list(range(1, 40, 2))
        with pytest.raises(PullConsumerFetchMQFailed, match="nowhere"):
            next(consumer.pull("nowhere"))


def test_one_way_and_delayed_messages_arrive(server: EmbeddedServer, producer: Producer) -> None:
    came: dict[bytes, ReceivedMessage] = {}

    def callback(msg: ReceivedMessage) -> None:
        came[msg.body] = msg

    consumer = consume(server, "later", callback)
    producer.send_oneway(a_message("later", "at once"))
    late = a_message("later", "late")
    late.set_delay_time_level(2)
    producer.send_sync(late)
    wait_until(lambda: len(came) == 2, PATIENCE_SECONDS, lambda: f"only {came}")
    consumer.shutdown()
    assert came[b"late"].delay_time_level == 2


# ---- mistakes, and what is not there -----------------------------------------------------------------------


def test_a_producer_says_what_is_wrong_by_the_old_names(server: EmbeddedServer) -> None:
    producer = Producer("p")
    with pytest.raises(RocketMQException, match="it does not run: call start"):
        producer.send_sync(a_message("x"))
    with pytest.raises(ProducerStartFailed, match="no name server: call set_name_server_address"):
        producer.start()
    producer.set_name_server_address("nowhere")
    with pytest.raises(ProducerStartFailed, match="'nowhere' is not an address"):
        producer.start()
    producer.set_name_server_address(server.nameserver)
    with producer:
        with pytest.raises(ProducerStartFailed, match="it runs already"):
            producer.start()
        with pytest.raises(ProducerStartFailed, match="it runs already: set the group before start"):
            producer.set_group("other")
        msg = a_message("x")
        msg.set_tags("a b")
        with pytest.raises(ProducerSendSyncFailed, match="tags is one word") as raised:
            producer.send_sync(msg)
        assert isinstance(raised.value, bolide.BolideError)
        assert isinstance(raised.value.__cause__, bolide.MessageIllegal)
        with pytest.raises(ProducerSendOrderlyFailed):
            producer.send_orderly_with_sharding_key(Message("no body"), "key")
        with pytest.raises(ProducerException, match="a message is a Message of bolide"):
            producer.send_sync(bolide.Message("x", b"x"))  # type: ignore[arg-type]
        producer.set_max_message_size(3)
        with pytest.raises(ProducerSendSyncFailed, match="the body has 6 bytes; 3 are allowed"):
            producer.send_sync(a_message("x"))
    producer.shutdown()


def test_bodies_are_compressed_unless_the_level_is_zero(server: EmbeddedServer) -> None:
    sizes = []
    for level in (5, 0):
        producer = Producer("p", compress_level=level, timeout=1000 * PATIENCE_SECONDS)
        producer.set_name_server_address(server.nameserver)
        with producer, bolide.PullConsumer(server.nameserver) as reader:
            producer.send_sync(a_message(f"level-{level}", "x" * 10_000))
            blocks = (reader.pull_block(queue, 0) for queue in reader.queues(f"level-{level}"))
            sizes.append(sum(len(block.data) for block in blocks))
    assert sizes[0] < 2_000 < 10_000 < sizes[1]


def test_a_consumer_without_a_subscription_does_not_start(server: EmbeddedServer) -> None:
    consumer = PushConsumer("g")
    consumer.set_name_server_address(server.nameserver)
    with pytest.raises(PushConsumerStartFailed, match="call subscribe"):
        consumer.start()
    consumer.shutdown()


@pytest.mark.parametrize(
    ("use", "kind", "said"),
    [
        (lambda: Message(7), RocketMQException, "topic is a text or bytes, not int 7"),  # type: ignore[arg-type]
        (lambda: Message("t").set_body(None), RocketMQException, "body is a text or bytes, not NoneType"),  # type: ignore[arg-type]
        (lambda: Message("t").set_keys(b"\xff"), RocketMQException, "keys is a text in UTF-8"),
        (lambda: Producer("g", compress_level=10), ProducerException, "compress_level is a whole number"),
        (lambda: Producer("g", max_message_size=0), ProducerException, "max_message_size is a number"),
        (lambda: Producer("g").set_name_server_domain("x"), NotSupported, "set_name_server_address"),
        (lambda: PushConsumer("g", message_model=7), ConsumerException, "message_model is a MessageModel"),  # type: ignore[arg-type]
        (lambda: PushConsumer("g").subscribe("t", None), ConsumerException, "callback is a function"),  # type: ignore[arg-type]
        (lambda: PushConsumer("g").set_message_batch_max_size(0), ConsumerException, "max_size is a number"),
    ],
)
def test_what_cannot_be_meant_is_said_where_it_is_given(
    use: Callable[[], object], kind: type[RocketMQException], said: str
) -> None:
    with pytest.raises(kind, match=said):
        use()


@pytest.mark.parametrize(
    ("needs", "use"),
    [
        ("orderly", lambda: PushConsumer("g", orderly=True)),
        ("broadcasting", lambda: PushConsumer("g", message_model=MessageModel.BROADCASTING)),
        ("instance_name", lambda: PushConsumer("g").set_instance_name("i")),
    ],
)
def test_what_these_clients_cannot_do_is_said_and_not_left_out(needs: str, use: Callable[[], object]) -> None:
    parameters = inspect.signature(bolide.PushConsumer).parameters
    if needs in parameters or "options" in parameters:
        use()
        return
    with pytest.raises(NotSupported, match=needs):
        use()


def test_credentials_are_taken_where_clients_can_sign() -> None:
    if hasattr(bolide, "Credentials"):
        Producer("g").set_session_credentials("key", "secret", "")
        return
    with pytest.raises(NotSupported, match="sign no requests"):
        Producer("g").set_session_credentials("key", "secret", "")


def test_a_transaction_ends_as_its_functions_say(server: EmbeddedServer) -> None:
    if not hasattr(bolide, "TransactionProducer"):
        with pytest.raises(NotSupported, match="send no transactions"):
            TransactionMQProducer("g", lambda msg: TransactionStatus.COMMIT)
        return
    came: list[bytes] = []
    seen = threading.Event()

    def callback(msg: ReceivedMessage) -> None:
        came.append(msg.body)
        if msg.body == b"committed":
            seen.set()

    consumer = consume(server, "transacted", callback)
    producer = TransactionMQProducer("t", lambda msg: TransactionStatus.ROLLBACK)
    producer.set_name_server_address(server.nameserver)
    with producer:
        for name, status in (
            ("rolled back", TransactionStatus.ROLLBACK),
            ("committed", TransactionStatus.COMMIT),
        ):
            told: list[Any] = []

            def local(msg: ReceivedMessage, args: Any, status: Any = status, told: list[Any] = told) -> Any:
                told.extend((msg.body, msg.tags, msg.keys, args))
                return status

            result = producer.send_message_in_transaction(a_message("transacted", name), local, {"a": 1})
            assert result.status == SendStatus.OK
            assert told == [name.encode(), b"paid", b"k1", {"a": 1}]
        assert seen.wait(PATIENCE_SECONDS)
    consumer.shutdown()
    assert came == [b"committed"]


def test_the_names_are_those_that_such_code_imports() -> None:
    wanted = "Message MessageModel Producer PullConsumer PushConsumer ReceivedMessage RecvMessage SendResult SendStatus"
    assert set(wanted.split()) <= set(client.__all__)
    assert all(hasattr(client, name) for name in client.__all__)
    assert consts.MessageProperty.UNIQ_CLIENT_MESSAGE_ID_KEYIDX.value == "UNIQ_KEY"
    kinds = [
        kind
        for _, kind in inspect.getmembers(exceptions, inspect.isclass)
        if kind.__module__ == exceptions.__name__
    ]
    assert kinds
    assert all(issubclass(kind, RocketMQException) and issubclass(kind, bolide.BolideError) for kind in kinds)
