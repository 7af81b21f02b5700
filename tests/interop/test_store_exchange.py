"""One store directory served in turn by the original and by ours, both ways, after stops and after kills.

The same Java clients look at it each time.  Whatever they can see (every field of every message, the range of every
queue, what groups have committed, what a key finds) must be what they saw before, and no byte that was in the log
may change.
"""

import hashlib
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bolide.model import java_json
from bolide.model.errors import InvalidRequest
from tests.interop import ledger
from tests.interop.stage import Stage
from tests.peers import frames, java
from tests.peers.apache import Apache
from tests.peers.bolide import Bolide
from tests.peers.server import Broker, NameServer, ServerKind
from tests.peers.waiting import PATIENCE_SECONDS, Overdue, wait_until
from tests.peers.witness import Witness

pytestmark = pytest.mark.needs("java", "mvn")

SEGMENT_BYTES = 256 * 1024
QUEUES = 4
COMMIT_SECONDS = 15  # for offsets that are on their way
RECORD, BLANK = (0xDAA320A7, 0xDAA320AB), 0xCBD43194
SETTINGS = {
    "mappedFileSizeCommitLog": str(SEGMENT_BYTES),
    "mappedFileSizeConsumeQueue": "2000",
    "cleanFileForciblyEnable": "false",  # on a well filled disk both would delete small segments at once
}
BORN_ON_IPV6 = 0x10


@pytest.fixture(params=java.VERSIONS, ids=lambda version: f"apache-{version}")
def version(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@pytest.fixture
def witness(version: str, witnesses: Callable[[str], Witness]) -> Witness:
    """Clients of the same version as the original server."""
    return witnesses(version)


@dataclass
class Directory:
    """A store directory and whoever serves it at the moment; each server listens at an address of its own."""

    home: Path
    nameserver: NameServer
    broker: Broker | None = None

    @property
    def store(self) -> Path:
        return self.home / "broker" / "store"

    def serve(self, kind: ServerKind) -> Broker:
        self.broker = self.broker_of(kind)
        return self.broker.start()

    def broker_of(self, kind: ServerKind) -> Broker:
        return Broker(kind, self.home / "broker", "broker-a", [self.nameserver], SETTINGS)

    def leave(self, way: Callable[[Broker], None]) -> None:
        if self.broker is not None:
            way(self.broker)
            self.broker = None


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Directory]:
    nameserver = NameServer(Bolide(), tmp_path / "nameserver").start()
    directory = Directory(tmp_path, nameserver)
    yield directory
    directory.leave(Broker.kill)
    nameserver.stop()


@pytest.fixture
def stage(witness: Witness, directory: Directory) -> Iterator[Stage]:
    stage = Stage(witness, directory.nameserver.address)
    yield stage
    stage.close()


class View(NamedTuple):
    """All that clients see of some topics: messages by queue and offset, ranges and committed offsets, keys."""

    messages: dict[str, list[str]]
    queues: dict[str, list[dict[str, Any]]]
    found: dict[str, list[str]]


