"""The offline tools on stores that the original has written: after a clean stop, after a kill, and back again."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from bolide import Message, Producer, PushConsumer, StoredMessage
from bolide.cli.main import main
from bolide.offline.survey import survey
from bolide.offline.verify import Examination, verify
from bolide.store.disk_os import OsDisk
from tests.peers import java
from tests.peers.apache import Apache
from tests.peers.bolide import Bolide
from tests.peers.server import Broker, NameServer
from tests.peers.waiting import PATIENCE_MS, PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.needs("java", "mvn")

SEGMENT_BYTES = 64 * 1024
SETTINGS = {"mappedFileSizeCommitLog": str(SEGMENT_BYTES), "mappedFileSizeConsumeQueue": "2000"}
MESSAGES = 600
TOPICS = ("tools-a", "tools-b")


@pytest.fixture(scope="module", params=java.VERSIONS, ids=lambda version: f"apache-{version}")
def apache(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    home = tmp_path_factory.mktemp("tools")
    nameserver = NameServer(Bolide(), home / "nameserver").start()  # ours starts and stops at once
    broker = Broker(Apache(request.param), home / "broker", "broker-a", [nameserver], SETTINGS)
    yield broker
    broker.kill()
    nameserver.stop()


def store_of(apache: Broker) -> Path:
    return apache.home / "store"


def nameserver_of(apache: Broker) -> str:
    return apache.nameservers[0].address


def send(apache: Broker, first: int) -> None:
    with Producer(nameserver_of(apache), group="tools", timeout_ms=PATIENCE_MS) as producer:
        for number in range(first, first + MESSAGES):
            body = b"%d" % number if number % 10 else bytes((0xFF, number % 256))
            producer.send(Message(TOPICS[number % 2], body, tags=f"t{number % 3}", keys=[f"k{number}"]))


def consume(apache: Broker, group: str, topics: Sequence[str], count: int) -> set[str]:
    """The keys of so many different messages, as a group gets them."""
    seen: list[StoredMessage] = []
    consumer = PushConsumer(nameserver_of(apache), group=group, listener=seen.extend, start_from="first")
    for topic in topics:
        consumer.subscribe(topic)

    def found() -> set[str]:
        return {message.keys[0] for message in list(seen)}

    with consumer:
        wait_until(lambda: len(found()) >= count, PATIENCE_SECONDS, lambda: f"{len(found())} of {count} came")
    return found()


def sound(found: Examination) -> Examination:
    assert found.findings.damages == []
    return found


def exported(store: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> list[str]:
    capsysbinary.readouterr()
    outcome = main(["store", "export", str(store), "--topic", TOPICS[0]])
    outcome += main(["store", "export", str(store), "--topic", TOPICS[1]])
    assert outcome == 0
    lines = map(json.loads, capsysbinary.readouterr().out.splitlines())
    return sorted(line["keys"][0] for line in lines)


def keys(count: int) -> list[str]:
    return sorted(f"k{number}" for number in range(count))


def test_stores_of_the_original_are_sound_give_every_message_and_come_back_repaired(
    apache: Broker, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """One store through its life, because starting the original takes longest."""
    apache.start()
    send(apache, 0)
    consume(apache, "readers", TOPICS[:1], MESSAGES // 2)
    apache.stop()
    look_at_clean_store(store_of(apache), capsysbinary)

    apache.start()
    send(apache, MESSAGES)
    assert survey(OsDisk(), str(store_of(apache))).is_running
    apache.kill()
    sound(verify(OsDisk(), str(store_of(apache))))
    assert exported(store_of(apache), capsysbinary) == keys(2 * MESSAGES)

    kept = lose_and_repair(store_of(apache))
    assert set(exported(store_of(apache), capsysbinary)) == kept
    apache.start()
    assert consume(apache, "afterwards", TOPICS, len(kept)) == kept
    apache.stop()
    sound(verify(OsDisk(), str(store_of(apache))))


def look_at_clean_store(store: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    found = sound(verify(OsDisk(), str(store)))
    assert found.records >= MESSAGES
    assert found.index_entries >= 2 * MESSAGES
    assert exported(store, capsysbinary) == keys(MESSAGES)
    seen = survey(OsDisk(), str(store), topic=TOPICS[0])
    assert seen.is_clean
    assert sum(queue.messages for queue in seen.queues) == MESSAGES // 2
    assert {group.group for group in seen.groups} == {"readers"}


def lose_and_repair(store: Path) -> set[str]:
    """A message of the first segment and all of the second one are lost; the keys of the others."""
    main(["store", "export", str(store), "-o", str(store / "all.jsonl")])
    lines = [json.loads(line) for line in (store / "all.jsonl").read_text().splitlines()]
    places = {line["keys"][0]: line["logOffset"] for line in lines if line["topic"] in TOPICS}
    with (store / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.seek(places["k101"] + 88)
        file.write(b"!")
    (store / "commitlog" / f"{SEGMENT_BYTES:020d}").unlink()
    assert main(["store", "repair", str(store), "--apply"]) == 0
    kept = {key for key, place in places.items() if place // SEGMENT_BYTES != 1 and key != "k101"}
    assert MESSAGES < len(kept) < len(places) - 100
    return kept
