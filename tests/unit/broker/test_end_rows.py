"""Ends of transactions that nobody waits for: those of one read are stored together, and as if each had come alone."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bolide.model.errors import StoreUnavailable
from bolide.model.limits import REQUESTS_PER_TURN
from bolide.net.dispatch import Dispatcher
from bolide.record.message_id import parse_offset_id
from bolide.store.new_message import NewMessage
from bolide.wire.codes import Need
from bolide.wire.command import Command
from tests.unit.broker.stage import send_request
from tests.unit.broker.test_guard import House
from tests.unit.broker.transaction_stage import (
    COMMIT,
    MAKERS,
    ROLLBACK,
    UNKNOWN,
    Half,
    Play,
    half_properties,
    play,
)
from tests.unit.net.stage import eventually
from tests.unit.net.turns import counted_by_turn

PREPARED = 4


def one_way(half: Half, verdict: int = COMMIT, **fields: str) -> Command:
    named = {
        "producerGroup": MAKERS,
        "tranStateTableOffset": str(half.offset),
        "commitLogOffset": str(half.log_offset),
        "commitOrRollback": str(verdict),
        "fromTransactionCheck": "false",
        "msgId": "x",
    }
    return Command(37, {**named, **fields}, opaque=7, flag=2)


def has_grown(on: Play, before: int) -> bool:
    return on.broker.state.store.log.end > before


async def bodies(on: Play) -> list[bytes]:
    return [message.body for message in await on.stored()]


async def ended(on: Play, *requests: Command) -> None:
    """One read with these, and a send behind them whose answer says that they were served."""
    on.wire.send(*requests, send_request(b"behind", 99, queue_id=1))
    assert (await on.wire.next()).opaque == 99


def test_ends_of_one_read_are_stored_with_one_append_and_no_request_each(tmp_path: Path) -> None:
    async def act(on: Play) -> None:
        halves = [await on.half(number) for number in range(20)]
        with (
            counted_by_turn(on.broker.state.store, "append") as appends,
            counted_by_turn(Dispatcher, "on_request") as requests,
        ):
            await ended(on, *(one_way(half) for half in halves))
        assert (appends.total, requests.total) == (1, 0)
        assert await bodies(on) == [b"%d" % number for number in range(20)]
        assert await on.ops() == [b"%d" % half.offset for half in halves]
        assert on.part.halves.open_count == 0

    play(tmp_path, act)


def test_plain_ends_of_one_read_are_not_decided_one_by_one(tmp_path: Path) -> None:
    """Once the queue of the marks is there."""

    async def act(on: Play) -> None:
        await on.end(await on.half(99), COMMIT)
        halves = [await on.half(number) for number in range(20)]
        verdicts = [ROLLBACK if number % 5 == 0 else COMMIT for number in range(20)]
        store = on.broker.state.store
        with (
            counted_by_turn(store, "append") as appends,
            counted_by_turn(store, "append_ends") as together,
            counted_by_turn(on.part.halves, "numbered") as decided,
        ):
            await ended(on, *map(one_way, reversed(halves), reversed(verdicts)))
        assert (appends.total, together.total, decided.total) == (0, 1, 0)
        committed = [number for number in reversed(range(20)) if number % 5]
        assert await bodies(on) == [b"99", *(b"%d" % number for number in committed)]
        assert await on.ops() == [b"0", *(b"%d" % half.offset for half in reversed(halves))]
        assert on.part.halves.open_count == 0

    play(tmp_path, act)


def test_one_that_needs_a_decision_leaves_the_plain_ones_around_it_plain(tmp_path: Path) -> None:
    async def act(on: Play) -> None:
        await on.end(await on.half(99), COMMIT)
        pairs: list[Any] = [{"DELAY": "2"} if number == 4 else {} for number in range(9)]
        halves = [await on.half(number, **pairs[number]) for number in range(9)]
        store = on.broker.state.store
        with (
            counted_by_turn(store, "append") as appends,
            counted_by_turn(store, "append_ends") as together,
        ):
            await ended(on, *map(one_way, halves))
        assert (appends.total, together.total) == (1, 2)
        assert await bodies(on) == [b"99", *(b"%d" % number for number in range(9) if number != 4)]
        assert on.part.halves.open_count == 0

    play(tmp_path, act)


@pytest.mark.parametrize("settings", [{}, {"enabledAppendPropCRC": "true"}])
def test_ends_of_many_segments_and_files_store_all_and_a_start_knows_it(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    count = 150

    async def act(on: Play) -> None:
        halves = []
        for number in range(count):
            properties = half_properties(number)
            request = send_request(bytes(4000), queue_id=2, sys_flag=PREPARED, properties=properties)
            fields = (await on.wire.ask(request)).fields
            halves.append(Half(int(fields["queueOffset"]), parse_offset_id(fields["msgId"])[1]))
        await ended(on, *map(one_way, halves))
        await eventually(lambda: on.part.halves.open_count == 0)
        assert on.broker.state.store.log.rolls > 0

    async def again(on: Play) -> None:
        store = on.broker.state.store
        assert on.part.halves.open_count == 0
        assert store.queues.end_of("T", 2) == count
        found = [store.reader.store_time("T", 2, offset) for offset in range(count)]
        assert None not in found
        assert store.reader.damaged == 0

    play(tmp_path, act, again, settings=settings)


def test_an_end_in_a_run_stores_what_the_same_request_alone_stores(tmp_path: Path) -> None:
    kinds: list[Any] = [{}, {"TAGS": "a"}, {"DELAY": "2"}, {"KEYS": "k", "mine": "yes"}]

    async def act(on: Play) -> None:
        for pairs in kinds:
            alone, row = await on.half(1, **pairs), await on.half(1, **pairs)
            store, found = on.broker.state.store, []
            for half, flag in ((alone, 0), (row, 2)):
                before, end = int(store.log.end), one_way(half)
                end.flag = flag
                on.wire.send(end)
                if flag == 0:
                    assert (await on.wire.next()).code == 0
                await eventually(partial(has_grown, on, before))
                record = store.reader.read_at(before)
                assert record is not None
                op = store.reader.read_at(before + len(record))
                assert op is not None
                found.append((NewMessage.of_record(record), NewMessage.of_record(op)))
            message, mark = found[0]
            expected = (
                message._replace(prepared_offset=row.log_offset),
                mark._replace(body=b"%d" % row.offset),
            )
            assert found[1] == expected

    play(tmp_path, act)


def test_what_is_rolled_back_in_a_run_is_never_seen_and_what_is_unknown_stays_open(tmp_path: Path) -> None:
    async def act(on: Play) -> None:
        gone, stays, comes = [await on.half(number) for number in range(3)]
        await ended(on, one_way(gone, ROLLBACK), one_way(stays, UNKNOWN), one_way(comes))
        assert await bodies(on) == [b"2"]
        assert await on.ops() == [b"0", b"2"]
        assert on.part.halves.open_count == 1

    play(tmp_path, act)


@pytest.mark.parametrize("verdicts", [(COMMIT, COMMIT), (COMMIT, ROLLBACK), (ROLLBACK, COMMIT)])
def test_a_transaction_that_is_ended_twice_in_one_read_ends_once(
    tmp_path: Path, verdicts: tuple[int, int]
) -> None:
    """The first word counts."""

    async def act(on: Play) -> None:
        half, other = await on.half(1), await on.half(2)
        first, second = verdicts
        await ended(on, one_way(half, first), one_way(other), one_way(half, second))
        assert await bodies(on) == ([b"1", b"2"] if first == COMMIT else [b"2"])
        assert sorted(await on.ops()) == [b"0", b"1"]

    play(tmp_path, act)


@pytest.mark.parametrize("verdicts", [(COMMIT, COMMIT), (COMMIT, ROLLBACK), (ROLLBACK, COMMIT)])
def test_a_plain_end_that_comes_again_in_its_read_or_in_a_later_one_ends_nothing(
    tmp_path: Path, verdicts: tuple[int, int]
) -> None:
    async def act(on: Play) -> None:
        await on.end(await on.half(99), COMMIT)  # from then on plain ends are not decided one by one
        half, other, third = [await on.half(number) for number in range(3)]
        first, second = verdicts
        await ended(on, one_way(half, first), one_way(other), one_way(half, second))
        await ended(on, one_way(half, second), one_way(third))
        seen = [b"0"] * (first == COMMIT) + [b"1", b"2"]
        assert await bodies(on) == [b"99", *seen]
        assert sorted(await on.ops()) == [b"0", b"1", b"2", b"3"]

    play(tmp_path, act)


@pytest.mark.parametrize(
    "fields",
    [
        {"producerGroup": "others"},
        {"tranStateTableOffset": "0"},
        {"tranStateTableOffset": str(2**62)},
        {"commitLogOffset": "0"},
        {"commitLogOffset": "-1"},
        {"commitLogOffset": "x"},
        {"transactionId": "7F01", "msgId": "7F01"},
        {"commitOrRollback": "4"},
    ],
)
def test_one_that_is_refused_ends_nothing_and_the_others_do(tmp_path: Path, fields: Any) -> None:
    async def act(on: Play) -> None:
        first, meant, last = [await on.half(number) for number in range(3)]
        await ended(on, one_way(first), one_way(meant, **fields), one_way(last))
        assert await bodies(on) == [b"0", b"2"]
        assert on.part.halves.open_count == 1

    play(tmp_path, act)


def test_halves_and_ends_between_each_other_are_all_served_and_answered_in_order(tmp_path: Path) -> None:
    """More than one turn has time for."""

    async def act(on: Play) -> None:
        count = 3 * REQUESTS_PER_TURN
        halves = [await on.half(number) for number in range(count)]
        requests: list[Command] = []
        for number, half in enumerate(halves):
            properties = half_properties(count + number)
            requests += [
                one_way(half),
                send_request(b"later", number, queue_id=2, sys_flag=PREPARED, properties=properties),
                send_request(b"plain", count + number, queue_id=1),
            ]
        on.wire.send(*requests)
        answers = [await on.wire.next() for _ in range(2 * count)]
        assert {answer.code for answer in answers} == {0}
        assert sorted(answer.opaque for answer in answers) == list(range(2 * count))
        await eventually(lambda: on.part.halves.open_count == count)
        assert on.broker.state.store.queues.end_of("T", 2) == count

    play(tmp_path, act)


def test_ends_of_large_messages_are_served_one_in_a_turn(tmp_path: Path) -> None:
    """Each is read and written whole, and others wait meanwhile."""

    async def act(on: Play) -> None:
        halves: list[Half] = []
        for number in range(6):
            properties = half_properties(number)
            large = send_request(bytes(20_000), queue_id=2, sys_flag=PREPARED, properties=properties)
            answer = await on.wire.ask(large)
            halves.append(Half(int(answer.fields["queueOffset"]), parse_offset_id(answer.fields["msgId"])[1]))
        with counted_by_turn(on.broker.state.store, "append") as appends:
            on.wire.send(*(one_way(half) for half in halves))
            await eventually(lambda: on.part.halves.open_count == 0)
        assert (appends.total, appends.most) == (6, 1)

    play(tmp_path, act)


def test_when_one_append_fails_the_ends_are_tried_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(on: Play) -> None:
        halves = [await on.half(number) for number in range(5)]
        append = on.broker.state.store.append

        def few(messages: Sequence[NewMessage]) -> Any:
            if len(messages) > 2:
                raise StoreUnavailable("not all of them")
            return append(messages)

        monkeypatch.setattr(on.broker.state.store, "append", few)
        await ended(on, *(one_way(half) for half in halves))
        await eventually(lambda: on.part.halves.open_count == 0)
        assert await bodies(on) == [b"%d" % number for number in range(5)]

    play(tmp_path, act)


def test_an_end_needs_a_pass_for_the_topic_of_its_message(tmp_path: Path) -> None:
    """The guard is asked once per connection and topic; without a pass each is refused by itself."""
    house = House()

    async def act(on: Play) -> None:
        halves = [await on.half(number) for number in range(4)]
        house.checks = 0
        await ended(on, one_way(halves[0]), one_way(halves[1]))
        assert house.checks == 0
        house.close(Need.PUBLISH)
        on.wire.send(one_way(halves[2]), one_way(halves[3]))
        await eventually(lambda: house.checks == 2)
        assert on.part.halves.open_count == 2

    play(tmp_path, act, guard=house)


def test_an_end_that_somebody_waits_for_is_answered(tmp_path: Path) -> None:
    async def act(on: Play) -> None:
        first, second = await on.half(1), await on.half(2)
        waits = one_way(second)
        waits.flag, waits.opaque = 0, 5
        on.wire.send(one_way(first), waits)
        answer = await on.wire.next()
        assert (answer.opaque, answer.code) == (5, 0)
        assert await bodies(on) == [b"1", b"2"]

    play(tmp_path, act)
