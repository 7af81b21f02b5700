"""The Python clients of others, in an environment of their own below `.cache/peers`."""

from pathlib import Path

from tests.peers import built

CONFLUENT, AIOKAFKA, ROCKETMQ = "2.16.1", "0.14.0", "5.1.2"
PACKAGES = (
    f"confluent-kafka=={CONFLUENT}",
    f"aiokafka=={AIOKAFKA}",
    f"rocketmq-python-client=={ROCKETMQ}",
)


def python() -> Path:
    return built.python("python-clients", PACKAGES)
