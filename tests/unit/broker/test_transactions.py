"""Half messages and their ends: what is stored, what is seen, what is refused."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from bolide.broker.diversions import set_aside
from bolide.model.names import HALF_TOPIC, SCHEDULE_TOPIC
from bolide.record.message_id import parse_offset_id
from bolide.store.new_message import NewMessage
from bolide.wire.command import Command, encode_frame
from tests.unit.broker.stage import fill, properties_of, send_request
from tests.unit.broker.test_timer import settled
from tests.unit.broker.transaction_stage import COMMIT, ROLLBACK, UNKNOWN, Half, Play, half_properties, play


def test_a_half_message_is_stored_as_the_original_stores_it(tmp_path: Path) -> None:
    """TX-01, first third.  What its sender says of checks is not believed."""

    async def act(on: Play) -> None:
        await on.half(1, TRANSACTION_CHECK_TIMES="14", TRAN_PREPARED_QUEUE_OFFSET="0", REAL_TOPIC="other")
        half = await on.half(2)
        assert await on.stored() == []
        first, stored = await on.halves()
        assert (stored.queue_offset, stored.log_offset) == (half.offset, half.log_offset)
        assert (stored.sys_flag, stored.body) == (0, b"2")
        assert stored.properties["REAL_TOPIC"] == "T"
        assert stored.properties["REAL_QID"] == "2"
        assert stored.properties["TRAN_MSG"] == "true"
        assert stored.properties["__transactionId__"] == stored.properties["UNIQ_KEY"]
        assert first.properties["REAL_TOPIC"] == "T"
        assert not {"TRANSACTION_CHECK_TIMES", "TRAN_PREPARED_QUEUE_OFFSET"} & first.properties.keys()
        assert on.part.figures()["openHalfMessages"] == "2"

    play(tmp_path, act)


def test_a_committed_message_is_seen_once_and_names_its_half(tmp_path: Path) -> None:
    """TX-01, TX-05: its op record names the offset of the half message, as all versions read it."""

    async def act(on: Play) -> None:
        await on.half(1)
        half = await on.half(2)
        assert (await on.end(half, COMMIT)).code == 0
        (message,) = await on.stored()
        assert (message.body, message.sys_flag, message.queue_id) == (b"2", COMMIT, 2)
        before = (await on.halves())[1]
        assert message.properties == before.properties
        assert message.born_timestamp_ms == before.born_timestamp_ms
        record = on.broker.state.store.reader.read_at(int(message.log_offset))
        assert record is not None
        assert NewMessage.of_record(record).prepared_offset == half.log_offset
        assert await on.ops() == [b"1"]
        assert on.part.halves.open_count == 1

    play(tmp_path, act)


def test_what_is_rolled_back_is_never_seen(tmp_path: Path) -> None:
    async def act(on: Play) -> None:
        half = await on.half()
        assert (await on.end(half, ROLLBACK)).code == 0
        assert (await on.stored(), await on.ops()) == ([], [b"0"])
        on.check_later()
        assert len(await on.halves()) == 1

    play(tmp_path, act)


def test_a_transaction_ends_once(tmp_path: Path) -> None:
    async def act(on: Play) -> None:
        half = await on.half()
        assert (await on.end(half, UNKNOWN)).code == 0
        assert on.part.halves.open_count == 1
        assert (await on.end(half, COMMIT)).code == 0
        end = on.broker.state.store.log.end
        for verdict in (COMMIT, ROLLBACK):
            answer = await on.end(half, verdict)
            assert (answer.code, "has ended before" in (answer.remark or "")) == (1, True)
        assert on.broker.state.store.log.end == end
        assert len(await on.stored()) == 1

    play(tmp_path, act)


@pytest.mark.parametrize(
    ("fields", "code", "remark"),
    [
        ({"producerGroup": "others"}, 1, "not the producer group"),
        ({"tranStateTableOffset": "1"}, 1, "not number 1"),
        ({"commitLogOffset": "0"}, 1, "no half message at 0"),
        ({"commitLogOffset": "7"}, 1, "no half message at 7"),
        ({"commitLogOffset": "-1"}, 1, "no half message at -1"),
        ({"commitLogOffset": str(2**62)}, 1, "no half message"),
        ({"commitLogOffset": "x"}, 29, "commitLogOffset"),
        ({"commitLogOffset": ""}, 29, "commitLogOffset"),
        ({"transactionId": "7F01", "msgId": "7F01"}, 1, "the half message at"),  # power loss took that one
        ({"commitOrRollback": "4"}, 29, "8 commits"),
        ({"commitOrRollback": str(2**40)}, 29, "commitOrRollback"),
    ],
)
def test_nobody_ends_the_transaction_of_another(
    tmp_path: Path, fields: dict[str, str], code: int, remark: str
) -> None:
    """The message at 0 of the log is a plain one, whose number and group are right too."""

    async def act(on: Play) -> None:
        half = await on.half()
        end = on.broker.state.store.log.end
        answer = await on.end(half, COMMIT, **fields)
        assert answer.code == code
        assert remark in (answer.remark or "")
        assert on.broker.state.store.log.end == end
        assert on.part.halves.open_count == 1
        assert (await on.end(half, COMMIT)).code == 0

    play(tmp_path, act)


@pytest.mark.parametrize("missing", ["producerGroup", "tranStateTableOffset", "commitLogOffset"])
def test_an_end_that_does_not_say_whose_is_refused(tmp_path: Path, missing: str) -> None:
    async def act(on: Play) -> None:
        half = await on.half()
        answer = await on.end(half, COMMIT, **{missing: ""})
        assert answer.code != 0
        assert on.part.halves.open_count == 1

    play(tmp_path, act)


def test_a_committed_message_may_have_to_wait_for_its_time(tmp_path: Path) -> None:
    """A half message waits for its transaction first; from then on it is like any other that is delayed."""

    async def act(on: Play) -> None:
        def late(message: NewMessage, properties: Mapping[str, str], *, is_taken: bool) -> NewMessage | None:
            assert "TRAN_MSG" not in properties
            return set_aside(message, "late", 1) if "LATE" in properties else None

        on.broker.state.diversions.add(late)
        await fill(on.wire, 1, topic="late")
        half = await on.half(LATE="1")
        assert await on.stored("late", 1) == []
        assert (await on.end(half, COMMIT)).code == 0
        (waiting,) = await on.stored("late", 1)
        assert waiting.properties["REAL_TOPIC"] == "T"
        assert await on.stored() == []

    play(tmp_path, act)


def test_a_delay_begins_when_the_transaction_is_over(tmp_path: Path) -> None:
    """One that is none is refused before there is a transaction."""

    async def act(on: Play) -> None:
        half = await on.half(DELAY="3")
        on.clock.ms += 60_000
        assert (await on.end(half, COMMIT)).code == 0
        (waiting,) = await on.stored(SCHEDULE_TOPIC, 2)
        assert (waiting.sys_flag, waiting.properties["REAL_TOPIC"]) == (COMMIT, "T")
        assert await on.stored() == []
        answer = await on.wire.ask(send_request(properties=half_properties(DELAY="soon")))
        assert (answer.code, "DELAY" in (answer.remark or "")) == (13, True)
        assert len(await on.halves()) == 1

    play(tmp_path, act)


@pytest.mark.parametrize("change", [{"timerWheelEnable": "false"}, {"timerMaxDelaySec": "1"}])
def test_what_was_taken_is_committed_and_delivered_though_senders_may_not_ask_for_it_any_more(
    tmp_path: Path, change: dict[str, str]
) -> None:
    """Nobody gets around the rule by saying that his message is a committed one."""
    timed = {"TIMER_DELAY_SEC": "60"}

    async def act(on: Play) -> None:
        half = await on.half(TIMER_DELAY_SEC="60")
        on.broker.state.settings.change(change)
        for sys_flag, properties in ((4, half_properties(2, **timed)), (COMMIT, properties_of(2, **timed))):
            answer = await on.wire.ask(send_request(sys_flag=sys_flag, properties=properties))
            assert next(iter(change)) in (answer.remark or "")
        assert (await on.end(half, COMMIT)).code == 0
        await settled(on.broker)
        assert await on.stored() == []
        on.clock.ms += 60_001  # the delay counts from the end of its millisecond
        await settled(on.broker)
        assert [message.body for message in await on.stored()] == [b"1"]

    play(tmp_path, act)


def test_a_topic_that_is_gone_gets_no_message_and_its_half_message_stays(tmp_path: Path) -> None:
    async def act(on: Play) -> None:
        half = await on.half()
        on.broker.state.topics.delete("T")
        answer = await on.end(half, COMMIT)
        assert (answer.code, "does not exist" in (answer.remark or "")) == (17, True)
        assert on.part.halves.open_count == 1
        assert (await on.end(half, ROLLBACK)).code == 0

    play(tmp_path, act)


def test_a_broker_may_refuse_half_messages(tmp_path: Path) -> None:
    async def act(on: Play) -> None:
        answer = await on.wire.ask(send_request(topic="new", properties=half_properties()))
        assert (answer.code, "rejectTransactionMessage" in (answer.remark or "")) == (16, True)
        assert await on.stored(HALF_TOPIC, 0) == []
        assert "new" not in on.broker.state.topics, "what is refused costs no topic"

    play(tmp_path, act, settings={"rejectTransactionMessage": "true"})


def test_properties_leave_room_for_those_of_the_transaction(tmp_path: Path) -> None:
    async def act(on: Play) -> None:
        fits, fits_not = (half_properties(K="v" * length) for length in (32_000, 32_400))
        assert (await on.wire.ask(send_request(properties=fits))).code == 0
        answer = await on.wire.ask(send_request(properties=fits_not))
        assert (answer.code, "with those of the transaction" in (answer.remark or "")) == (13, True)

    play(tmp_path, act)


@pytest.mark.parametrize("time", [{"TIMER_DELAY_SEC": "60"}, {"DELAY": "3"}], ids=["timed", "delayed"])
def test_what_is_taken_can_be_committed_however_long_its_properties_and_however_often_it_was_asked_for(
    tmp_path: Path, time: dict[str, str]
) -> None:
    async def act(on: Play) -> None:
        taken = 0
        for number, length in enumerate(range(31_700, 32_400, 10), 1):
            properties = half_properties(number, K="v" * length, **time)
            request = send_request(
                b"x", queue_id=2, sys_flag=4, properties=properties, born_timestamp_ms=on.clock.ms
            )
            answer = await on.wire.ask(request)
            if answer.code == 13:
                break
            assert answer.code == 0, answer
            taken += 1
            half = Half(int(answer.fields["queueOffset"]), parse_offset_id(answer.fields["msgId"])[1])
            for _ in range(3):
                on.check_later()
            answer = await on.end(half, COMMIT)
            assert answer.code == 0, (length, answer.remark)
        assert 0 < taken < 70, "some are taken, and some are not"

    play(tmp_path, act)


def test_an_end_may_be_one_way(tmp_path: Path) -> None:
    """As nearly all are."""

    async def act(on: Play) -> None:
        half = await on.half()
        on.wire.send(_one_way(half))
        assert len(await on.stored()) == 1

    play(tmp_path, act)


def _one_way(half: Half) -> bytes:
    fields = {
        "producerGroup": "makers",
        "tranStateTableOffset": str(half.offset),
        "commitLogOffset": str(half.log_offset),
        "commitOrRollback": "8",
    }
    return encode_frame(Command(37, fields, flag=2))


def test_half_messages_that_are_given_up_are_not_a_line_each(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def act(on: Play) -> None:
        for number in range(4):
            await on.half(number)
        on.clock.ms += 3_600_000 + 1
        on.check()
        assert on.part.figures()["halfMessagesGivenUp"] == "4"

    play(tmp_path, act, settings={"fileReservedTime": "1"})
    assert caplog.text.count("is given up") == 1
