"""A whole broker on a simulated disk: what a client has the answer to is there, whatever the disk does."""

import asyncio
import errno
import itertools
import os
import random
from pathlib import Path

import pytest

from bolide.broker.app import Broker
from bolide.store.store import MessageStore, StoreOptions
from tests.crash.disk import SimDisk
from tests.crash.ledger import read_queue
from tests.unit.broker.stage import pull_request, send_request, serving
from tests.unit.net.stage import Wire
from tests.unit.store.stage import HeldClock, body_of

ROOT = Path("/data/store")
SEGMENT_BYTES = 16_384
QUEUE_FILE_BYTES = 2000
SETTINGS = {
    "flushDiskType": "SYNC_FLUSH",
    "mappedFileSizeCommitLog": str(SEGMENT_BYTES),
    "mappedFileSizeConsumeQueue": str(QUEUE_FILE_BYTES),
}
SENDS = 24
LATE = 1000
"""The number of a request behind all others."""
ANSWER_WAIT_S = 0.15
"""How long to wait for an answer that must not come."""


def found_after_power_loss(disk: SimDisk, seed: int) -> set[bytes]:
    """Bodies that a store holds on what power loss leaves of a disk."""
    options = StoreOptions(
        str(ROOT), bytes(8), b"", 100_000, segment_bytes=SEGMENT_BYTES, queue_file_bytes=QUEUE_FILE_BYTES
    )
    store = MessageStore(disk.after_power_loss(random.Random(seed)), options, HeldClock())
    store.open()
    return {body_of(record) for record in read_queue(store, ("T", 0))[1]}


def body(number: int) -> bytes:
    return random.Random(number).randbytes(random.Random(number).choice((10, 700, 3000)))


async def answered(wire: Wire, broker: Broker) -> set[bytes]:
    """Send one by one until an answer says no, or none comes because the broker has given up."""
    taken: set[bytes] = set()
    for number in range(SENDS):
        wire.send(send_request(body(number), number))
        answer = asyncio.ensure_future(wire.next())
        failed = asyncio.ensure_future(broker.failed())
        await asyncio.wait((answer, failed), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            await asyncio.wait((answer,), timeout=ANSWER_WAIT_S)
        failed.cancel()
        if not answer.done():
            answer.cancel()
            break
        if answer.result().code == 0:
            taken.add(body(number))
    return taken


def test_an_answered_message_survives_power_loss_at_any_later_moment() -> None:
    disk = SimDisk()
    seeds = itertools.count()

    async def main() -> None:
        async with serving(ROOT, SETTINGS, disk=disk) as (_, wire):
            taken: set[bytes] = set()
            for number in range(SENDS):
                assert (await wire.ask(send_request(body(number), number))).code == 0
                taken.add(body(number))
                for _ in range(10):
                    assert taken <= found_after_power_loss(disk, next(seeds))

    asyncio.run(main())


def log_steps(disk: SimDisk) -> list[tuple[str, int]]:
    """Kinds of the steps that a broker's life takes in the commit log, each with its number."""
    steps: list[tuple[str, int]] = []

    def on_step(kind: str, path: str) -> None:
        if "commitlog" in path:
            steps.append((kind, len(steps)))

    async def main() -> None:
        async with serving(ROOT, SETTINGS, disk=disk) as (broker, wire):
            disk.on_step = on_step
            assert len(await answered(wire, broker)) == SENDS
            disk.on_step = lambda kind, path: None

    asyncio.run(main())
    return steps


def test_after_an_error_in_the_log_nothing_is_answered_that_is_not_there() -> None:
    """Every step in the commit log fails once; afterwards power is lost too."""
    steps = log_steps(SimDisk())
    assert {kind for kind, _ in steps} >= {"sync", "create", "sync_dir"}
    for _, number in steps:
        fail_one(number)


def fail_one(number: int) -> None:
    disk = SimDisk()
    count = itertools.count()
    failed: list[str] = []  # the next segment is made beside, so steps may change their places

    def on_step(step: str, path: str) -> None:
        if "commitlog" in path and next(count) == number:
            failed.append(step)
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    async def main() -> None:
        async with serving(ROOT, SETTINGS, disk=disk, stops_clean=False) as (broker, wire):
            disk.on_step = on_step
            taken = await answered(wire, broker)
            for seed in range(5):
                assert taken <= found_after_power_loss(disk, seed), (failed, number)
            if failed == ["sync"]:
                failure = await asyncio.wait_for(broker.failed(), 10)
                assert isinstance(failure, OSError)
                assert failure.errno == errno.EIO
                answer = await wire.ask(send_request(b"late", 1000))
                assert answer.code == 14
                assert "Input/output error" in (answer.remark or "")
                assert (await wire.ask(pull_request(0))).code in (0, 19)

    asyncio.run(main())
    assert disk.exists(str(ROOT / "abort")) or failed != ["sync"]


@pytest.mark.parametrize("name", ["consumequeue", "config", "checkpoint", "abort"])
def test_errors_beside_the_log_cost_no_answer(name: str) -> None:
    """Every third step fails, up to the end of the stop; whether that is clean or not, the messages are there."""
    disk = SimDisk()
    failed: list[str] = []
    count = itertools.count()
    taken: set[bytes] = set()

    def on_step(step: str, path: str) -> None:
        if name in path and next(count) % 3 == 0:
            failed.append(step)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    async def main() -> None:
        async with serving(ROOT, SETTINGS, disk=disk, stops_clean=False) as (broker, wire):
            assert (await wire.ask(send_request(b"first"))).code == 0
            disk.on_step = on_step
            taken.update(await answered(wire, broker), [b"first"])
            for seed in range(20):
                assert taken <= found_after_power_loss(disk, seed)

    asyncio.run(main())
    assert failed
    for seed in range(20):
        assert taken <= found_after_power_loss(disk, seed)
