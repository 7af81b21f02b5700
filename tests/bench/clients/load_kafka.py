"""confluent-kafka and aiokafka under load, each verb in a pair with `load_bolide`: VERB SERVERS TOPIC COUNT WARM."""

import asyncio

from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, Producer

from tests.bench.clients.watch import BODY, IDLE_SECONDS, READ_AT_ONCE, Answer, Tally, Watch, main

LINGER_MS = 5
FULL_SECONDS = 0.01


def produce(servers: str, topic: str, count: int, warm: int) -> Answer:
    producer = Producer({"bootstrap.servers": servers, "acks": "all", "linger.ms": LINGER_MS})
    _send(producer, topic, warm)
    watch = Watch()
    return watch.answer(_send(producer, topic, count).stored)


def _send(producer: Producer, topic: str, count: int) -> Tally:
    """As its guide says: callbacks are called in `poll`, behind every message."""
    tally = Tally()
    callback = tally.delivery
    for _ in range(count):
        while True:
            try:
                producer.produce(topic, BODY, on_delivery=callback)
                break
            except BufferError:  # no room
                producer.poll(FULL_SECONDS)
        producer.poll(0)
    producer.flush()
    return tally


def consume(servers: str, topic: str, count: int, warm: int) -> Answer:
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": f"group-{topic}", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    first = _read(consumer, warm)
    watch = Watch()
    answer = {**watch.answer(_read(consumer, count - first)), "first": first}
    consumer.close()
    return answer


def _read(consumer: Consumer, count: int) -> int:
    seen = size = 0
    while seen < count and (messages := consumer.consume(READ_AT_ONCE, IDLE_SECONDS)):
        for message in messages:
            if message.error() is None:
                size += len(message.value())
        seen += len(messages)
    return size // len(BODY)


def aio_produce(servers: str, topic: str, count: int, warm: int) -> Answer:
    async def work() -> Answer:
        async with AIOKafkaProducer(bootstrap_servers=servers, acks="all", linger_ms=LINGER_MS) as producer:
            await _aio_send(producer, topic, warm)
            watch = Watch()
            return watch.answer((await _aio_send(producer, topic, count)).stored)

    return asyncio.run(work())


async def _aio_send(producer: AIOKafkaProducer, topic: str, count: int) -> Tally:
    tally = Tally()

    def told(future: asyncio.Future[object]) -> None:
        tally.receipt(None, future.exception())

    for _ in range(count):
        (await producer.send(topic, BODY)).add_done_callback(told)
    await producer.flush()
    return tally


if __name__ == "__main__":
    main({"produce": produce, "consume": consume, "aio_produce": aio_produce})
