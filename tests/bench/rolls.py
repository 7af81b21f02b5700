"""How long answers take while the log goes from segment to segment, and while topics come and go beside it."""

import itertools
import json
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from tests.bench.breadth import create_topic, expect
from tests.bench.memory import touch_free_memory
from tests.bench.scale import Scale
from tests.bench.sides import ANSWER_SECONDS, Side, Untrustworthy
from tests.bench.workloads import Figures, check_stored, latencies
from tests.peers import frames
from tests.peers.waiting import wait_until

SEGMENT_BYTES = 64 * 1024**2
SETTINGS = {"flushDiskType": "ASYNC_FLUSH", "mappedFileSizeCommitLog": str(SEGMENT_BYTES)}
BODY_BYTES = 1024
"""Large enough that ten segments take seconds, small enough that the broker and not the network is at work."""

GET_BROKER_RUNTIME_INFO = 28
DELETE_TOPIC_IN_BROKER = 215
DELETE_TOPIC_IN_NAMESRV = 216
POLL_SECONDS = 0.2

_names = itertools.count(1)


def segment_rolls(side: Side, scale: Scale) -> Figures:
    """One thread waits for each of its answers, 64 do; the warm-up has the same senders and counts for nothing."""
    return _rolls(side, scale, topics=0)


def segment_rolls_while_topics_come_and_go(side: Side, scale: Scale) -> Figures:
    """The same; beside it topics are made, written to once and deleted, one after the other as fast as it goes."""
    return _rolls(side, scale, topics=scale.passing_topics)


def _rolls(side: Side, scale: Scale, *, topics: int) -> Figures:
    topic = side.topic()
    touch_free_memory()
    with _sending(side, topic, scale) as answer:
        first = _segment(side)
        began = time.monotonic()
        _let_topics_pass(side, topics)
        passing_s = time.monotonic() - began
        wait_until(
            lambda: answer.done() or _segment(side) - first >= scale.segment_rolls,
            *(ANSWER_SECONDS, "the log does not roll", POLL_SECONDS),
        )
        rolls = _segment(side) - first
    sent = answer.result(ANSWER_SECONDS)
    if rolls < scale.segment_rolls:
        raise Untrustworthy(f"{side.name}: the load ended after {rolls} rolls {sent['error']}")
    check_stored(side, topic, sent)
    return {
        "per_second": sent["per_second"],
        "failed": sent["failed"],
        "rolls": rolls,
        "passing_seconds": passing_s,
        **latencies(sent),
    }


@contextmanager
def _sending(side: Side, topic: str, scale: Scale) -> Iterator["Future[dict[str, Any]]"]:
    """64 senders at work and warm; they end with the block."""
    name = f"rolls-{next(_names)}"
    load = {"mode": "sync", "threads": 64, "topic": topic, "size": BODY_BYTES, "name": name}
    answer = side.begin("load-send", warm=scale.warm_seconds, seconds=ANSWER_SECONDS, **load)
    try:
        if not side.load.wait_events(
            name, lambda: answer.done() or bool(side.load.events(name, "warm")), ANSWER_SECONDS
        ):
            raise Untrustworthy(f"{side.name}: the senders do not get warm")
        yield answer
    finally:
        side.load.ask("stop", name=name)


def _segment(side: Side) -> int:
    """The number of the segment that is written to."""
    with frames.Connection(side.server.broker) as connection:
        answer = connection.ask(GET_BROKER_RUNTIME_INFO)
    expect(answer, "state of the broker")
    return int(json.loads(answer.body)["table"]["commitLogMaxOffset"]) // SEGMENT_BYTES


def _let_topics_pass(side: Side, count: int) -> None:
    """What `mqadmin` asks for: the broker deletes a topic, and the name server forgets it."""
    with (
        frames.Connection(side.server.broker) as broker,
        frames.Connection(side.server.nameserver) as nameserver,
    ):
        for number in range(count):
            topic = f"passing-{number}"
            create_topic(broker, topic)
            expect(broker.ask(frames.SEND_MESSAGE_V2, frames.send_fields(topic), b"x"), f"send to {topic}")
            expect(broker.ask(DELETE_TOPIC_IN_BROKER, {"topic": topic}), f"delete {topic}")
            expect(nameserver.ask(DELETE_TOPIC_IN_NAMESRV, {"topic": topic}), f"forget {topic}")
