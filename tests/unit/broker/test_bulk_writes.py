"""Bulk writes: what a broker tells of a batch that begins again, and who may still write."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bolide.broker.handlers.write import QUEUES_PER_TURN, BulkWrites
from bolide.model.names import SCHEDULE_TOPIC
from bolide.model.topic import TopicConfig
from bolide.store.tables import writes
from bolide.wire.bodies.write import StoredRange, decode_ranges
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from bolide.wire.headers.write import BeginWrite, WriteBegun
from tests.unit.broker.stage import (
    bodies_of,
    connect,
    fill,
    properties_of,
    pull_request,
    send_request,
    serving,
)
from tests.unit.net.stage import Wire
from tests.unit.net.turns import counted_by_turn


async def begin(wire: Wire, **changes: Any) -> tuple[WriteBegun, list[StoredRange]]:
    answer = await ask(wire, **changes)
    assert answer.code == 0, answer.remark
    return WriteBegun.decode(answer.fields), decode_ranges(answer.body)


async def ask(wire: Wire, **changes: Any) -> Command:
    given = {"writer": "q", "batch": 0, "partition": 0, "topic": "T", "brokers": "broker-a", **changes}
    return await wire.ask(Command(RequestCode.BEGIN_WRITE, BeginWrite(**given).encode(), opaque=99))


def test_a_batch_finds_what_was_stored_since_it_began(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as (_, wire):
            await fill(wire, 5)
            assert await begin(wire) == (WriteBegun(True, "broker-a"), [])
            await fill(wire, 3)
            await fill(wire, 2, queue_id=1)
            found = [StoredRange("T", 0, 5, 8), StoredRange("T", 1, 0, 2)]
            assert await begin(wire) == (WriteBegun(False, "broker-a"), found)
            assert await begin(wire, partition=1) == (WriteBegun(True, "broker-a"), [])
            assert await begin(wire, partition=1, brokers="broker-b") == (
                WriteBegun(False, "broker-a,broker-b"),
                found,
            )
            assert await begin(wire, batch=1) == (WriteBegun(True, "broker-a"), [])
            assert await begin(wire, batch=1) == (WriteBegun(False, "broker-a"), [])

    asyncio.run(run())


def test_a_restart_forgets_no_batch_and_calls_nothing_fresh(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as (_, wire):
            await fill(wire, 2)
            await begin(wire, batch=7)
            await fill(wire, 2)
        async with serving(tmp_path) as (_, wire):
            for partition in (0, 1):
                begun, ranges = await begin(wire, batch=7, partition=partition)
                assert not begun.fresh
                assert ranges == [StoredRange("T", 0, 2, 4)]

    asyncio.run(run())


def test_who_begins_a_part_again_cuts_off_whoever_had_it(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as (broker, wire):
            first, second = await connect(broker), await connect(broker)
            await begin(first)
            await begin(second, partition=1)
            await fill(first, 1)
            await begin(wire)
            assert await first.closed()
            await fill(second, 1)

    asyncio.run(run())


def test_a_batch_that_is_over_is_refused(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as (_, wire):
            await begin(wire, batch=4)
            answer = await ask(wire, batch=3)
            assert answer.code != 0
            assert "batch 4 of the writer q has begun, so batch 3 is over" in (answer.remark or "")

    asyncio.run(run())


def test_a_batch_that_no_query_can_have_come_to_does_not_end_its_writer(tmp_path: Path) -> None:
    """Whoever had said so was believed, and the next batch was refused for ever."""

    async def run() -> None:
        async with serving(tmp_path) as (_, wire):
            await begin(wire, batch=4)
            answer = await ask(wire, batch=2**62)
            assert "no query comes from batch 4 to batch 4611686018427387904 in" in (answer.remark or "")
            assert (await begin(wire, batch=5))[0].fresh
            assert (await begin(wire, batch=1_000_000))[0].fresh, "what came between went to other brokers"
            assert (await begin(wire, writer="another", batch=2**62))[0].fresh

    asyncio.run(run())


def test_a_host_with_thousands_of_writers_makes_no_batch_be_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes, "WRITERS_MAX", 16)

    async def run() -> None:
        async with serving(tmp_path) as (broker, wire):
            await begin(wire)
            await fill(wire, 3)
            codes = set()
            for number in range(3):
                other = await connect(broker)
                codes |= {
                    (await ask(other, writer=f"other {number} {count}")).code == 0 for count in range(10)
                }
                other.close()
            assert codes == {True, False}
            assert await begin(await connect(broker)) == (
                WriteBegun(False, "broker-a"),
                [StoredRange("T", 0, 0, 3)],
            )

    asyncio.run(run())


def test_numbers_and_names_are_checked(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as (_, wire):
            for wrong in (
                {"batch": -1},
                {"partition": -1},
                {"writer": ""},
                {"topic": "a b"},
                {"writer": "x" * 300},
            ):
                assert (await ask(wire, **wrong)).code != 0, wrong
            many = ",".join(map(str, range(1025)))
            assert "1024 brokers at most" in ((await ask(wire, brokers=many)).remark or "")
            wire.send(send_request())
            assert (await wire.next()).code == 0

    asyncio.run(run())


def test_the_brokers_of_a_batch_are_counted_together_however_many_requests_name_them(tmp_path: Path) -> None:
    def named(first: int, count: int) -> str:
        return ",".join(f"broker-{number}" for number in range(first, first + count))

    async def run() -> None:
        async with serving(tmp_path) as (broker, wire):
            await begin(wire, brokers=named(0, 600))
            await begin(wire, brokers=named(500, 200))
            answer = await ask(wire, brokers=named(700, 400))
            assert "1024 brokers at most, not to 1100" in (answer.remark or "")
            answer = await ask(wire, brokers="x" * 32_768)
            assert "32768 characters at most" in (answer.remark or "")
            begun = broker.part(BulkWrites).table.get("q")
            assert begun is not None
            assert begun.brokers == set(named(0, 700).split(","))

    asyncio.run(run())


def test_what_waits_in_a_level_above_those_of_the_original_is_found(tmp_path: Path) -> None:
    """Also in a store whose table of topics was written with fewer levels."""
    levels = {"messageDelayLevel": " ".join(f"{number}m" for number in range(1, 21))}

    async def run() -> None:
        async with serving(tmp_path):
            pass
        async with serving(tmp_path, levels) as (_, wire):
            await begin(wire, delays=True)
            answer = await wire.ask(send_request(b"later", properties=properties_of(1, DELAY="20")))
            assert answer.code == 0, answer.remark
            _, ranges = await begin(wire, delays=True)
            assert ranges == [StoredRange(SCHEDULE_TOPIC, 19, 0, 1)]
            pull = pull_request(topic=SCHEDULE_TOPIC, queue_id=19)
            assert bodies_of(await wire.ask(pull)) == [b"later"]
        async with serving(tmp_path) as (broker, _):  # the level is gone, what waits in it is not
            assert broker.state.topics.require(SCHEDULE_TOPIC).read_queues == 20

    asyncio.run(run())


@pytest.mark.parametrize(
    "changed",
    [TopicConfig("T", 1, 4), TopicConfig("T", 1, 1), TopicConfig("T", 4, 4, perm=2)],
    ids=["fewer are read", "fewer there are", "none is read"],
)
def test_who_writes_reads_its_own_also_where_consumers_may_not(tmp_path: Path, changed: TopicConfig) -> None:
    async def run() -> None:
        async with serving(tmp_path) as (broker, wire):
            broker.state.topics.put(TopicConfig("T", 4, 4))
            await begin(wire)
            await fill(wire, 2, queue_id=3)
            broker.state.topics.put(changed)
            again = await connect(broker)
            pull = pull_request(topic="T", queue_id=3, bulk=True)
            assert (await again.ask(pull)).code != 0
            _, ranges = await begin(again)
            assert ranges == [StoredRange("T", 3, 0, 2)]
            for _ in range(3):
                assert len(bodies_of(await again.ask(pull))) == 2
            for queue_id, bulk in ((3, False), (2, True), (-1, True)):
                assert (await again.ask(pull_request(queue_id=queue_id, bulk=bulk))).code != 0
            other = await connect(broker)
            await begin(other, topic="U", partition=1)
            assert (await other.ask(pull)).code != 0  # it writes something else

    asyncio.run(run())


def test_the_queues_of_a_wide_topic_are_looked_through_a_slice_per_turn(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as (broker, wire):
            broker.state.topics.put(TopicConfig("wide", 512, 512))
            for queue_id in range(512):
                await fill(wire, 1, topic="wide", queue_id=queue_id)
            await begin(wire, topic="wide")
            await fill(wire, 2, topic="wide", queue_id=511)
            with counted_by_turn(broker.state.store.reader, "range_from") as looked:
                _, ranges = await begin(wire, topic="wide")
            assert ranges == [StoredRange("wide", 511, 1, 3)]
            assert looked.total == 512
            assert looked.most <= QUEUES_PER_TURN

    asyncio.run(run())
