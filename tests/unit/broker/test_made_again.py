"""A topic is made again while the one before it is being deleted: the loop waits for no disk, nothing is mixed up."""

import asyncio
import errno
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from bolide.broker import new_topics
from bolide.broker.app import Broker
from bolide.model import java_json
from bolide.model.config_json import topic_as_json
from bolide.model.errors import StoreUnavailable
from bolide.model.response_code import ResponseCode
from bolide.model.topic import Subscription, TopicConfig
from bolide.store.disk_os import OsDisk
from bolide.store.tables import offsets
from bolide.wire.bodies.group import ConsumerData, HeartbeatData
from bolide.wire.command import Command
from bolide.wire.headers.retry import SendBack
from tests.unit.broker.stage import connect, fill, send_request, serving
from tests.unit.broker.test_delete_topic import CREATE, DELETE
from tests.unit.net.stage import DEADLINE_S, Wire, eventually, next_turn
from tests.unit.net.turns import counted_by_turn

GROUPS = 40
SETTINGS = {"flushDiskType": "ASYNC_FLUSH"}


class RemoverDisk(OsDisk):
    """Notes which folders the thread of the loop syncs, and holds up or fails what makes a deletion last."""

    def __init__(self) -> None:
        self.loop_thread = 0
        self.synced_by_loop: list[str] = []
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.was_let_go = True
        self.error = 0

    def sync_dir(self, path: str) -> None:
        if threading.get_ident() == self.loop_thread:
            self.synced_by_loop.append(path)
        if path.endswith("consumequeue"):
            self.was_let_go &= self.goes_on.wait(DEADLINE_S / 2)
            if self.error:
                raise OSError(self.error, os.strerror(self.error), path)
        super().sync_dir(path)


@asynccontextmanager
async def deleting(
    root: Path, *requests: Command, settings: Mapping[str, str] = SETTINGS
) -> AsyncIterator[tuple[Broker, Wire, RemoverDisk]]:
    """A broker whose disk does not make the deletion of T last, with these requests sent right behind that one."""
    disk = RemoverDisk()
    async with serving(root, settings, disk=disk) as (broker, wire):
        disk.loop_thread = threading.get_ident()
        await fill(wire, 3)
        disk.goes_on.clear()
        try:
            wire.send(DELETE, *requests)
            yield broker, wire, disk
        finally:
            disk.goes_on.set()


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is; tests of the wait itself have their own."""
    monkeypatch.setattr(new_topics, "FREE_WAIT_S", DEADLINE_S)


def play(act: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(act(), 3 * DEADLINE_S))


async def answers(wire: Wire, count: int) -> dict[int, Command]:
    return {answer.opaque: answer for answer in [await wire.next() for _ in range(count)]}


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
def test_pairs_of_a_deletion_and_a_send_sync_no_folder_on_the_loop(tmp_path: Path, flush: str) -> None:
    async def act() -> None:
        disk = RemoverDisk()
        async with serving(tmp_path, {"flushDiskType": flush}, disk=disk) as (_, wire):
            await fill(wire, 3)
            await eventually((tmp_path / "consumequeue" / "T").exists)
            disk.loop_thread = threading.get_ident()
            for number in range(10):
                wire.send(DELETE, send_request(opaque=100 + number))
                found = await answers(wire, 2)
                assert {answer.code for answer in found.values()} == {0}
                assert found[100 + number].fields["queueOffset"] == "0"
            assert disk.synced_by_loop == []
            disk.loop_thread = 0

    play(act)


def test_while_a_deletion_does_not_last_its_topic_waits_and_others_are_served(tmp_path: Path) -> None:
    async def act() -> None:
        async with deleting(tmp_path, send_request(b"new", 1)) as (broker, wire, disk):
            other = await connect(broker)
            await eventually(lambda: "T" not in broker.state.topics)
            await fill(other, 3, topic="U")
            end = broker.state.store.log.end
            assert "T" not in broker.state.topics
            assert broker.state.store.log.end == end, "a kill here finds no message of the new topic"
            disk.goes_on.set()
            found = await answers(wire, 2)
            assert (found[1].code, found[1].fields["queueOffset"]) == (0, "0")
            assert found[9].code == 0
            assert disk.was_let_go
            other.close()

    play(act)


BODY = java_json.dumps({"topicConfigList": [topic_as_json(TopicConfig(name, 3, 3)) for name in ("V", "T")]})


@pytest.mark.parametrize(
    ("made_by", "queues"),
    [(Command(17, CREATE, opaque=1), 4), (Command(18, {}, BODY, opaque=1), 3)],
    ids=["17", "18"],
)
def test_a_topic_made_by_hand_waits_for_the_one_before_it_and_so_does_a_send_behind_it(
    tmp_path: Path, made_by: Command, queues: int
) -> None:
    async def act() -> None:
        settings = {**SETTINGS, "autoCreateTopicEnable": "false"}
        disk = RemoverDisk()
        async with serving(tmp_path, settings, disk=disk) as (broker, wire):
            assert (await wire.ask(Command(17, CREATE, opaque=1))).code == 0
            await fill(wire, 3)
            disk.goes_on.clear()
            wire.send(DELETE, made_by, send_request(opaque=2))
            await eventually(lambda: broker.state.remover.is_leaving("T"))
            assert "T" not in broker.state.topics
            disk.goes_on.set()
            found = await answers(wire, 3)
            assert {answer.code for answer in found.values()} == {0}
            assert found[2].fields["queueOffset"] == "0"
            assert broker.state.topics.require("T").queues == queues

    play(act)


def test_sends_that_waited_for_a_name_are_stored_in_their_order_and_before_those_that_come_when_it_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also before plain ones, which would take the fast path as soon as there is a topic."""
    monkeypatch.setattr(new_topics, "SERVED_PER_TURN", 3)
    early = 200

    async def act() -> None:
        sent = iter(range(100, 5_000))
        first = [send_request(b"%d" % number, number) for number in islice(sent, early)]
        async with deleting(tmp_path, *first) as (broker, wire, disk):
            await eventually(lambda: len(broker.state.dispatcher._tasks) == early + 1)
            disk.goes_on.set()
            count = early
            while (queue := broker.state.store.queues.find("T", 0)) is None or queue.end < early:
                wire.send(send_request(b"%d" % (number := next(sent)), number))
                count += 1
                await next_turn()
            found = await answers(wire, count + 1)
            assert {answer.code for answer in found.values()} == {0}
            del found[DELETE.opaque]
            assert [int(found[number].fields["queueOffset"]) for number in sorted(found)] == list(
                range(count)
            )
            assert not broker.state.new_topics._lines

    play(act)


