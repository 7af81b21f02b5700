"""Timed messages of Java clients: never early, once, recalled when asked, and taken over by whoever serves the store.

Clients of 4.9.7 have no timed messages; so these tests run with 5.5.0 alone.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bolide import PullConsumer, StoredMessage
from bolide.net.clock import SystemClock
from tests.interop.stage import Stage
from tests.peers import java
from tests.peers.apache import Apache
from tests.peers.bolide import Bolide
from tests.peers.server import Broker, NameServer, ServerKind
from tests.peers.waiting import PATIENCE_SECONDS, wait_until
from tests.peers.witness import Witness, WitnessError

pytestmark = pytest.mark.needs("java", "mvn")

SETTINGS = {
    "recallMessageEnable": "true",
    "mappedFileSizeCommitLog": str(1024 * 1024),
    "cleanFileForciblyEnable": "false",
}


@pytest.fixture(scope="module")
def witness(witnesses: Callable[[str], Witness]) -> Witness:
    return witnesses(java.LATEST)


@pytest.fixture(scope="module")
def nameserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NameServer]:
    nameserver = NameServer(Bolide(), tmp_path_factory.mktemp("nameserver")).start()
    yield nameserver
    nameserver.stop()


@pytest.fixture
def stage(witness: Witness, nameserver: NameServer) -> Iterator[Stage]:
    stage = Stage(witness, nameserver.address)
    yield stage
    stage.close()


class Served:
    """A store directory and whoever serves it at the moment."""

    def __init__(self, home: Path, nameserver: NameServer) -> None:
        self._home = home
        self._nameserver = nameserver
        self.broker: Broker | None = None

    def by(self, kind: ServerKind) -> None:
        self.leave()
        self.broker = Broker(kind, self._home, "broker-a", [self._nameserver], SETTINGS).start()

    def leave(self, *, killed: bool = False) -> None:
        if self.broker is not None:
            self.broker.kill() if killed else self.broker.stop()
            self.broker = None


@pytest.fixture
def served(tmp_path: Path, nameserver: NameServer) -> Iterator[Served]:
    served = Served(tmp_path / "broker", nameserver)
    yield served
    served.leave(killed=True)


def now_ms() -> int:
    return SystemClock().now_ms()


def send(stage: Stage, topic: str, way: str, *times: int) -> tuple[list[str], list[str]]:
    """The ids and recall handles of messages that were sent with these times."""
    answer: dict[str, Any] = stage.witness.ask(
        "timed",
        nameserver=stage.nameserver,
        name=stage.name("timed"),
        topic=topic,
        way=way,
        times=",".join(map(str, times)),
    )
    return answer["ids"].split(","), answer["handles"].split(",")


def recall(stage: Stage, topic: str, handle: str) -> str:
    answer = stage.witness.ask(
        "timed", nameserver=stage.nameserver, name=stage.name("timed"), topic=topic, recall=handle
    )
    id_: str = answer["id"]
    return id_


def stored(stage: Stage, topic: str) -> dict[str, list[StoredMessage]]:
    """All messages of a topic by their id."""
    found: dict[str, list[StoredMessage]] = {}
    with PullConsumer(stage.nameserver, group=stage.name("reader")) as reader:
        for queue in reader.queues(topic):
            offset, end = int(reader.min_offset(queue)), reader.max_offset(queue)
            while offset < end:
                result = reader.pull(queue, offset)
                for message in result.messages:
                    found.setdefault(message.message_id, []).append(message)
                offset = result.next_offset
    return found


def wait_stored(stage: Stage, topic: str, count: int) -> dict[str, list[StoredMessage]]:
    wait_until(
        lambda: sum(map(len, stored(stage, topic).values())) >= count,
        PATIENCE_SECONDS,
        lambda: f"{len(stored(stage, topic))} of {count} timed messages have come",
    )
    return stored(stage, topic)


def assert_once_and_not_early(found: dict[str, list[StoredMessage]], due: dict[str, int]) -> None:
    assert set(found) == set(due)
    assert [key for key, messages in found.items() if len(messages) != 1] == []
    early = {key: due[key] - found[key][0].store_timestamp_ms for key in due}
    assert [ms for ms in early.values() if ms > 0] == []


def test_every_way_to_say_a_time_is_kept_and_a_recalled_message_never_comes(
    stage: Stage, served: Served, kind: ServerKind
) -> None:
    """TM-01, TM-02"""
    served.by(kind)
    topic, start = stage.topic(), now_ms()
    consumer = stage.consume(topic, stage.name("group"))
    due: dict[str, int] = {}
    ids, _ = send(
        stage, topic, "setDeliverTimeMs", start - 60_000, start + 2_500, start + 3_000, start + 3_001
    )
    due |= dict(zip(ids, (0, start + 2_500, start + 3_000, start + 3_001), strict=True))
    ids, _ = send(stage, topic, "setDelayTimeMs", 700, 1_800)
    due |= dict(zip(ids, (start + 700, start + 1_800), strict=True))
    ids, _ = send(stage, topic, "setDelayTimeSec", 2)
    due |= {ids[0]: start + 2_000}
    later = now_ms() + 8_000
    (recalled,), (handle,) = send(stage, topic, "setDeliverTimeMs", later)
    assert recall(stage, topic, handle) == recalled
    ids, _ = send(stage, topic, "setDeliverTimeMs", later + 1_500)  # in a later second than the recalled one
    due |= {ids[0]: later + 1_500}
    found = wait_stored(stage, topic, len(due))
    assert_once_and_not_early(found, due)
    consumer.wait_received(len(due))
    message = found[ids[0]][0]
    assert set(message.properties) >= {
        "TIMER_DELIVER_MS",
        "TIMER_OUT_MS",
        "TIMER_ENQUEUE_MS",
        "TIMER_DEQUEUE_MS",
        "REAL_TOPIC",
        "REAL_QID",
    }


def test_what_is_too_far_away_is_refused_and_what_is_over_cannot_be_recalled(
    stage: Stage, served: Served, kind: ServerKind
) -> None:
    """TM-01, TM-02"""
    served.by(kind)
    topic = stage.topic()
    with pytest.raises(WitnessError, match="CODE: 13"):
        send(stage, topic, "setDelayTimeSec", 259_201 + 60)
    _, (handle,) = send(stage, topic, "setDelayTimeMs", 1_200)
    wait_stored(stage, topic, 1)
    with pytest.raises(WitnessError, match="CODE: 604"):
        recall(stage, topic, handle)


def test_waiting_messages_change_hands_both_ways_and_each_comes_once_and_in_time(
    stage: Stage, served: Served
) -> None:
    """TM-03: the original, then ours, then the original."""
    begun = now_ms()
    served.by(Apache(java.LATEST))
    topic, start = stage.topic(), now_ms()
    boot = start - begun  # as slow as the machine is now
    near, far = boot + 4_000, 5 * boot + 12_000
    due: dict[str, int] = {}

    def sent(*times: int) -> list[str]:
        ids, handles = send(stage, topic, "setDeliverTimeMs", *(start + ms for ms in times))
        due.update(zip(ids, (start + ms for ms in times), strict=True))
        return handles

    sent(1_500, near, near + 400, near + 3_000, far, far + 1_700)
    first = sent(far + 100)
    wait_stored(stage, topic, 1)  # and so all of them are in its wheel

    served.by(Bolide())
    later = sent(near + 5_000, near + 5_300, far + 1_200, far + 1_800)
    recalled = [recall(stage, topic, handle) for handle in (*first, later[-1])]
    wait_stored(stage, topic, 6)

    served.by(Apache(java.LATEST))
    for id_ in recalled:
        del due[id_]
    found = wait_stored(stage, topic, len(due))
    assert_once_and_not_early(found, due)
    (last,), _ = send(stage, topic, "setDeliverTimeMs", now_ms() + 2_500)  # nothing more comes before it
    found = wait_stored(stage, topic, len(due) + 1)
    assert_once_and_not_early(found, due | {last: 0})
