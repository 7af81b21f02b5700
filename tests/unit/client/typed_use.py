"""The public API as a type checker sees it.  Nobody runs this: `make check` has mypy read it.

What must be refused has a `type: ignore`, which mypy refuses in turn when it is not needed.
"""

import asyncio
import random
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import assert_type

import bolide
from bolide import (
    ConsumeContext,
    Later,
    Message,
    MessageQueue,
    PullBlock,
    PullResult,
    SendFuture,
    SendReceipt,
    StoredMessage,
    Suspend,
    TableReceipt,
    Transaction,
    TransactionReceipt,
    aio,
)

ADDRESS = "127.0.0.1:9876"
QUEUE = MessageQueue("orders", "broker", 0)
MESSAGE = Message("orders", b"x", tags="a", keys=["k"], properties={"a": "b"}, delay=1.5, sharding_key="7")
OPTIONS: bolide.ClientOptions = {
    "instance_name": "one",
    "unit_name": "unit",
    "credentials": bolide.Credentials("key", "secret"),
    "tls": bolide.Tls(ca_file="ca.pem"),
    "hooks": [bolide.Hooks(before_send=lambda event: None)],
}

# ---- functions that an application writes --------------------------------------------------------------------


def told(receipt: SendReceipt | None, error: Exception | None) -> None: ...


def handle(messages: list[StoredMessage]) -> None: ...


def handle_or_wait(messages: list[StoredMessage]) -> Later | Suspend | None:
    return Later("busy", delay_level=3) if messages else Suspend(500)


def handle_in_context(messages: list[StoredMessage], context: ConsumeContext) -> None:
    assert_type(context.queue, MessageQueue)
    context.ack_index = 0
    context.delay_level_next = 3
    context.commit()
    context.rollback()


async def handle_awaiting(messages: list[StoredMessage]) -> None: ...


async def handle_awaiting_in_context(
    messages: list[StoredMessage], context: ConsumeContext
) -> Later | None: ...


def handle_one(message: StoredMessage) -> None: ...


def local(message: Message) -> Transaction:
    return Transaction.COMMIT


async def local_awaiting(message: Message) -> Transaction:
    return Transaction.UNKNOWN


def check(message: StoredMessage) -> Transaction:
    return Transaction.ROLLBACK


async def check_awaiting(message: StoredMessage) -> Transaction:
    return Transaction.COMMIT


def mine(queues: Sequence[MessageQueue], members: Sequence[str], own: str) -> Sequence[MessageQueue]:
    return queues[:1]


def first(queues: Sequence[MessageQueue], message: Message) -> MessageQueue:
    return queues[0]


def changed(topic: str, queues: list[MessageQueue], ours: list[MessageQueue]) -> None: ...


# ---- what a message says -----------------------------------------------------------------------------------


def read(message: StoredMessage) -> None:
    assert_type(message.body, bytes)
    assert_type(message.topic, str)
    assert_type(message.tags, str | None)
    assert_type(message.keys, tuple[str, ...])
    assert_type(message.reconsume_times, int)
    assert_type(message.body_error, str | None)
    assert_type(bolide.reply_to(message, b"x"), Message)
    message.body = b"y"  # type: ignore[misc]
    Message("orders", "text")  # type: ignore[arg-type]


# ---- blocking ------------------------------------------------------------------------------------------------


def send() -> None:
    with bolide.Producer(ADDRESS, group="g", compression="lz4", **OPTIONS) as producer:
        assert_type(producer, bolide.Producer)
        receipt = producer.send(MESSAGE, selector=bolide.by_hash("7"), timeout_ms=100)
        assert_type(receipt, SendReceipt)
        assert_type(receipt.queue, MessageQueue)
        assert_type(receipt.message_id, str)
        assert_type(receipt.recall_handle, str | None)
        assert receipt.status is bolide.SendStatus.SEND_OK
        producer.send(MESSAGE, selector=first)
        producer.send(MESSAGE, selector=bolide.by_random(random.Random(1)))
        producer.send(MESSAGE, selector=bolide.by_machine_room("a", "b"))
        producer.send(MESSAGE, queue=QUEUE)
        producer.send(MESSAGE, queue=0)  # type: ignore[arg-type]
        future = producer.send_soon(MESSAGE, callback=told)
        assert_type(future, SendFuture)
        assert_type(future.result(timeout_ms=10), SendReceipt)
        assert_type(future.exception(), Exception | None)
        assert_type(future.done(), bool)
        future.add_done_callback(lambda one: one.result())
        producer.send_soon(MESSAGE, callback=handle)  # type: ignore[arg-type]
        producer.flush()
        assert_type(producer.send_batch([MESSAGE]), list[SendReceipt])
        assert_type(producer.send_many(MESSAGE for _ in range(3)), list[SendReceipt])
        assert_type(producer.send_arrow({}, topic="orders"), TableReceipt)
        assert_type(producer.request(MESSAGE, timeout_ms=10), StoredMessage)
        assert_type(producer.recall(receipt), str)
        assert_type(producer.queues("orders"), list[MessageQueue])
        producer.send_oneway(MESSAGE)