def test_who_has_waited_long_enough_is_told_to_try_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(new_topics, "FREE_WAIT_S", 0.01)

    async def act() -> None:
        requests = (send_request(opaque=1), Command(17, CREATE, opaque=2), Command(18, {}, BODY, opaque=3))
        async with deleting(tmp_path, *requests) as (broker, wire, disk):
            found = await answers(wire, 3)
            assert {answer.code for answer in found.values()} == {ResponseCode.SYSTEM_BUSY}
            assert "still being deleted" in (found[1].remark or "")
            assert "T" not in broker.state.topics
            assert "V" not in broker.state.topics
            disk.goes_on.set()
            assert (await wire.next()).opaque == DELETE.opaque
            assert (await wire.ask(send_request(opaque=4))).code == 0

    play(act)


def test_without_descriptors_a_topic_made_again_is_refused_until_its_deletion_lasts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(new_topics, "FREE_WAIT_S", 0.01)
    monkeypatch.setattr("bolide.broker.topic_remover.RETRY_S", 0.01)

    async def act() -> None:
        async with deleting(tmp_path) as (_, wire, disk):
            disk.error = errno.EMFILE
            disk.goes_on.set()
            assert (await wire.ask(send_request(opaque=1))).code == ResponseCode.SYSTEM_BUSY
            disk.error = 0
            assert (await wire.next()).opaque == DELETE.opaque
            answer = await wire.ask(send_request(opaque=2))
            assert (answer.code, answer.fields["queueOffset"]) == (0, "0")

    play(act)


