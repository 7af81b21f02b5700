"""Our own clients under load: `load_bolide VERB NAMESERVER TOPIC COUNT WARM`.

Each verb measures `COUNT` messages after `WARM` others, and has a pair in the program of a peer.
"""

import asyncio

from bolide import LitePullConsumer, Message, Producer, aio
from tests.bench.clients.watch import (
    BODY,
    IDLE_SECONDS,
    READ_AT_ONCE,
    Answer,
    Tally,
    Watch,
    main,
    resident_bytes,
)

MEMORY_LOOKS = 10
ARROW_COLUMNS = ["keys", "body", "topic", "queueId", "queueOffset", "storeTimestamp"]


def produce(nameserver: str, topic: str, count: int, warm: int) -> Answer:
    """A callback for each message, and every acknowledgement waited for."""
    with Producer(nameserver, group="bench") as producer:
        _send_soon(producer, topic, warm)
        watch = Watch()
        tally = _send_soon(producer, topic, count)
        return watch.answer(tally.stored)


def _send_soon(producer: Producer, topic: str, count: int) -> Tally:
    tally = Tally()
    callback = tally.receipt
    for _ in range(count):
        producer.send_soon(Message(topic, BODY), callback=callback)
    producer.flush()
    return tally


def consume(nameserver: str, topic: str, count: int, warm: int) -> Answer:
    """Each message is an object whose body is read; the watch begins behind the first ones."""
    with _consumer(nameserver, topic) as consumer:
        first = _read(consumer, warm)
        watch = Watch()
        return {**watch.answer(_read(consumer, count - first)), "first": first}


def consume_arrow(nameserver: str, topic: str, count: int, warm: int) -> Answer:
    """The columns that Spark's Kafka source has, as batches; the bytes of all bodies are counted."""
    with _consumer(nameserver, topic, "columns") as consumer:
        first = _read_columns(consumer, warm)
        watch = Watch()
        return {**watch.answer(_read_columns(consumer, count - first)), "first": first}


def _read_columns(consumer: LitePullConsumer, count: int) -> int:
    import pyarrow.compute as pc  # here: who measures memory does without

    seen = size = 0
    while seen < count and (batch := consumer.poll_arrow(IDLE_SECONDS * 1000, columns=ARROW_COLUMNS)):
        size += pc.sum(pc.binary_length(batch.column("body"))).as_py()
        seen += batch.num_rows
    return size // len(BODY)


def _consumer(nameserver: str, topic: str, group: str = "group") -> LitePullConsumer:
    consumer = LitePullConsumer(nameserver, group=f"{group}-{topic}", start_from="first")
    consumer.subscribe(topic)
    return consumer


def _read(consumer: LitePullConsumer, count: int) -> int:
    seen = size = 0
    while seen < count and (messages := consumer.poll(IDLE_SECONDS * 1000, READ_AT_ONCE)):
        for message in messages:
            size += len(message.body)
        seen += len(messages)
    return size // len(BODY)


def aio_produce(nameserver: str, topic: str, count: int, warm: int) -> Answer:
    async def work() -> Answer:
        async with aio.Producer(nameserver, group="bench") as producer:
            await _aio_send_soon(producer, topic, warm)
            watch = Watch()
            tally = await _aio_send_soon(producer, topic, count)
            return watch.answer(tally.stored)

    return asyncio.run(work())


async def _aio_send_soon(producer: aio.Producer, topic: str, count: int) -> Tally:
    tally = Tally()
    callback = tally.receipt
    for _ in range(count):
        await producer.send_soon(Message(topic, BODY), callback=callback)
    await producer.flush()
    return tally


def send(nameserver: str, topic: str, count: int, warm: int) -> Answer:
    """One thread that waits for each acknowledgement."""
    with Producer(nameserver, group="bench") as producer:
        for _ in range(warm):
            producer.send(Message(topic, BODY))
        watch = Watch()
        for _ in range(count):
            producer.send(Message(topic, BODY))
        return watch.answer(count)


def memory(nameserver: str, topic: str, count: int, warm: int) -> Answer:
    """What one process has in memory that sends so many messages and polls them again, after each tenth of them."""
    sizes: list[int] = []
    with Producer(nameserver, group="bench") as producer, _consumer(nameserver, topic) as consumer:
        _send_soon(producer, topic, warm)
        read = _read(consumer, warm)
        watch = Watch()
        for _ in range(MEMORY_LOOKS):
            tally = _send_soon(producer, topic, count // MEMORY_LOOKS)
            read += _read(consumer, tally.stored)
            sizes.append(resident_bytes())
        answer = watch.answer(read - warm)
    return {**answer, "most_bytes": max(sizes), "growth": sizes[-1] / sizes[0]}


if __name__ == "__main__":
    main(
        {
            "produce": produce,
            "consume": consume,
            "consume_arrow": consume_arrow,
            "aio_produce": aio_produce,
            "send": send,
            "memory": memory,
        }
    )
