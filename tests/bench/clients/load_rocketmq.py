"""RocketMQ's own Python client under load, in a pair with `load_bolide`: send PROXY TOPIC COUNT WARM."""

from rocketmq import ClientConfiguration, Credentials, Message, Producer

from tests.bench.clients.watch import BODY, Answer, Watch, main


def send(proxy: str, topic: str, count: int, warm: int) -> Answer:
    producer = Producer(ClientConfiguration(proxy, Credentials()), (topic,))
    producer.startup()
    try:
        _send(producer, topic, warm)
        watch = Watch()
        _send(producer, topic, count)
        return watch.answer(count)
    finally:
        producer.shutdown()


def _send(producer: Producer, topic: str, count: int) -> None:
    for _ in range(count):
        message = Message()
        message.topic = topic
        message.body = BODY
        producer.send(message)


if __name__ == "__main__":
    main({"send": send})