def test_a_retry_topic_waits_too_and_no_heartbeat_makes_it_meanwhile(tmp_path: Path) -> None:
    wanted = Subscription.parse("%RETRY%g", "*", 1)
    body = HeartbeatData("one", consumers=(ConsumerData("g", subscriptions=(wanted,)),)).encode()
    back = Command(36, SendBack(0, "g", 1).encode(), opaque=1)

    async def act() -> None:
        disk = RemoverDisk()
        async with serving(tmp_path, SETTINGS, disk=disk) as (broker, wire):
            await fill(wire, 1)
            assert (await wire.ask(back)).code == 0
            assert "%RETRY%g" in broker.state.topics
            disk.loop_thread = threading.get_ident()
            disk.goes_on.clear()
            wire.send(Command(215, {"topic": "%RETRY%g"}, opaque=9), back, Command(34, {}, body, opaque=2))
            while not (answer := await wire.next()).is_response:  # the group is told that it has a member
                pass
            assert (answer.opaque, answer.code) == (2, 0)
            assert broker.state.remover.is_leaving("%RETRY%g")
            assert "%RETRY%g" not in broker.state.topics
            disk.goes_on.set()
            assert {answer.code for answer in (await answers(wire, 2)).values()} == {0}
            assert "%RETRY%g" in broker.state.topics
            assert disk.synced_by_loop == []
            disk.loop_thread = 0

    play(act)


def test_a_second_deletion_is_answered_when_the_first_one_lasts(tmp_path: Path) -> None:
    async def act() -> None:
        async with deleting(tmp_path, Command(215, {"topic": "T"}, opaque=10)) as (broker, wire, disk):
            answered = asyncio.create_task(answers(wire, 2))
            await eventually(lambda: broker.state.remover.is_leaving("T"))
            other = await connect(broker)
            await fill(other, 1, topic="U")
            assert not answered.done()
            disk.goes_on.set()
            assert {answer.code for answer in (await answered).values()} == {0}
            other.close()

    play(act)


def test_what_writes_to_a_leaving_topic_all_the_same_is_refused_and_syncs_nothing(tmp_path: Path) -> None:
    """Nothing of the broker's does; the store does not rely on that."""

    async def act() -> None:
        async with deleting(tmp_path) as (broker, wire, disk):
            await eventually(lambda: broker.state.remover.is_leaving("T"))
            with pytest.raises(StoreUnavailable, match="still being deleted"):
                broker.state.store.tail("T", 0)
            disk.goes_on.set()
            await wire.next()
            assert broker.state.store.tail("T", 0).next_offset == 0
            assert disk.synced_by_loop == []
            disk.loop_thread = 0

    play(act)


def test_offsets_of_many_groups_are_forgotten_a_slice_per_turn_before_the_name_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offsets, "DROPPED_PER_STEP", 4)

    async def act() -> None:
        async with serving(tmp_path, SETTINGS) as (broker, wire):
            await fill(wire, 3)
            table = broker.state.offsets
            for number in range(GROUPS):
                table.commit(f"g{number}", "T", 0, 3, end=3)
                table.commit(f"g{number}", "U", 0, 7, end=7)
            with counted_by_turn(offsets, "_bytes_of") as dropped:
                wire.send(DELETE, send_request(opaque=1))
                found = await answers(wire, 2)
            assert {answer.code for answer in found.values()} == {0}
            assert dropped.total >= 2 * GROUPS
            assert dropped.most <= 2 * 4  # of both tables
            assert list(table.groups_of("T")) == []
            assert {table.query(f"g{number}", "U", 0) for number in range(GROUPS)} == {7}

    play(act)


def test_a_message_of_a_topic_made_again_is_acknowledged_when_old_offsets_are_gone_from_disk(
    tmp_path: Path,
) -> None:
    """Or a kill would bring them back, and groups would skip that message."""

    async def act() -> None:
        async with serving(tmp_path, SETTINGS) as (broker, wire):
            await fill(wire, 3)
            broker.state.offsets.commit("g", "T", 0, 3, end=3)
            await broker.state.files.written(broker.state.offsets)
            file = tmp_path / "config" / "consumerOffset.json"
            assert "T@g" in file.read_text()
            wire.send(DELETE, send_request(opaque=1))
            seen: dict[int, Any] = {}
            for _ in range(2):
                answer = await wire.next()
                seen[answer.opaque] = "T@g" in file.read_text()
            assert seen == {DELETE.opaque: False, 1: False}

    play(act)


def test_a_stop_in_the_middle_of_a_deletion_leaves_no_offsets_of_its_topic(tmp_path: Path) -> None:
    async def act() -> None:
        async with deleting(tmp_path) as (broker, _, disk):
            broker.state.offsets.commit("g", "T", 0, 3, end=3)
            await eventually(lambda: broker.state.remover.is_leaving("T"))
            disk.goes_on.set()
        assert "T@g" not in (tmp_path / "config" / "consumerOffset.json").read_text()

    play(act)
