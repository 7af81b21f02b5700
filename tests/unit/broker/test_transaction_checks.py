"""Half messages that nobody ends: who is asked when, and how often."""

from pathlib import Path

import pytest

from bolide.broker.half_checks import SLICE_HALVES
from bolide.broker.half_messages import HalfMessages
from bolide.machines.immune_halves import BLOCK
from bolide.model import limits
from bolide.model.message import PROPERTIES_BYTES_MAX
from bolide.model.names import HALF_TOPIC, TRANS_CHECK_MAX_TOPIC
from bolide.store.new_message import NewMessage
from bolide.wire.command import Command
from tests.unit.broker.stage import send_request
from tests.unit.broker.transaction_stage import (
    COMMIT,
    TIMEOUT_MS,
    Half,
    Play,
    asked,
    foreign_half,
    forgotten_offsets,
    half_properties,
    play,
)
from tests.unit.net.stage import eventually

HOUR_MS = 3_600_000
SEGMENT = 16_384


def test_a_producer_is_asked_when_it_had_its_time_and_not_before(tmp_path: Path) -> None:
    """TX-02: about the message as it will be, under its new place."""

    async def act(on: Play) -> None:
        producer = await on.member()
        half = await on.half(1)
        on.clock.ms += TIMEOUT_MS
        on.check()
        assert len(await on.halves()) == 1
        on.clock.ms += 1
        on.check()
        new, message = asked(await producer.next())
        assert (new.offset, message.queue_offset) == (half.offset + 1, half.offset + 1)
        assert (message.topic, message.queue_id, message.body) == ("T", 2, b"1")
        assert message.properties["TRANSACTION_CHECK_TIMES"] == "1"
        assert message.properties["TRAN_PREPARED_QUEUE_OFFSET"] == str(half.offset)
        assert (await on.end(new, COMMIT, fromTransactionCheck="true")).code == 0
        assert [message.body for message in await on.stored()] == [b"1"]
        assert await on.ops() == [b"1"]

    play(tmp_path, act)


def test_a_clock_that_is_ahead_makes_no_half_message_older(tmp_path: Path) -> None:
    """The original asks for it at once."""

    async def act(on: Play) -> None:
        await on.half(age_ms=-3_600_000)
        on.clock.ms += TIMEOUT_MS
        on.check()
        assert len(await on.halves()) == 1
        on.clock.ms += 1
        on.check()
        assert len(await on.halves()) == 2

    play(tmp_path, act)


def test_a_clock_that_is_set_back_lets_no_producer_wait_to_be_asked_until_it_is_back(tmp_path: Path) -> None:
    async def act(on: Play) -> None:
        await on.half()
        on.clock.set_back(3_600_000)
        on.check()
        on.clock.ms += TIMEOUT_MS
        on.check()
        assert len(await on.halves()) == 1
        on.clock.ms += 1
        on.check()
        assert len(await on.halves()) == 2

    play(tmp_path, act)


def test_a_transaction_that_was_asked_for_can_be_ended_by_its_former_place(tmp_path: Path) -> None:
    """And is not asked for any more; in the original the copy stays open, and may be committed once more."""

    async def act(on: Play) -> None:
        half = await on.half()
        on.check_later()
        on.check_later()
        assert (await on.end(half, COMMIT)).code == 0
        assert on.part.halves.open_count == 0
        assert (await on.end(Half(2, int((await on.halves())[2].log_offset)), COMMIT)).code == 1
        on.check_later()
        assert (len(await on.halves()), len(await on.stored())) == (3, 1)

    play(tmp_path, act)


def test_a_transaction_is_not_ended_by_a_message_that_names_its_line(tmp_path: Path) -> None:
    """In a store of others a client may have written that: each end counts for its own message."""

    async def act(on: Play) -> None:
        other = await on.half(1)
        on.check_later()
        assert (await on.end(foreign_half(on, 2, line=other.offset), COMMIT)).code == 0
        assert await on.ops() == [b"2"]
        moved = foreign_half(on, 3, line=other.offset)
        on.check_later()
        for half in (moved, other):
            assert (await on.end(half, COMMIT)).code == 0
        assert [message.body for message in await on.stored()] == [b"2", b"3", b"1"]
        assert on.part.halves.open_count == 0

    play(tmp_path, act)


def test_who_ends_a_message_by_a_place_that_is_forgotten_is_refused_and_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bolide.broker.half_messages.HALF_LINES_MAX", 1)
    assert limits.HALF_LINES_MAX > 1

    async def act(on: Play) -> None:
        first, second = await on.half(1), await on.half(2)
        on.check_later()
        assert (await on.end(first, COMMIT)).code == 1
        assert (await on.end(second, COMMIT)).code == 0
        assert on.part.halves.open_count == 1

    play(tmp_path, act)