@dataclass
class Contents:
    """What a test has put into the store so far."""

    stage: Stage
    group: str
    topics: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)  # by the group, in the first topic
    keys: list[str] = field(default_factory=list)  # of some messages there
    written: Counter[str] = field(default_factory=Counter)  # messages of each topic

    def write(self, broker: Broker) -> None:
        """A topic of its own, then messages of every kind into all topics; the group has some of them waiting."""
        self.topics.append(self.stage.topic(QUEUES))
        for topic in self.topics[1:]:
            self._write_every_kind(broker, topic)
        self.unread += self._write_every_kind(broker, self.topics[0])
        self.catch_up(broker)
        self.unread = self._write_every_kind(broker, self.topics[0])
        self.keys.append(f"key-{self.unread[0]}")
        for topic in self.topics:
            self._wait_readable(broker, topic)

    def _wait_readable(self, broker: Broker, topic: str) -> None:
        """The original tells queues and index of a message a moment after it has acknowledged it."""
        wait_until(
            lambda: frames.readable(broker.address, topic, QUEUES) == self.written[topic],
            PATIENCE_SECONDS,
            f"not all messages of {topic} can be read",
        )

    def _write_every_kind(self, broker: Broker, topic: str) -> list[str]:
        kinds: list[dict[str, Any]] = [
            {"count": 30, "tags": ["red", "green"], "keys": True},
            {"count": 48, "mode": "batch", "batch": 16, "size": 300},
            {"count": 6, "size": 20_000},  # the client compresses these
            {"count": 5, "mode": "ordered", "orders": 1, "size": 9_000, "keys": True},
        ]
        productions = [self.stage.produce(topic, **options) for options in kinds]
        bodies = [body for production in productions for body in production.finish().bodies]
        if isinstance(broker.kind, Apache):  # it listens on both families at once
            bodies.append(send_over_ipv6(broker, topic, self.stage.name("over-ipv6")))
        self.written[topic] += len(bodies)
        return bodies

    def catch_up(self, broker: Broker) -> list[str]:
        """Let the group consume the first topic to its end; returns what it got."""
        consumer = self.stage.consume(self.topics[0], self.group)
        wait_until(lambda: set(self.unread) <= set(consumer.bodies), PATIENCE_SECONDS, "messages are missing")
        consumer.stop()
        self._wait_committed(broker)
        self.unread = []
        return consumer.bodies

    def _wait_committed(self, broker: Broker) -> None:
        """A leaving client sends its offsets one-way, without what its listener has just been given, and the original
        may handle a pull with older ones behind them; then nobody says the end until the group comes back."""

        def reached() -> bool:
            return has_reached_the_end(broker, self.topics[0], self.group)

        try:
            wait_until(reached, COMMIT_SECONDS, "the group has not committed all it got")
        except Overdue:
            member = self.stage.consume(self.topics[0], self.group)
            wait_until(reached, PATIENCE_SECONDS, "the group has not committed all it got after it came back")
            member.stop()

    def seen(self, home: Path) -> View:
        """Look at all topics at once: a client may take seconds to end."""
        with ThreadPoolExecutor(2 * len(self.topics)) as threads:
            messages = threads.map(lambda topic: self._messages(topic, home / f"{topic}.sweep"), self.topics)
            queues = threads.map(lambda topic: self.stage.offsets(topic, self.group), self.topics)
            return View(
                dict(zip(self.topics, messages, strict=True)),
                dict(zip(self.topics, queues, strict=True)),
                {key: self._found(key) for key in (self.keys[0], self.keys[-1])},
            )

    def _messages(self, topic: str, file: Path) -> list[str]:
        file.unlink(missing_ok=True)
        self.stage.witness.ask("sweep", topic=topic, nameserver=self.stage.nameserver, file=file)
        return file.read_text().splitlines()

    def _found(self, key: str) -> list[str]:
        """The messages that a key finds: unique key, queue and offset of each.

        A query that the original has not answered in time is told as one without messages: it is asked again.
        """
        printed = ""

        def rows() -> list[str]:
            return re.findall(r"^([0-9A-F]{32,56} +\d+ +\d+)", printed, re.MULTILINE)

        def is_found() -> bool:
            nonlocal printed
            printed = self.stage.admin(f"queryMsgByKey -t {self.topics[0]} -k {key}")
            return bool(rows())

        wait_until(is_found, PATIENCE_SECONDS, lambda: f"{key} finds nothing: {printed}")
        return rows()


@pytest.mark.parametrize("way", [Broker.stop, Broker.kill], ids=["stopped", "killed"])
def test_a_store_goes_from_the_original_to_ours_and_back_with_everything_in_it(
    version: str, stage: Stage, directory: Directory, way: Callable[[Broker], None]
) -> None:
    contents = Contents(stage, stage.name("group"))
    contents.write(directory.serve(Apache(version)))
    assert any((directory.store / "consumequeue").iterdir()), "the original keeps its queues elsewhere"
    view, log = contents.seen(directory.home), log_of(directory.store)

    for kind in (Bolide(), Apache(version)):
        directory.leave(way)
        tables = tables_of(directory.store)
        broker = directory.serve(kind)
        wait_until(lambda: routes_are_known(contents), PATIENCE_SECONDS, "topics have no route")
        assert_same_view(view, contents.seen(directory.home), offsets=way is Broker.stop)
        assert log_of(directory.store)[: len(log)] == log
        unread = contents.unread
        consumed = contents.catch_up(broker)
        if way is Broker.stop:  # a kill may forget the commits of the last seconds
            ledger.assert_each_once(unread, consumed)
        contents.write(broker)
        view, log = contents.seen(directory.home), log_of(directory.store)
        assert_tables_are_kept(
            tables,
            tables_of(directory.store, tables.keys()),
            every_field=kind.name == "bolide" or version == java.LATEST,
        )
    for topic, lines in view.messages.items():
        assert_intact_and_without_holes(topic, lines)
    assert any(record.sys_flag & BORN_ON_IPV6 for record in log), "no record was born over IPv6"


def test_two_brokers_of_different_kinds_never_share_a_directory(version: str, directory: Directory) -> None:
    for first, second in ((Bolide(), Apache(version)), (Apache(version), Bolide())):
        directory.leave(Broker.stop)
        directory.serve(first)
        with pytest.raises(RuntimeError, match="ended with code"):
            directory.broker_of(second).start()
        assert directory.broker is not None
        assert frames.answers(directory.broker.address)


