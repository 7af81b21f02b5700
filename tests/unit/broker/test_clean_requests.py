"""Retention as clients and operators see it: over a socket, on a real broker (RT-03; requests 306, 316 and 329)."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from unittest import mock

import pytest

from bolide.broker.app import Broker
from bolide.broker.cleaner import local_hour
from bolide.broker.handlers import cleaning
from bolide.broker.handlers.cleaning import Cleaning
from bolide.net.slice_line import SliceLine
from bolide.store.disk_os import OsDisk
from bolide.wire.command import Command
from tests.unit.broker.clean_stage import TwoClocks
from tests.unit.broker.stage import bodies_of, fill, offsets_of, pull_request, send_request, serving
from tests.unit.net.stage import Wire, eventually
from tests.unit.net.turns import counted_by_turn

SETTINGS = {
    "mappedFileSizeCommitLog": "8192",
    "mappedFileSizeConsumeQueue": "200",
    "fileReservedTime": "0",
    "deleteFileBatchMax": "100",
    "cleanResourceInterval": "20",
    "deleteCommitLogFilesInterval": "0",
    "deleteConsumeQueueFilesInterval": "0",
    "flushIntervalCommitLog": "10",
    "diskMaxUsedSpaceRatio": "95",
    "cleanFileForciblyEnable": "false",
    "diskSpaceWarningLevelRatio": "100",
}
OLD_ENOUGH_MS = 2_000
"""fileReservedTime is 0 here, and a clock is believed to the second."""

DELETE_EXPIRED_LOG = 329
CLEAN_EXPIRED_QUEUES = 306
CLEAN_UNUSED_TOPICS = 316


def play(root: Path, act: Callable[[Broker, Wire], Awaitable[None]]) -> None:
    async def main() -> None:
        async with serving(root, {**SETTINGS, **never_by_hour()}, clock=TwoClocks()) as (broker, wire):
            await act(broker, wire)

    asyncio.run(main())


def never_by_hour() -> dict[str, str]:
    """An hour of the day that it is not, and will not be soon."""
    return {"deleteWhen": f"{(local_hour(TwoClocks().now_ms()) + 12) % 24:02d}"}


async def ask_int(wire: Wire, code: int, **fields: str) -> int:
    answer = await wire.ask(Command(code, {"topic": "T", "queueId": "0", **fields}, opaque=1))
    assert answer.code == 0
    return int(answer.fields["timestamp" if code == 32 else "offset"])


async def all_old_and_durable(broker: Broker) -> None:
    assert isinstance(broker.state.clock, TwoClocks)
    broker.state.clock.live(OLD_ENOUGH_MS)
    broker._flusher.wake()
    await eventually(lambda: broker.state.store.durability.durable == broker.state.store.log.end)
    await broker.state.checkpointer.checkpoint()


def test_deletion_moves_the_first_offset_and_pulls_below_are_sent_to_it(tmp_path: Path) -> None:
    """RT-03."""

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 300, body=bytes(100))
        await all_old_and_durable(broker)
        assert await ask_int(wire, 31) == 0
        before = await ask_int(wire, 32)
        assert (await wire.ask(Command(DELETE_EXPIRED_LOG, {}, opaque=1))).code == 0
        await eventually(lambda: len(broker.state.store.log.segments) == 1)
        first = await ask_int(wire, 31)
        assert 0 < first < 300
        assert await ask_int(wire, 30) == 300
        assert await ask_int(wire, 32) >= before
        answer = await wire.ask(pull_request(0))
        assert answer.code == 21
        assert offsets_of(answer) == (first, first, 300)
        found = await wire.ask(pull_request(first))
        assert found.code == 0
        assert len(bodies_of(found)) > 0
        assert broker.state.store.figures().log_start == broker.state.store.log.start > 0

    play(tmp_path, act)


def test_without_an_operator_s_word_nothing_is_deleted_outside_the_hour(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 300, body=bytes(100))
        await all_old_and_durable(broker)
        runs = 0

        async def counted() -> int:
            nonlocal runs
            runs += 1
            return await clean()

        clean, broker.part(Cleaning).cleaner.clean = broker.part(Cleaning).cleaner.clean, counted  # type: ignore[method-assign]
        await eventually(lambda: runs >= 3)
        assert await ask_int(wire, 31) == 0

    play(tmp_path, act)


def test_queue_files_follow_and_a_request_brings_queues_in_step_at_once(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 300, body=bytes(100))
        await all_old_and_durable(broker)
        folder = tmp_path / "consumequeue" / "T" / "0"
        await eventually(lambda: len(list(folder.iterdir())) == 30)
        await wire.ask(Command(DELETE_EXPIRED_LOG, {}, opaque=1))
        await eventually(lambda: len(broker.state.store.log.segments) == 1)
        assert (await wire.ask(Command(CLEAN_EXPIRED_QUEUES, {}, opaque=1))).code == 0
        first = await ask_int(wire, 31)
        assert min(int(path.name) for path in folder.iterdir()) == first // 10 * 200

    play(tmp_path, act)


def test_a_queue_without_messages_keeps_its_number_when_queues_are_cleaned(tmp_path: Path) -> None:
    """Unlike the original's, which begins again at 0: a group that had consumed to 5 would miss five messages."""

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 5, topic="Old")
        await fill(wire, 300, body=bytes(100))
        await all_old_and_durable(broker)
        await wire.ask(Command(DELETE_EXPIRED_LOG, {}, opaque=1))
        await eventually(lambda: len(broker.state.store.log.segments) == 1)
        await wire.ask(Command(CLEAN_EXPIRED_QUEUES, {}, opaque=1))
        assert await ask_int(wire, 31, topic="Old") == await ask_int(wire, 30, topic="Old") == 5
        assert (await wire.ask(send_request(topic="Old"))).fields["queueOffset"] == "5"

    play(tmp_path, act)