def test_members_are_asked_in_turn_and_one_that_is_gone_is_not(tmp_path: Path) -> None:
    """TX-04"""

    async def act(on: Play) -> None:
        one, other = await on.member(), await on.member()
        await on.half()
        on.check_later()
        on.check_later()
        for wire in (one, other):
            asked(await wire.next())
        one.close()
        await eventually(lambda: len(on.broker.state.clients.producers("makers")) == 1)
        for _ in range(2):
            on.check_later()
            asked(await other.next())

    play(tmp_path, act)


def test_a_half_message_that_is_too_old_is_given_up(tmp_path: Path) -> None:
    async def act(on: Play) -> None:
        await on.half(age_ms=2 * HOUR_MS)
        on.check_later()
        assert len(await on.stored(TRANS_CHECK_MAX_TOPIC, 0)) == 0  # its client's clock is not believed
        on.clock.ms += HOUR_MS - TIMEOUT_MS
        on.check()  # storing it again has made it no younger
        assert len(await on.stored(TRANS_CHECK_MAX_TOPIC, 0)) == 1

    play(tmp_path, act, settings={"fileReservedTime": "1"})


def test_one_that_asks_for_more_time_has_it_and_keeps_nobody_waiting(tmp_path: Path) -> None:
    """It stays where it is: the original stores it again at every look, and gives it up unasked in the end."""

    async def act(on: Play) -> None:
        producer = await on.member()
        await on.half(1, CHECK_IMMUNITY_TIME_IN_SECONDS="20")
        await on.half(2)
        for _ in range(3):
            on.check_later()
            assert asked(await producer.next())[1].body == b"2"
        assert [message.body for message in await on.halves()].count(b"1") == 1
        on.check_later()
        new, message = asked(await producer.next())
        assert (message.body, message.properties["TRANSACTION_CHECK_TIMES"]) == (b"1", "1")
        assert (await on.end(new, COMMIT)).code == 0
        assert [message.body for message in await on.stored()] == [b"1"]

    play(tmp_path, act)


@pytest.mark.parametrize("known", [2 * BLOCK, BLOCK])
def test_one_that_waits_for_a_time_of_its_own_is_not_read_at_every_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: int
) -> None:
    """A client that leaves many such would have the broker read all of them for an hour."""
    monkeypatch.setattr("bolide.machines.immune_halves.IMMUNE_HALVES_MAX", known)
    read: list[int] = []
    number = HalfMessages.number

    def counted(halves: HalfMessages, offset: int) -> object:
        read.append(offset)
        return number(halves, offset)

    async def act(on: Play) -> None:
        for place in range(BLOCK + 8):
            foreign_half(on, place, CHECK_IMMUNITY_TIME_IN_SECONDS="40" if place == 7 else "3600")
        monkeypatch.setattr(HalfMessages, "number", counted)
        on.check_later()
        assert len(read) == BLOCK + 8
        read.clear()
        for _ in range(3):
            on.check_later()
        assert read == ([] if known > BLOCK else [*range(BLOCK, BLOCK + 8)] * 3)
        read.clear()
        on.clock.ms += 20_000
        on.check()
        assert read[0] == 7
        assert on.part.halves.is_ended(7)
        assert on.part.halves.open_count == BLOCK + 8  # it was stored again

    play(tmp_path, act)


@pytest.mark.parametrize("age_ms", [0, -(2**60), HOUR_MS])
def test_whatever_time_a_message_asks_for_it_is_asked_for_and_given_up_in_the_end(
    tmp_path: Path, age_ms: int
) -> None:
    """And waits meanwhile without a byte more in the log, wherever its client's clock stands."""

    async def act(on: Play) -> None:
        await on.half(age_ms=age_ms, CHECK_IMMUNITY_TIME_IN_SECONDS="1000000000")
        end = on.broker.state.store.log.end
        for _ in range(5):
            on.check_later()
        assert on.broker.state.store.log.end == end
        on.clock.ms += limits.CHECK_IMMUNITY_MS_MAX
        for _ in range(3):
            assert await on.stored(TRANS_CHECK_MAX_TOPIC, 0) == []
            on.check()
        assert len(await on.stored(TRANS_CHECK_MAX_TOPIC, 0)) == 1
        assert (on.part.halves.open_count, len(await on.halves())) == (0, 3)

    play(tmp_path, act, settings={"transactionCheckMax": "2"})


def test_whatever_is_stored_again_behind_one_that_waits_is_marked_for_the_original(tmp_path: Path) -> None:
    """Which begins at the one that waits and knows no lines: it would ask for both."""

    async def before(on: Play) -> None:
        await on.half(1, CHECK_IMMUNITY_TIME_IN_SECONDS="3600")
        await on.half(2)
        on.check_later()
        on.check_later()
        assert await on.ops() == [b"1", b"2"]

    async def after(on: Play) -> None:
        assert on.part.halves.open_count == 2
        producer = await on.member()
        on.check_later()
        new, message = asked(await producer.next())
        assert (new.offset, message.body) == (4, b"2")
        assert (await on.end(Half(1, int((await on.halves())[1].log_offset)), COMMIT)).code == 0
        assert on.part.halves.open_count == 1

    play(tmp_path, before, after, between=forgotten_offsets(tmp_path))


