"""What Java clients do by themselves and brokers only have to bear: traces, namespaces, kinds of compression."""

from collections.abc import Iterator

import pytest

from bolide import MessageQueue, PullConsumer
from bolide.model.message import COMPRESSION_MASK, SysFlag
from tests.interop import ledger
from tests.interop.stage import Stage
from tests.peers import java
from tests.peers.server import ServerKind, Together
from tests.peers.witness import Witness

pytestmark = pytest.mark.needs("java", "mvn")

TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"
LARGE = 20_000
COUNT = 20
KINDS = {
    "ZLIB": int(SysFlag.COMPRESSION_ZLIB),
    "LZ4": int(SysFlag.COMPRESSION_LZ4),
    "ZSTD": int(SysFlag.COMPRESSION_ZSTD),
}


@pytest.fixture(scope="module")
def traced(kind: ServerKind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Together]:
    server = Together(kind, tmp_path_factory.mktemp("traced"), {"traceTopicEnable": "true"}).start()
    yield server
    server.stop()


def test_a_traced_send_leaves_its_trace_in_the_topic_of_traces(witness: Witness, traced: Together) -> None:
    stage = Stage(witness, traced.nameserver)
    try:
        tracer = stage.consume(TRACE_TOPIC, stage.name("tracers"))
        assert len(stage.produce(stage.topic(), COUNT, trace="true").finish().sent) == COUNT
        tracer.wait_received(1)
        assert {message.topic for message in tracer.received} == {TRACE_TOPIC}
    finally:
        stage.close()


def test_clients_of_a_namespace_meet_each_other_and_nobody_else(stage: Stage) -> None:
    topic, group = stage.topic(), stage.name("group")
    sent = stage.produce(topic, COUNT, namespace="inner").finish().sent
    other = stage.produce(topic, COUNT).finish().sent
    inner = stage.consume(topic, group, namespace="inner")
    outer = stage.consume(topic, group)
    inner.wait_received(COUNT)
    outer.wait_received(COUNT)
    ledger.assert_each_once((one.body for one in sent), inner.bodies)
    ledger.assert_each_once((one.body for one in other), outer.bodies)


def test_bodies_of_every_kind_of_compression_are_stored_as_they_came_and_read_by_java_and_python(
    stage: Stage, server: Together
) -> None:
    """PR-04: kinds of compression; clients of 4.9 have no choice."""
    kinds = KINDS if stage.witness.version == java.LATEST else {"": KINDS["ZLIB"]}
    topics = {kind: stage.topic(queues=1) for kind in kinds}
    for kind, topic in topics.items():
        options = {"compression": kind} if kind else {}
        sent = stage.produce(topic, COUNT, size=LARGE, **options).finish().sent
        assert len(sent) == COUNT
    consumer = stage.consume(list(topics.values()), stage.name("group"))
    consumer.wait_received(COUNT * len(kinds))
    ledger.assert_intact(consumer.received)
    assert {message.size for message in consumer.received} == {LARGE}
    with PullConsumer(server.nameserver, group=stage.name("pullers")) as puller:
        for kind, topic in topics.items():
            messages = puller.pull(MessageQueue(topic, "broker-a", 0), 0).messages
            assert messages, kind
            assert {message.sys_flag & COMPRESSION_MASK for message in messages} == {kinds[kind]}
            assert {len(message.body) for message in messages} == {LARGE}