def send_in_transaction() -> None:
    with bolide.TransactionProducer(ADDRESS, group="g", check=check, topics=["paid"]) as producer:
        receipt = producer.send_in_transaction(MESSAGE, local)
        assert_type(receipt, TransactionReceipt)
        assert_type(receipt.outcome, Transaction)
        assert_type(receipt.error, Exception | None)
        producer.send_in_transaction(MESSAGE, handle)  # type: ignore[arg-type]


def consume() -> None:
    for listener in (handle, handle_or_wait, handle_in_context):
        bolide.PushConsumer(ADDRESS, group="g", listener=listener)
    bolide.PushConsumer(ADDRESS, group="g", listener=handle_awaiting)
    bolide.PushConsumer(ADDRESS, group="g", listener=handle_awaiting_in_context)
    bolide.PushConsumer(ADDRESS, group="g", listener=handle_one)  # type: ignore[arg-type]
    for strategy in (
        "averagely",
        mine,
        bolide.ConsistentHashStrategy(),
        bolide.ConfigStrategy([QUEUE]),
        bolide.MachineRoomStrategy(["a"]),
        bolide.MachineRoomNearbyStrategy(lambda queue: queue.broker_name, lambda member: member),
    ):
        bolide.PushConsumer(ADDRESS, group="g", listener=handle, strategy=strategy)
    bolide.PushConsumer(ADDRESS, group="g", listener=handle, strategy=first)  # type: ignore[arg-type]
    with bolide.DedupWindow(key="keys") as window:
        assert_type(window.left_out, int)
        consumer = bolide.PushConsumer(
            ADDRESS, group="g", listener=window.wrap(handle), start_from=datetime.now(UTC)
        )
    consumer.subscribe("orders", tags="a || b")
    consumer.subscribe("orders", sql="price > 3")
    with consumer:
        assert_type(consumer.queues, list[MessageQueue])
        assert_type(consumer.skipped, int)
        consumer.suspend()
        consumer.resume()
        consumer.resize(3)
    consumer.run()


def poll() -> None:
    with bolide.LitePullConsumer(ADDRESS, group="g", on_queues_changed=changed) as consumer:
        assert_type(consumer.poll(timeout_ms=10, messages_max=3), list[StoredMessage])
        for message in consumer:
            assert_type(message, StoredMessage)
        consumer.assign([QUEUE])
        consumer.seek(QUEUE, datetime.now(UTC))
        consumer.seek(QUEUE, "first")
        consumer.pause([QUEUE])
        consumer.resume([QUEUE])
        consumer.commit()
        assert_type(consumer.queues, list[MessageQueue])


def pull() -> None:
    with bolide.PullConsumer(ADDRESS, group="g") as consumer:
        result = consumer.pull(QUEUE, 0, tags="a", wait_ms=10)
        assert_type(result, PullResult)
        assert_type(result.messages, list[StoredMessage])
        assert result.status is not bolide.PullStatus.FOUND
        assert_type(consumer.pull_block(QUEUE, 0), PullBlock)
        consumer.pull("orders", 0)  # type: ignore[arg-type]
        consumer.commit(QUEUE, 3)


# ---- asyncio -------------------------------------------------------------------------------------------------


async def awaited() -> None:
    async with aio.Producer(ADDRESS, group="g", **OPTIONS) as producer:
        assert_type(producer, aio.Producer)
        assert_type(await producer.send(MESSAGE), SendReceipt)
        future = await producer.send_soon(MESSAGE, callback=told)
        assert_type(future, SendFuture)
        assert_type(await future, SendReceipt)
        assert_type(await producer.send_many([MESSAGE]), list[SendReceipt])
        assert_type(await producer.send_arrow({}, topic="orders"), TableReceipt)
        assert_type(await producer.request(MESSAGE), StoredMessage)
    async with aio.TransactionProducer(ADDRESS, group="g", check=check_awaiting) as payments:
        assert_type(await payments.send_in_transaction(MESSAGE, local_awaiting), TransactionReceipt)
        assert_type(await payments.send_in_transaction(MESSAGE, local), TransactionReceipt)
    for listener in (handle_awaiting, handle_awaiting_in_context):
        async with aio.PushConsumer(ADDRESS, group="g", listener=listener, orderly=True) as push:
            await push.subscribe("orders")
    aio.PushConsumer(ADDRESS, group="g", listener=handle_one)  # type: ignore[arg-type]
    async with aio.LitePullConsumer(ADDRESS, group="g") as lite:
        assert_type(await lite.poll(), list[StoredMessage])
        async for message in lite:
            assert_type(message, StoredMessage)
    async with aio.PullConsumer(ADDRESS) as reader:
        assert_type(await reader.pull(QUEUE, 0), PullResult)
        assert_type(await reader.queues("orders"), list[MessageQueue])


def errors() -> None:
    try:
        asyncio.run(awaited())
    except bolide.PartlyStored as error:
        assert_type(error.receipts, list[SendReceipt | None])
        assert_type(error.cause, bolide.BolideError)
    except bolide.RemoteError as error:
        assert_type(error.remark, str)
        bolide.ResponseCode(error.response_code)


def hooks(call: bolide.CallEvent, sent: bolide.SendEvent, consumed: bolide.ConsumeEvent) -> None:
    assert_type(call.took_ms, int | None)
    assert_type(consumed.messages, Sequence[StoredMessage])
    raise bolide.Vetoed(str(sent.messages))
