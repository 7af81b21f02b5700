"""Background work survives whatever it meets: a broker without it looks healthy and is not."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from bolide.broker.app import Broker
from bolide.broker.handlers.cleaning import Cleaning
from bolide.broker.handlers.client import Clients
from bolide.broker.handlers.delay import Delays
from bolide.broker.handlers.group import Groups
from bolide.broker.handlers.lock import Locks
from bolide.broker.handlers.pull import Pulling
from bolide.broker.handlers.query import Querying
from bolide.broker.handlers.reset import Resets
from bolide.broker.handlers.runtime import Runtime
from bolide.broker.handlers.slow_consumers import SlowConsumers
from bolide.broker.handlers.stats import Stats
from bolide.broker.handlers.timer import Timers
from bolide.broker.handlers.transaction import Transactions
from bolide.broker.parts import PARTS
from bolide.model.topic import TopicConfig
from bolide.net import trouble
from bolide.net.link import Link
from tests.unit.broker.handlers.desk import QuietLink
from tests.unit.broker.stage import fill, send_request, serving
from tests.unit.net.stage import eventually


class Failing:
    """Stands in for a method: fails some times, then does what that does."""

    def __init__(self, owner: object, name: str, times: int = 3) -> None:
        self._true = getattr(owner, name)
        self._times = times
        self.calls = 0
        setattr(owner, name, self)

    def __call__(self, *args: object, **options: object) -> object:
        self.calls += 1
        if self.calls <= self._times:
            raise OverflowError("cannot convert float infinity to integer")
        return self._true(*args, **options)

    @property
    def is_over(self) -> bool:
        return self.calls > self._times


QUICK = {
    "cleanResourceInterval": "1",
    "flushConsumeQueueThoroughInterval": "1",
    "flushConsumerOffsetInterval": "1",
    "timerFlushIntervalMs": "10",
    "transactionCheckInterval": "10",
}

WORK: dict[str, Callable[[Broker], tuple[object, str]]] = {
    "checkpoints": lambda broker: (broker.state.checkpointer, "_is_due"),
    "a checkpoint": lambda broker: (broker.state.store, "checkpointing"),
    "segments ahead": lambda broker: (broker.state.store.log, "next_segment"),
    "deleted topics": lambda broker: (broker.state.store.queues.trash, "settle"),
    "answers to a slow disk": lambda broker: (broker._safety._waiters, "take_late"),
    "a full disk": lambda broker: (broker.part(Cleaning).cleaner._cleaning, "used_ratio"),
    "retention": lambda broker: (broker.part(Cleaning).cleaner, "_is_stuck"),
    "expired queues": lambda broker: (broker.part(Cleaning).cleaner._cleaning, "trim_queues"),
    "the index": lambda broker: (broker.part(Querying).indexer, "_add_part"),
    "queue entries": lambda broker: (broker.state.store, "write_behind"),
    "topics.json": lambda broker: (broker.state.topics, "pieces"),
    "subscriptionGroup.json": lambda broker: (broker.state.groups, "pieces"),
    "consumerOffset.json": lambda broker: (broker.state.offsets, "pieces"),
    "silent clients": lambda broker: (broker.state.clients, "expire"),
    "unused groups": lambda broker: (broker.part(Groups)._looking, "go"),
    "old locks": lambda broker: (broker.part(Locks).locks, "expire"),
    "half messages": lambda broker: (broker.part(Transactions).checks, "checking"),
    "delayed messages": lambda broker: (broker.part(Delays).deliveries, "deliver_some"),
    "timed messages": lambda broker: (broker.part(Timers).timer, "turn"),
    "the timer's files": lambda broker: (broker.part(Timers), "_is_due"),
    "moves of groups": lambda broker: (broker.part(Resets)._moves._line, "next"),
    "slow consumers": lambda broker: (broker.part(SlowConsumers), "look"),
    "statistics": lambda broker: (broker.state.statistics, "_look_at_broker"),
    "held pulls": lambda broker: (broker.part(Pulling).hold, "sweep"),
}


@pytest.mark.parametrize("work", WORK)
def test_background_work_goes_on_after_an_error_that_nobody_foresaw(
    work: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for module in ("handlers.client", "handlers.group", "handlers.lock"):
        monkeypatch.setattr(f"bolide.broker.{module}.SWEEP_S", 0.01)
    monkeypatch.setattr("bolide.broker.handlers.pull.SWEEP_HOLD_S", 0.01)
    monkeypatch.setattr("bolide.broker.checkpointer.LOOK_S", 0.01)
    monkeypatch.setattr("bolide.broker.cleaner.LOOK_S", 0.01)
    monkeypatch.setattr("bolide.broker.deliveries.LOOK_MS", 10)
    monkeypatch.setattr("bolide.broker.handlers.slow_consumers.LOOK_S", 0.01)
    monkeypatch.setattr("bolide.broker.statistics.SAMPLE_MS", 10)
    monkeypatch.setattr("bolide.broker.safety.DEADLINE_CHECK_S", 0.01)
    monkeypatch.setattr("bolide.broker.write_behind.RETRY_S", 0.01)
    monkeypatch.setattr("bolide.broker.table_writer.RETRY_MS", 10)
    monkeypatch.setattr(trouble, "AGAIN_S", 0.01)
    monkeypatch.setattr("bolide.store.tables.groups.CROWDED_PART", 10**9)  # unused groups are looked for

    async def main() -> None:
        async with serving(tmp_path, QUICK | {"deleteWhen": ";".join(map(str, range(24)))}) as (broker, wire):
            before = {task.get_name() for task in broker._tasks._tasks}
            await fill(wire, 1)
            failing = Failing(*WORK[work](broker))
            await fill(wire, 3)
            broker.state.topics.put(TopicConfig("V", 1, 1))
            broker.state.groups.find("g", auto_create=True)
            broker.state.offsets.commit("g", "T", 0, 1, end=3)
            if work == "deleted topics":
                broker.state.remover.delete("T")
            if work == "expired queues":
                broker.part(Cleaning).cleaner._trim_wanted.set()
            if work == "moves of groups":
                broker.part(Resets)._moves.made(cast(Link, QuietLink("10.0.0.1:5000")), asyncio.Event().wait)

            def is_over() -> bool:
                broker._safety._somebody_waits.set()
                broker.part(Timers)._wanted.set()
                return failing.is_over

            await eventually(is_over)
            assert {task.get_name() for task in broker._tasks._tasks} == before
            assert (await wire.ask(send_request(topic="U"))).code == 0

    asyncio.run(asyncio.wait_for(main(), 60))
    said = [record.name for record in caplog.records if "infinity" in record.getMessage()]
    assert len(said) == len(set(said)) > 0, "once, not every time"


def test_every_part_that_works_in_the_background_is_tried_above() -> None:
    working = {part for part in PARTS if isinstance(part, type) and "work" in vars(part)}
    assert working - {Runtime} == {
        *(Cleaning, Clients, Delays, Groups, Locks, Pulling, Querying, Resets, SlowConsumers, Stats, Timers),
        Transactions,
    }, "it works as Locks does, by `every`"
