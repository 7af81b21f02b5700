"""Messages of a run that wait for something: stored and answered together, and as if each had come alone."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from bolide.broker.app import Broker
from bolide.broker.detours import KEPT_PER_LANE, Detours
from bolide.broker.handlers.send import DETOURS_PER_REQUEST
from bolide.model.errors import StoreUnavailable
from bolide.model.limits import REQUESTS_PER_TURN
from bolide.model.names import HALF_TOPIC, SCHEDULE_TOPIC, TIMER_TOPIC
from bolide.net.dispatch import Dispatcher
from bolide.net.guard import Guard
from bolide.store.append_twin import ASKED_PER_RUN
from bolide.store.new_message import NewMessage
from bolide.wire.codes import Need
from bolide.wire.command import COMPACT, JSON, Command
from tests.unit.broker.stage import fill, properties_of, send_request, serving
from tests.unit.broker.test_guard import House
from tests.unit.broker.test_send_flush import Gate
from tests.unit.net.stage import Wire, eventually, pause
from tests.unit.net.turns import counted_by_turn
from tests.unit.store.stage import HeldClock, WatchedDisk

NOW_MS = 1_700_000_000_000
PREPARED = 4

KINDS: dict[str, dict[str, str]] = {
    "level": {"DELAY": "18"},
    "level above the highest": {"DELAY": "99"},
    "level and time": {"DELAY": "3", "TIMER_DELAY_SEC": "5"},
    "time": {"TIMER_DELIVER_MS": str(NOW_MS + 3_600_500)},
    "delay": {"TIMER_DELAY_SEC": "60"},
    "time that is over": {"TIMER_DELIVER_MS": "5"},
    "half": {"TRAN_MSG": "true", "PGROUP": "g"},
    "half with a level": {"TRAN_MSG": "true", "PGROUP": "g", "DELAY": "2"},
    "another broker's region": {"MSG_REGION": "elsewhere"},
    "plain": {},
    "a key that is no JSON": {"UNIQ_KEY": 'a"b\\c', "DELAY": "1"},
    "a key that is not ASCII": {"UNIQ_KEY": "schlüssel", "DELAY": "1"},
    "no wait": {"WAIT": "false", "DELAY": "1"},
}
REFUSED: dict[str, dict[str, str]] = {
    "no level": {"DELAY": "three"},
    "no time": {"TIMER_DELIVER_MS": "soon"},
    "half of nobody": {"TRAN_MSG": "true"},
    "years": {"TIMER_DELAY_SEC": "999999999"},
}


def waiting(number: int, kind: str, form: int = JSON, **changes: Any) -> Command:
    pairs = {**KINDS, **REFUSED}[kind]
    sys_flag = PREPARED if "TRAN_MSG" in pairs else 0
    return send_request(
        b"%d" % number,
        number,
        form=form,
        **{"properties": properties_of(number, **pairs), "sys_flag": sys_flag, **changes},
    )


def timed(number: int) -> Command:
    """Each with a time of its own."""
    text = properties_of(number, TIMER_DELIVER_MS=str(NOW_MS + 3_600_000 + number))
    return waiting(number, "time", properties=text)


def play(
    root: Path,
    act: Callable[[Broker, Wire], Awaitable[None]],
    settings: Mapping[str, str] | None = None,
    **parts: Any,
) -> None:
    async def main() -> None:
        async with serving(root, settings, clock=HeldClock(NOW_MS), **parts) as (broker, wire):
            await fill(wire, 1)  # makes the topic
            await act(broker, wire)

    asyncio.run(main())


async def told(wire: Wire, *requests: Command) -> list[Command]:
    """The answers to requests of one read."""
    wire.send(*requests)
    return [await wire.next() for _ in requests]


def newest(broker: Broker) -> NewMessage:
    record = broker.state.store.reader.read_at(broker.state.store.log.last_record)
    assert record is not None
    return NewMessage.of_record(record)


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_is_stored_and_answered_as_the_same_request_alone(tmp_path: Path, kind: str) -> None:
    """One form of the header comes in runs, the other one never does."""

    async def act(broker: Broker, wire: Wire) -> None:
        (alone,) = await told(wire, waiting(7, kind, COMPACT))
        by_request = newest(broker)
        (row,) = await told(wire, waiting(7, kind))
        assert row.code == alone.code == 0
        places = ("msgId", "queueOffset")
        assert {name: text for name, text in row.fields.items() if name not in places} == {
            name: text for name, text in alone.fields.items() if name not in places
        }
        assert int(row.fields["queueOffset"]) == int(alone.fields["queueOffset"]) + 1
        assert newest(broker) == by_request._replace(born_host=newest(broker).born_host)

    play(tmp_path, act)


def test_all_kinds_of_one_read_are_answered_in_order_and_wait_where_they_should(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        kinds = ["level", "time", "half", "plain", "level", "time", "half", "half"]
        answers = await told(wire, *(waiting(number, kind) for number, kind in enumerate(kinds * 4)))
        assert [answer.opaque for answer in answers] == list(range(32))
        assert {answer.code for answer in answers} == {0}
        assert ["recallHandle" in answer.fields for answer in answers] == [
            kind == "time" for kind in kinds * 4
        ]
        end_of = broker.state.store.queues.end_of
        ends = [end_of(SCHEDULE_TOPIC, 17), end_of(TIMER_TOPIC, 0), end_of(HALF_TOPIC, 0), end_of("T", 0)]
        assert ends == [8, 8, 12, 4 + 1]

    play(tmp_path, act)


@pytest.mark.parametrize("kind", ["level", "time", "half"])
def test_many_that_wait_are_stored_with_few_appends_and_no_request_each(tmp_path: Path, kind: str) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        count = 100
        with (
            counted_by_turn(broker.state.store.log, "write") as writes,
            counted_by_turn(Dispatcher, "on_request") as requests,
        ):
            answers = await told(wire, *(waiting(number, kind) for number in range(count)))
        assert [answer.opaque for answer in answers] == list(range(count))
        assert requests.total == 0
        assert writes.total <= 10

    play(tmp_path, act)


def test_a_turn_decides_a_bounded_number(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        count = 3 * DETOURS_PER_REQUEST * REQUESTS_PER_TURN
        with counted_by_turn(Detours, "find") as decided:
            await told(wire, *(timed(number) for number in range(count)))
        assert decided.total == count
        assert decided.most <= DETOURS_PER_REQUEST * REQUESTS_PER_TURN + ASKED_PER_RUN

    play(tmp_path, act)


@pytest.mark.parametrize("kind", REFUSED)
def test_one_that_is_refused_hears_why_and_the_others_are_stored(tmp_path: Path, kind: str) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        (alone,) = await told(wire, waiting(5, kind, COMPACT))
        kinds = ["level", "half", "time", kind, "level", "plain", "half"]
        answers = await told(wire, *(waiting(number, each) for number, each in enumerate(kinds)))
        assert [answer.opaque for answer in answers] == list(range(7))
        assert [answer.code == 0 for answer in answers] == [each != kind for each in kinds]
        assert answers[3].remark == alone.remark
        end_of = broker.state.store.queues.end_of
        assert [end_of(SCHEDULE_TOPIC, 17), end_of(TIMER_TOPIC, 0), end_of(HALF_TOPIC, 0)] == [2, 1, 2]

    play(tmp_path, act)


def test_when_the_store_refuses_each_hears_it_and_none_is_stored(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        store = broker.state.store
        end = store.log.end
        store.disk_refusal = "the disk is full"
        answers = await told(wire, *(waiting(number, "level") for number in range(10)))
        assert [answer.opaque for answer in answers] == list(range(10))
        assert {answer.remark for answer in answers} == {"the disk is full"}
        assert store.log.end == end
        store.disk_refusal = None
        assert {answer.code for answer in await told(wire, *(waiting(n, "level") for n in range(10)))} == {0}

    play(tmp_path, act)


def test_what_holds_is_decided_once_for_a_topic(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        with counted_by_turn(Detours, "find") as decided:
            for _ in range(3):
                kinds = ["level", "half"] * 10
                await told(wire, *(waiting(number, kind) for number, kind in enumerate(kinds)))
        assert decided.total == 2
        broker.state.settings.change({"rejectTransactionMessage": "true"})
        codes = [answer.code for answer in await told(wire, waiting(1, "level"), waiting(2, "half"))]
        assert codes == [0, 16]

    play(tmp_path, act)


def test_many_words_for_one_level_are_not_all_remembered(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        words = ["0" * zeros + str(level) for zeros in range(6) for level in range(1, 19)]
        assert len(words) > KEPT_PER_LANE
        texts = [properties_of(number, DELAY=word) for number, word in enumerate(words)]
        answers = [await told(wire, waiting(1, "level", properties=text)) for text in texts]
        assert {answer.code for (answer,) in answers} == {0}
        assert [broker.state.store.queues.end_of(SCHEDULE_TOPIC, level) for level in range(18)] == [6] * 18

    play(tmp_path, act)


def test_when_one_append_fails_the_rows_are_tried_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        def refuse(*run: object) -> Any:
            raise StoreUnavailable("not all of them")

        monkeypatch.setattr(broker.state.store, "append_run", refuse)
        answers = await told(wire, *(waiting(number, "level") for number in range(20)))
        assert [answer.opaque for answer in answers] == list(range(20))
        assert {answer.code for answer in answers} == {0}
        assert broker.state.store.queues.end_of(SCHEDULE_TOPIC, 17) == 20

    play(tmp_path, act)


def test_one_way_rows_are_stored_and_not_answered(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        wire.send(*(waiting(number, "level", flag=2) for number in range(5)), waiting(5, "level"))
        assert (await wire.next()).opaque == 5
        assert broker.state.store.queues.end_of(SCHEDULE_TOPIC, 17) == 6

    play(tmp_path, act)


def test_rows_that_wait_need_a_pass(tmp_path: Path) -> None:
    """The guard is asked once per connection and topic; without a pass each is refused by itself."""
    house = House()

    async def act(broker: Broker, wire: Wire) -> None:
        house.asked.clear()
        await told(wire, *(waiting(number, "half") for number in range(9)))
        assert house.checks == 1  # the send that has made the topic
        house.close(Need.PUBLISH)
        answers = await told(wire, *(waiting(number, "half") for number in range(9)))
        assert {answer.code for answer in answers} == {16}
        assert broker.state.store.queues.end_of(HALF_TOPIC, 0) == 9

    guard: Guard = house
    play(tmp_path, act, guard=guard)


def test_with_sync_flush_rows_are_answered_when_the_disk_has_them(tmp_path: Path) -> None:
    """FL-01"""
    disk = WatchedDisk()
    gate = Gate(disk)
    gate.open()

    async def act(broker: Broker, wire: Wire) -> None:
        gate.shut()
        try:
            wire.send(*(waiting(number, kind) for number, kind in enumerate(["level", "time", "half"])))
            await eventually(gate.entered.is_set)
            answer = asyncio.ensure_future(wire.next())
            await pause()
            assert not answer.done()
        finally:
            gate.open()
        assert [(await answer).opaque, *[(await wire.next()).opaque for _ in range(2)]] == [0, 1, 2]

    play(tmp_path, act, {"flushDiskType": "SYNC_FLUSH"}, disk=disk)


def test_with_sync_flush_one_that_does_not_wait_for_the_disk_is_answered_at_once(tmp_path: Path) -> None:
    disk = WatchedDisk()
    gate = Gate(disk)
    gate.open()

    async def act(broker: Broker, wire: Wire) -> None:
        gate.shut()
        try:
            wire.send(waiting(1, "level"), waiting(2, "no wait"))
            assert (await wire.next()).opaque == 2
        finally:
            gate.open()
        assert (await wire.next()).opaque == 1

    play(tmp_path, act, {"flushDiskType": "SYNC_FLUSH"}, disk=disk)


def test_properties_that_are_long_take_the_general_path(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        long = properties_of(1, DELAY="1", text="x" * 40_000)
        (answer,) = await told(wire, waiting(1, "level", properties=long))
        assert answer.code == 13

    play(tmp_path, act)
