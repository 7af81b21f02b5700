"""The Go client 2.1.2: the trace of a message."""

from collections.abc import Iterator

import pytest

from tests.interop.stage import BareStage
from tests.peers.go import GoWitness
from tests.peers.server import ServerKind, Together
from tests.peers.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.needs("go")

TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"


@pytest.fixture
def stage(
    go_witness: GoWitness, kind: ServerKind, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BareStage]:
    """A broker with a topic for traces."""
    server = Together(kind, tmp_path_factory.mktemp("trace"), {"traceTopicEnable": "true"}).start()
    stage = BareStage(go_witness, server)
    yield stage
    stage.close()
    server.stop()


def test_the_trace_of_a_message_tells_of_its_sending_and_its_consumption(stage: BareStage) -> None:
    topic = stage.topic()
    wait_until(lambda: stage.route_numbers(TRACE_TOPIC), PATIENCE_SECONDS, f"there is no {TRACE_TOPIC}")
    reader = stage.consume(TRACE_TOPIC, stage.name("readers"))
    stage.consume(topic, stage.name("group"), trace=True)
    (body,) = stage.produce(topic, 1, trace=True, keys=True).finish().bodies

    def told() -> set[str]:
        """What the traces of this message begin with."""
        return {trace.split("\1")[0] for trace in reader.bodies if f"key-{body}" in trace}

    wait_until(lambda: told() >= {"Pub", "SubBefore"}, PATIENCE_SECONDS, lambda: f"told: {reader.bodies}")
