"""Messages by key over a socket (check-list AD-01), and that nobody else waits for them to be indexed."""

import asyncio
import errno
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from bolide.broker import indexer
from bolide.broker.app import Broker
from bolide.broker.handlers.query import Querying
from bolide.broker.indexer import Found
from bolide.model.limits import QUESTIONS_OF_ONE_MAX
from bolide.net.link import Link
from bolide.store.disk import File
from bolide.store.index_query import Lookup
from bolide.wire.command import Command
from tests.unit.broker.stage import batch_of, bodies_of, connect, properties_of, send_request, serving
from tests.unit.net.stage import Wire, eventually
from tests.unit.store.stage import WatchedDisk, WatchedFile

FOREVER_MS = 2**63 - 1


def query(key: str, opaque: int = 1, *, topic: str = "T", count: int = 64, **fields: Any) -> Command:
    base = {"topic": topic, "key": key, "maxNum": count, "beginTimestamp": 0, "endTimestamp": FOREVER_MS}
    return Command(12, {name: str(value) for name, value in (base | fields).items()}, opaque=opaque)


def keyed(number: int, body: bytes = b"x", **pairs: str) -> Command:
    return send_request(body, number, properties=properties_of(number, **pairs))


def play(root: Path, act: Any, settings: dict[str, str] | None = None, **parts: Any) -> None:
    async def run() -> None:
        async with serving(root, settings, **parts) as (broker, wire):
            await act(broker, wire)

    asyncio.run(run())


async def stored(wire: Wire, *requests: Command) -> None:
    wire.send(*requests)
    for _ in requests:
        assert (await wire.next()).code == 0


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
def test_a_message_is_found_as_soon_as_it_is_acknowledged(tmp_path: Path, flush: str) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        for number in range(20):
            await stored(wire, keyed(number, b"b%d" % number, KEYS=f"k{number} all", TAGS="A"))
            answer = await wire.ask(query(f"k{number}"))
            assert (answer.code, bodies_of(answer)) == (0, [b"b%d" % number])
        assert len(bodies_of(await wire.ask(query("all")))) == 20
        assert len(bodies_of(await wire.ask(query("A", indexType="T")))) == 20
        assert (await wire.ask(query("A"))).code == 22

    play(tmp_path, act, {"flushDiskType": flush})


