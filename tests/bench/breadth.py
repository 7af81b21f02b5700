"""Many topics and many idle connections: does the server still serve, and what do they cost?"""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from tests.bench.descriptors import allow_descriptors
from tests.bench.scale import Scale
from tests.bench.sides import Side, Untrustworthy
from tests.bench.workloads import Figures, sync_64_threads
from tests.peers import frames

CREATE_TOPIC = 17
TOPIC_PREFIX = "wide-"
QUEUES = 8
MESSAGES_PER_QUEUE = 4
BODY = b"x" * 128
SPARE_DESCRIPTORS = 200


def many_topics_and_connections(side: Side, scale: Scale) -> Figures:
    """Throughput alone, then topics created and written to, idle connections opened, and throughput again."""
    before = _throughput(side, scale)
    topics = [f"{TOPIC_PREFIX}{number}" for number in range(scale.topics)]
    with ExitStack() as open_connections:
        writer = open_connections.enter_context(frames.Connection(side.server.broker))
        for topic in topics:
            create_topic(writer, topic)
        for topic in topics:
            _write(writer, topic)
        allow_descriptors(scale.idle_connections + SPARE_DESCRIPTORS)  # the server must cope by itself
        for _ in range(scale.idle_connections):
            idle = open_connections.enter_context(frames.Connection(side.server.broker))
            idle.ask(frames.GET_CLUSTER_INFO)  # whatever the answer: the connection is in use now
        after = _throughput(side, scale)
        _check_served(side, topics[0], topics[-1])
        queues = scale.topics * QUEUES
        return {
            "after_over_before": after / before,
            "rss_anon_mb": side.server.rss_anon_bytes() / 1e6,
            "queue_disk_kb_per_queue": _queue_disk_bytes(side.server.home) / queues / 1000,
            "disk_mb": _disk_bytes(side.server.home) / 1e6,
        }


def _throughput(side: Side, scale: Scale) -> float:
    """Like everything else the median of several: one run differs from the next by more than the topics make."""
    return median(sync_64_threads(side, scale)["per_second"] for _ in range(scale.rounds))


def create_topic(connection: frames.Connection, topic: str) -> None:
    fields = {
        "topic": topic,
        "defaultTopic": frames.TEMPLATE_TOPIC,
        "readQueueNums": str(QUEUES),
        "writeQueueNums": str(QUEUES),
        "perm": "6",
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": "0",
        "order": "false",
    }
    expect(connection.ask(CREATE_TOPIC, fields), f"create {topic}")


def _write(connection: frames.Connection, topic: str) -> None:
    for queue in range(QUEUES):
        for _ in range(MESSAGES_PER_QUEUE):
            fields = frames.send_fields(topic, queue, QUEUES)
            expect(connection.ask(frames.SEND_MESSAGE_V2, fields, BODY), f"send to {topic}")


def expect(answer: frames.Answer, what: str) -> None:
    if answer.code != frames.SUCCESS:
        raise Untrustworthy(f"{what}: code {answer.code} {answer.remark}")


def _check_served(side: Side, *topics: str) -> None:
    """A real client still reads everything written."""
    for topic in topics:
        answer = side.ask("pull", name=f"reader-{topic}", topic=topic, group="readers")
        if answer["count"] != QUEUES * MESSAGES_PER_QUEUE:
            raise Untrustworthy(f"{topic}: {answer['count']} messages, not {QUEUES * MESSAGES_PER_QUEUE}")


def _queue_disk_bytes(home: Path) -> int:
    """Of the consume queues of the many topics only."""
    return sum(_disk_bytes(folder) for folder in home.rglob(f"consumequeue/{TOPIC_PREFIX}*"))


def _disk_bytes(folder: Path) -> int:
    """Blocks that the files really occupy; a sparse file counts only what was written."""
    return sum(os.lstat(path).st_blocks * 512 for path in _files(folder))


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())