# ---- looking at files and views


class Record(NamedTuple):
    """One record of the log: its place, its bytes' digest, its flags."""

    at: int
    digest: str
    sys_flag: int


def log_of(store: Path) -> list[Record]:
    """Every record of the log, by a walk that shares nothing with what is tested."""
    records: list[Record] = []
    for path in sorted((store / "commitlog").iterdir()):
        data, at = path.read_bytes(), 0
        while at + 8 <= len(data):
            size, magic = struct.unpack_from(">iI", data, at)
            if magic not in RECORD or size <= 0:
                break
            record = data[at : at + size]
            digest, flags = hashlib.sha256(record).hexdigest(), struct.unpack_from(">i", record, 36)[0]
            records.append(Record(int(path.name) + at, digest, flags))
            at += size
        else:
            raise AssertionError(f"{path} does not end")
        if magic != BLANK:
            break
    return records


def tables_of(store: Path, at_least: Set[str] = frozenset()) -> dict[str, Any]:
    """The tables of topics and groups, and whatever else was saved beside them.

    The original writes a table over the old one, again and again: for a moment it is not there or not whole.
    """
    tables: dict[str, Any] = {}

    def are_whole() -> bool:
        try:
            for path in (store / "config").glob("*.json"):
                tables[path.name] = java_json.loads(path.read_bytes())
        except (FileNotFoundError, InvalidRequest):
            return False
        return at_least <= tables.keys()

    wait_until(
        are_whole, PATIENCE_SECONDS, lambda: f"found only {sorted(tables)} whole, not {sorted(at_least)}"
    )
    return tables


def assert_tables_are_kept(before: dict[str, Any], after: dict[str, Any], *, every_field: bool) -> None:
    """Every topic and group as it was, under versions that only grow; 4.9.7 drops the fields of 5.x."""
    for name, table in (("topics", "topicConfigTable"), ("subscriptionGroup", "subscriptionGroupTable")):
        old, new = before[f"{name}.json"], after[f"{name}.json"]
        for key, entry in old[table].items():
            kept = new[table][key]
            known = entry.keys() if every_field else entry.keys() & kept.keys()
            assert {field: kept.get(field) for field in known} == {field: entry[field] for field in known}
        assert new["dataVersion"]["counter"] >= old["dataVersion"]["counter"], name
    assert before.keys() <= after.keys()


def has_reached_the_end(broker: Broker, topic: str, group: str) -> bool:
    """Asks without a client, which would join the group."""
    with frames.Connection(broker.address) as connection:
        for queue in range(QUEUES):
            place = {"topic": topic, "queueId": str(queue)}
            committed = connection.ask(frames.QUERY_CONSUMER_OFFSET, {**place, "consumerGroup": group})
            end = connection.ask(frames.GET_MAX_OFFSET, place)
            if committed.code != frames.SUCCESS or committed.fields["offset"] != end.fields["offset"]:
                return False
    return True


def routes_are_known(contents: Contents) -> bool:
    with frames.Connection(contents.stage.nameserver) as connection:
        codes = [connection.ask(frames.GET_ROUTE, {"topic": topic}).code for topic in contents.topics]
    return set(codes) == {frames.SUCCESS}


def assert_same_view(before: View, after: View, *, offsets: bool) -> None:
    """Message by message and queue by queue; what a group committed last is compared only on demand."""
    assert after.found == before.found
    assert {len(rows) for rows in before.found.values()} == {1}, before.found
    for topic, lines in before.messages.items():
        assert after.messages[topic] == lines, topic
    for topic, rows in before.queues.items():
        for old, new in zip(rows, after.queues[topic], strict=True):
            if not offsets:
                assert new["committed"] <= old["committed"]
                new = {**new, "committed": old["committed"]}
            assert new == old, topic


def assert_intact_and_without_holes(topic: str, lines: list[str]) -> None:
    following: dict[str, int] = {}
    for line in lines:
        queue, offset, _, intact, name = line.split()
        assert int(offset) == following.get(queue, 0), f"{topic}: hole before {line}"
        following[queue] = int(offset) + 1
        assert intact == "1", f"{topic}: {name} is damaged"


def send_over_ipv6(broker: Broker, topic: str, name: str) -> str:
    """One plain message from a client with an IPv6 address; returns its name."""
    with frames.Connection(f"::1:{broker.port}") as connection:
        answer = connection.ask(frames.SEND_MESSAGE_V2, frames.send_fields(topic), f"{name}|".encode())
        assert answer.code == frames.SUCCESS, answer.remark
    return name