def test_one_that_cannot_be_stored_again_stops_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As others may have left it in the log."""

    async def act(on: Play) -> None:
        producer = await on.member()
        own = half_properties(1, REAL_TOPIC="T", REAL_QID="2").encode()
        empty = NewMessage(HALF_TOPIC, 0, b"", own, 0, 0, on.clock.ms, bytes(8))
        room = SEGMENT - 8 - len(empty.record(0, 0, 0, bytes(8), sealed=True))
        on.broker.state.door.append([empty._replace(body=bytes(room))])
        await on.half(2)
        for _ in range(2):
            on.check_later()
            assert asked(await producer.next())[1].body == b"2"
        assert on.part.figures()["halfMessagesWithoutRoom"] == "1"
        assert on.part.halves.open_count == 2
        assert caplog.text.count("half message 0 of the producer group makers cannot be stored again") == 1

    play(tmp_path, act, settings={"mappedFileSizeCommitLog": str(SEGMENT)})


def test_one_that_has_no_room_for_a_checksum_stops_no_other(tmp_path: Path) -> None:
    """It was stored before the broker wrote checksums (enabledAppendPropCRC), or by another one."""

    async def before(on: Play) -> None:
        more = PROPERTIES_BYTES_MAX - len(half_properties(1, REAL_TOPIC="T", REAL_QID="2", K=""))
        foreign_half(on, 1, K="v" * more)

    async def after(on: Play) -> None:
        producer = await on.member()
        await on.half(2)
        on.check_later()
        assert asked(await producer.next())[1].body == b"2"
        assert on.part.figures()["halfMessagesWithoutRoom"] == "1"

    play(tmp_path, before)
    play(tmp_path, after, settings={"enabledAppendPropCRC": "true"})


def test_one_is_given_up_and_others_asked_for_while_no_topic_can_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(on: Play) -> None:
        monkeypatch.setattr("bolide.store.tables.topics.TOPICS_MAX", 1)
        producer = await on.member()
        for number in (1, 2):
            await on.half(number)
            on.check_later()
            assert asked(await producer.next())[1].body == b"%d" % number
        assert [message.body for message in await on.stored(TRANS_CHECK_MAX_TOPIC, 0)] == [b"1"]

    play(tmp_path, act, settings={"transactionCheckMax": "1"})


def test_a_damaged_half_message_is_passed_over_and_no_other_taken_for_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The one behind it has ended: it was stored again, asked for, and could be committed once more."""

    async def act(on: Play) -> None:
        damaged, ended = await on.half(1), await on.half(2)
        await on.half(3)
        assert (await on.end(ended, COMMIT)).code == 0
        own_place = damaged.log_offset + 28
        on.broker.state.store.log.current.file.write(own_place, bytes(8))
        on.check_later()
        assert [message.body for message in await on.halves()] == [b"2", b"3", b"3"]
        assert on.part.halves.open_count == 1
        assert "half message 0 cannot be read, and is passed over" in caplog.text

    play(tmp_path, act)


def test_a_half_message_whose_copies_would_not_fit_is_refused(tmp_path: Path) -> None:
    """The largest that is taken is asked for, given up, resumed and committed."""

    async def act(on: Play) -> None:
        producer = await on.member()

        async def sent(body: int) -> Command:
            properties = half_properties(1)
            return await on.wire.ask(send_request(bytes(body), queue_id=2, sys_flag=4, properties=properties))

        answer = await sent(SEGMENT - 300)
        assert answer.code == 13
        assert "mappedFileSizeCommitLog" in (answer.remark or "")
        spare = 0
        while (await sent(SEGMENT - limits.HALF_ROOM_BYTES - spare)).code == 13:
            spare += 1
        on.check_later()
        asked(await producer.next())
        on.check_later()
        (given_up,) = await on.stored(TRANS_CHECK_MAX_TOPIC, 0)
        assert (await on.wire.ask(Command(323, {"msgId": given_up.offset_message_id}))).code == 0
        on.check_later()
        assert (await on.end(asked(await producer.next())[0], COMMIT)).code == 0
        assert on.part.figures()["halfMessagesWithoutRoom"] == "0"

    settings = {"mappedFileSizeCommitLog": str(SEGMENT), "transactionCheckMax": "1"}
    play(tmp_path, act, settings=settings)


def test_a_look_at_many_is_taken_in_small_steps(tmp_path: Path) -> None:
    async def act(on: Play) -> None:
        for number in range(3 * SLICE_HALVES):
            await on.half(number)
        on.clock.ms += TIMEOUT_MS + 1
        steps = 0
        before = on.broker.state.store.messages_appended
        for _ in on.part.checks.checking():
            steps += 1
            stored = on.broker.state.store.messages_appended
            assert stored - before <= SLICE_HALVES
            before = stored
        assert steps >= 3
        assert on.part.halves.open_count == 3 * SLICE_HALVES
        assert on.part.halves.window.first == 3 * SLICE_HALVES

    play(tmp_path, act)