def test_queues_of_topics_that_are_gone_are_forgotten_on_request(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        for topic in ("Gone", "T"):
            await fill(wire, 5, topic=topic)
        broker.state.topics.delete("Gone")  # as after a crash, when recovery finds its records
        folders = tmp_path / "consumequeue"
        for topic in ("Gone", "T"):
            await eventually((folders / topic).exists)  # queue entries are written behind
        await wire.ask(Command(CLEAN_EXPIRED_QUEUES, {}, opaque=1))
        assert (folders / "Gone").exists()  # it has messages
        assert (await wire.ask(Command(CLEAN_UNUSED_TOPICS, {}, opaque=1))).code == 0
        assert not (folders / "Gone").exists()
        assert (folders / "T").exists()
        assert len(bodies_of(await wire.ask(pull_request(0)))) == 5

    play(tmp_path, act)


@pytest.mark.parametrize("code", [CLEAN_UNUSED_TOPICS, CLEAN_EXPIRED_QUEUES])
def test_many_topics_are_looked_through_a_slice_per_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(cleaning, "TOPICS_PER_TURN", 2)

    async def act(broker: Broker, wire: Wire) -> None:
        for number in range(8):
            await fill(wire, 1, topic=f"T{number}")
        for number in range(4, 8):
            broker.state.topics.delete(f"T{number}")
        part = broker.part(Cleaning)
        with (
            counted_by_turn(part, "_is_unknown") as looked,
            counted_by_turn(broker.state.remover, "delete") as deleted,
        ):
            assert (await wire.ask(Command(code, {}, opaque=1))).code == 0
        assert looked.total == 8
        assert looked.most <= 2
        assert deleted.total == (4 if code == CLEAN_UNUSED_TOPICS else 0)
        assert deleted.most <= 1

    play(tmp_path, act)


@pytest.mark.parametrize("code", [CLEAN_UNUSED_TOPICS, CLEAN_EXPIRED_QUEUES])
def test_requests_that_come_together_share_a_run(tmp_path: Path, code: int) -> None:
    """However busy the loop is: there all that come are in the time of a turn, and one of each connection goes on."""

    async def act(broker: Broker, wire: Wire) -> None:
        part = broker.part(Cleaning)
        run = part._unused if code == CLEAN_UNUSED_TOPICS else part._expired
        goes_on = asyncio.Event()
        clean, began = run._work, list[int]()

        async def held() -> None:
            began.append(len(began))
            await goes_on.wait()
            await clean()

        run._work = held
        with mock.patch.object(SliceLine, "_is_free", False):
            wire.send(*(Command(code, {}, opaque=number) for number in range(64)))
            await eventually(lambda: began)
            await eventually(lambda: len(broker.state.dispatcher._tasks) == 64)
            goes_on.set()
            answers = [await wire.next() for _ in range(64)]
        assert {answer.code for answer in answers} == {0}
        assert len({answer.opaque for answer in answers}) == 64
        assert len(began) <= 2, "one that was under way, one for who came meanwhile"

    play(tmp_path, act)


def test_expired_queues_of_topics_that_are_gone_go_with_the_other_request_too(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 5, topic="Gone")
        await fill(wire, 300, body=bytes(100))
        await all_old_and_durable(broker)
        await eventually((tmp_path / "consumequeue" / "Gone").exists)
        broker.state.topics.delete("Gone")
        await wire.ask(Command(DELETE_EXPIRED_LOG, {}, opaque=1))
        await eventually(lambda: len(broker.state.store.log.segments) == 1)
        await wire.ask(Command(CLEAN_EXPIRED_QUEUES, {}, opaque=1))
        assert not (tmp_path / "consumequeue" / "Gone").exists()

    play(tmp_path, act)


def test_a_full_disk_refuses_plain_sends_and_batches_with_the_original_s_code(tmp_path: Path) -> None:
    """RT-02: the fast path refuses too, and both go on as soon as the flag is gone."""

    class Measured(OsDisk):
        ratio = 0.1

        def used_ratio(self, path: str) -> float:
            return self.ratio

    disk = Measured()

    async def main() -> None:
        settings = {**SETTINGS, **never_by_hour(), "diskSpaceWarningLevelRatio": "90"}
        async with serving(tmp_path, settings, clock=TwoClocks(), disk=disk) as (broker, wire):
            await fill(wire, 10)
            disk.ratio = 0.95
            broker.part(Cleaning).cleaner.look()
            wire.send(*(send_request(opaque=number) for number in range(20)))
            answers = [await wire.next() for _ in range(20)]
            assert {answer.code for answer in answers} == {14}
            assert "disk is 95.0% full" in (answers[0].remark or "")
            assert (await wire.ask(pull_request(0))).code == 0
            disk.ratio = 0.5
            broker.part(Cleaning).cleaner.look()
            await fill(wire, 10)
            assert await ask_int(wire, 30) == 20

    asyncio.run(main())


def test_the_state_has_what_operators_look_for(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 3)
        answer = await wire.ask(Command(28, {}, opaque=1))
        assert b"earliestMessageTimeStamp" in answer.body
        assert f"commitLogDiskRatio_{tmp_path}/commitlog".encode() in answer.body

    play(tmp_path, act)


def test_nothing_is_lost_over_a_restart_after_deletion(tmp_path: Path) -> None:
    first = 0

    async def before(broker: Broker, wire: Wire) -> None:
        nonlocal first
        await fill(wire, 300, body=bytes(100))
        await all_old_and_durable(broker)
        await wire.ask(Command(DELETE_EXPIRED_LOG, {}, opaque=1))
        await eventually(lambda: len(broker.state.store.log.segments) == 1)
        first = await ask_int(wire, 31)

    async def after(broker: Broker, wire: Wire) -> None:
        assert await ask_int(wire, 31) == first
        assert (await wire.ask(send_request())).fields["queueOffset"] == "300"

    play(tmp_path, before)
    play(tmp_path, after)