def test_messages_of_a_batch_are_found_one_by_one(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await stored(wire, send_request(batch_of(b"one", b"two", KEYS="k"), 1, code=320, batch=True))
        unique = properties_of(1).split("\x01")[1].split("\x02")[0]
        assert bodies_of(await wire.ask(query("k"))) == [b"one", b"two"]
        assert bodies_of(await wire.ask(query(unique, _UNIQUE_KEY_QUERY="true"))) == [b"two"]

    play(tmp_path, act)


def test_the_newest_64_are_given_and_32_for_a_unique_key(tmp_path: Path) -> None:
    """RocketMQ's limits, whatever is asked for."""

    async def act(broker: Broker, wire: Wire) -> None:
        await stored(wire, *(keyed(number, b"%d" % number, KEYS="all") for number in range(100)))
        for count, expected in ((1000, 64), (64, 64), (3, 3)):
            bodies = bodies_of(await wire.ask(query("all", count=count)))
            assert bodies == [b"%d" % number for number in range(100 - expected, 100)]
        bodies = bodies_of(await wire.ask(query("all", count=1, _UNIQUE_KEY_QUERY="true")))
        assert bodies == [b"%d" % number for number in range(68, 100)]
        for count in (0, -5):
            assert (await wire.ask(query("all", count=count))).code == 22

    play(tmp_path, act)


def test_every_answer_says_how_far_the_index_is(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        nothing = await wire.ask(query("k"))
        assert (nothing.code, nothing.body) == (22, b"")
        assert nothing.fields == {"indexLastUpdateTimestamp": "0", "indexLastUpdatePhyoffset": "0"}
        await stored(wire, keyed(1, KEYS="k"), keyed(2))
        last = (await wire.ask(query("k"))).fields
        second = broker.state.store.queues.get("T", 0).entry(1)
        assert second is not None
        assert last["indexLastUpdatePhyoffset"] == str(second[0])
        assert last == (await wire.ask(query("other"))).fields
        record = await wire.ask(Command(33, {"offset": last["indexLastUpdatePhyoffset"]}, opaque=9))
        assert (record.code, bodies_of(record)) == (0, [b"x"])

    play(tmp_path, act)


def test_a_query_without_its_fields_is_refused(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        request = query("k")
        del request.fields["beginTimestamp"]
        answer = await wire.ask(request)
        assert (answer.code, answer.remark) == (29, "the required field beginTimestamp is missing")

    play(tmp_path, act)


def test_a_key_that_no_message_can_have_is_refused_before_it_is_hashed(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        answer = await wire.ask(query("k" * 32_768))
        assert (answer.code, answer.remark) == (29, "the key has 32768 characters; 32767 are allowed")
        assert (await wire.ask(query("k" * 32_767))).code == 22

    play(tmp_path, act)


def test_without_an_index_a_query_says_why_it_finds_nothing(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await stored(wire, keyed(1, KEYS="k"))
        answer = await wire.ask(query("k"))
        assert answer.code == 22
        assert "messageIndexEnable" in (answer.remark or "")
        assert not (tmp_path / "index").exists()

    play(tmp_path, act, {"messageIndexEnable": "false"})


def test_messages_are_indexed_without_being_asked_for_and_found_after_a_restart(tmp_path: Path) -> None:
    async def first(broker: Broker, wire: Wire) -> None:
        await stored(wire, *(keyed(number, KEYS="k") for number in range(10)))
        assert broker.state.store.index is not None
        index = broker.state.store.index
        await eventually(lambda: index.position == broker.state.store.log.end)

    async def second(broker: Broker, wire: Wire) -> None:
        assert broker.state.store.index is not None
        assert broker.state.store.index.position == broker.state.store.log.end
        assert len(bodies_of(await wire.ask(query("k")))) == 10

    play(tmp_path, first)
    play(tmp_path, second)


def test_too_many_waiting_questions_are_refused_as_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer, "QUESTIONS_OF_ONE_MAX", 1)

    async def act(broker: Broker, wire: Wire) -> None:
        await stored(wire, keyed(1, KEYS="k"))
        wire.send(*(query("k", opaque) for opaque in range(3)))
        answers = [await wire.next() for _ in range(3)]
        assert sorted(answer.code for answer in answers) == [0, 2, 2]
        assert (await wire.ask(query("k"))).code == 0

    play(tmp_path, act)


def test_answers_to_a_client_that_does_not_read_stay_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await stored(wire, *(keyed(number, bytes(60_000), KEYS="k") for number in range(40)))
        indexer = broker.part(Querying).indexer
        find, finished = indexer.find, []

        async def counted(link: Link, lookup: Lookup) -> Found:
            found = await find(link, lookup)
            finished.append(lookup)
            return found

        monkeypatch.setattr(indexer, "find", counted)
        wire.send(*(query("k", opaque) for opaque in range(60)))
        await eventually(lambda: len(finished) == 60)
        codes = [(await wire.next()).code for _ in range(60)]
        assert set(codes) == {0, 2}
        assert codes.count(0) < 20  # each has 2.4 MB
        assert (await wire.ask(query("k"))).code == 0

    play(tmp_path, act, {"mappedFileSizeCommitLog": str(16 * 1024 * 1024)})


# ---- one after the other -------------------------------------------------------------------------------------


def test_who_asks_once_is_not_behind_all_that_another_connection_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index thread stands still until all of them have come."""

    async def act(broker: Broker, wire: Wire) -> None:
        await stored(wire, keyed(1, KEYS="many once"))
        await wire.ask(query("many"))
        other, indexer, gate = await connect(broker), broker.part(Querying).indexer, threading.Event()
        find, begun, finished = indexer.find, [], []

        async def noted(*asked: Any) -> Found:
            begun.append(asked[-1].word)
            found = await find(*asked)
            finished.append(asked[-1].word)
            return found

        monkeypatch.setattr(indexer, "find", noted)
        indexer._thread.submit(gate.wait, 20)
        try:
            wire.send(*(query("many", opaque) for opaque in range(40)))
            await eventually(lambda: len(begun) == 40)
            other.send(query("once"))
            await eventually(lambda: "once" in begun)
        finally:
            gate.set()
        assert (await other.next()).code == 0
        assert finished.index("once") <= 3

    play(tmp_path, act)


def test_a_connection_with_many_questions_leaves_places_to_others(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await stored(wire, keyed(1, KEYS="k"))
        await wire.ask(query("k"))
        other, indexer, gate = await connect(broker), broker.part(Querying).indexer, threading.Event()
        indexer._thread.submit(gate.wait, 20)
        try:
            wire.send(*(query("k", opaque) for opaque in range(1000)))
            refused = [await wire.next() for _ in range(1000 - QUESTIONS_OF_ONE_MAX)]
            assert {answer.code for answer in refused} == {2}
            other.send(query("k"))
        finally:
            gate.set()
        assert (await other.next()).code == 0

    play(tmp_path, act)


# ---- nobody waits --------------------------------------------------------------------------------------------


class IndexDisk(WatchedDisk):
    """A disk on which files of the index are full, or slow, while others are not."""

    def __init__(self) -> None:
        super().__init__()
        self.index_full = False
        self.gate = threading.Event()
        self.gate.set()

    def create(self, path: str, size: int, *, reserve: bool) -> File:
        file = super().create(path, size, reserve=reserve)
        return _IndexFile(file, self) if "/index/" in path else file


class _IndexFile(WatchedFile):
    def __init__(self, file: File, disk: IndexDisk) -> None:
        super().__init__(file, disk, reserved=False)
        self._index_disk = disk

    def reserve(self, at: int, count: int) -> None:
        assert self._index_disk.gate.wait(20)
        if self._index_disk.index_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().reserve(at, count)


def test_sends_are_answered_while_the_index_waits_for_its_disk(tmp_path: Path) -> None:
    disk = IndexDisk()
    disk.gate.clear()

    async def act(broker: Broker, wire: Wire) -> None:
        try:
            for number in range(5):
                await stored(wire, keyed(number, KEYS="k"))
            wire.send(query("k", 77))
            await stored(wire, keyed(9, KEYS="k"))
        finally:
            disk.gate.set()
        answer = await wire.next()
        assert (answer.opaque, answer.code) == (77, 0)
        assert len(bodies_of(answer)) in (5, 6)

    play(tmp_path, act, disk=disk)


def test_on_a_full_disk_indexing_pauses_and_catches_up_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(indexer, "RETRY_MS", 10)
    disk = IndexDisk()
    disk.index_full = True

    async def act(broker: Broker, wire: Wire) -> None:
        for number in range(5):
            await stored(wire, keyed(number, KEYS="k"))
            assert (await wire.ask(query("k"))).code == 22
        assert caplog.text.count("indexing messages pauses") == 1
        disk.index_full = False
        assert broker.state.store.index is not None
        index = broker.state.store.index
        await eventually(lambda: index.position == broker.state.store.log.end)
        assert len(bodies_of(await wire.ask(query("k")))) == 5
        await eventually(
            lambda: "indexing messages pauses: the trouble has passed, it works again" in caplog.text
        )

    play(tmp_path, act, disk=disk)
