"""A broker with delayed messages on a simulated disk: after power loss each is in exactly one place, and none is early.

Power is lost again and again while messages are sent, wait, come due and are delivered, and while the file is written
that says how far that is.  Each time another broker starts on what is left, and lives on until nothing waits any more.
"""

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from bolide.broker import deliveries
from bolide.broker.deliveries import Deliveries
from bolide.broker.handlers.delay import Delays
from bolide.model.steps import Steps
from bolide.record.decode import decode_messages
from tests.crash.disk import SimDisk
from tests.unit.broker.clean_stage import TwoClocks
from tests.unit.broker.stage import properties_of, pull_request, send_request, serving
from tests.unit.net.stage import eventually

ROOT = Path("/data/store")
LEVELS_MS = (1000, 3000, 7000)
SETTINGS = {
    "flushDiskType": "SYNC_FLUSH",
    "messageDelayLevel": "1s 3s 7s",
    "flushDelayOffsetInterval": "1",
    "mappedFileSizeCommitLog": "16384",
    "mappedFileSizeConsumeQueue": "2000",
}
ASYNC = {"flushDiskType": "ASYNC_FLUSH", "flushIntervalCommitLog": "600000"}
SENDS = 12
LOSSES = 3
"""After each step."""


class Wrong(AssertionError):
    """A message is missing, or is there twice, or early."""


async def outcome(disk: SimDisk, now_ms: int, settings: dict[str, str]) -> Counter[bytes]:
    """The messages that come of what is on a disk, when all that waits is due."""
    clock = TwoClocks()
    clock.wall_ms = now_ms
    came: Counter[bytes] = Counter()
    async with serving(ROOT, settings, disk=disk, clock=clock) as (broker, wire):
        part = broker.part(Delays).deliveries
        await eventually(lambda: part.is_ready)
        for _ in range(16):
            clock.live(500)
            while part.deliver_some():
                pass
        store = broker.state.store
        await eventually(lambda: store.reader.readable_end == store.log.end)
        offset = 0
        while True:
            answer = await wire.ask(pull_request(offset))
            if answer.code != 0:
                return came
            for message in decode_messages(answer.body, "broker-a"):
                offset = message.queue_offset + 1
                came[message.body] += 1
                level = int(message.properties["DELAY"])
                if message.store_timestamp_ms - message.born_timestamp_ms < LEVELS_MS[level - 1]:
                    raise Wrong(f"{message.body!r} is early")


def campaign(seed: int, settings: dict[str, str]) -> None:
    """One life of a broker, and every death that it might have died."""
    disk, clock, chance = SimDisk(), TwoClocks(), random.Random(seed)
    seeds = itertools.count(seed * 1000)
    sent: list[bytes] = []
    durable = 0

    async def lose_power() -> None:
        for _ in range(LOSSES):
            came = await outcome(disk.after_power_loss(random.Random(next(seeds))), clock.wall_ms, settings)
            missing = [body.split()[0] for body in sent[:durable] if not came[body]]
            twice = [body.split()[0] for body, count in came.items() if count > 1]
            if missing or twice:
                raise Wrong(f"seed {seed}: after {len(sent)} sends {missing} are missing, {twice} came twice")

    async def life() -> None:
        nonlocal durable
        async with serving(ROOT, settings, disk=disk, clock=clock) as (broker, wire):
            part = broker.part(Delays).deliveries
            await eventually(lambda: part.is_ready)
            for number in range(SENDS):
                body = b"%d " % number + chance.randbytes(chance.choice((10, 900)))
                properties = properties_of(number, DELAY=str(chance.choice((1, 1, 2, 3))))
                request = send_request(body, number, properties=properties, born_timestamp_ms=clock.wall_ms)
                assert (await wire.ask(request)).code == 0
                sent.append(body)
                if settings["flushDiskType"] == "ASYNC_FLUSH" and chance.random() < 0.5:
                    broker.state.store.sync_now()
                if broker.state.store.durability.durable == broker.state.store.log.end:
                    durable = len(sent)
                clock.live(chance.choice((0, 300, 1000)))
                part.deliver_some()
                await lose_power()
                part.tell_table()
                await broker.state.files.saved(broker.part(Delays).table)
                await lose_power()

    asyncio.run(life())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("flush", [{}, ASYNC], ids=["sync", "async"])
def test_a_delayed_message_is_in_exactly_one_place_after_power_loss(seed: int, flush: dict[str, str]) -> None:
    campaign(seed, {**SETTINGS, **flush})


def _told_before_it_is_durable(self: Deliveries) -> None:
    while self._unsafe:
        _, level, offset = self._unsafe.popleft()
        self._table.move(level.number, offset)


def _nothing_looked_up(*_: object) -> Steps[int]:
    yield
    return 0


@pytest.mark.parametrize(
    ("owner", "name", "bug"),
    [
        (Deliveries, "tell_table", _told_before_it_is_durable),
        (deliveries, "first_undelivered", _nothing_looked_up),
    ],
    ids=["told before it is durable", "delivered again after a crash"],
)
def test_a_planted_bug_is_caught(
    monkeypatch: pytest.MonkeyPatch, owner: object, name: str, bug: Callable[..., object]
) -> None:
    monkeypatch.setattr(owner, name, bug)

    def lives() -> None:
        for seed in range(6):
            campaign(seed, {**SETTINGS, **ASYNC})

    with pytest.raises(Wrong):
        lives()
