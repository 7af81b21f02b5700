"""Half messages over starts and crashes: what has ended, what is open, what is settled."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from bolide.broker.half_messages import GROUP, HalfMessages
from bolide.model.errors import StoreUnavailable
from bolide.model.names import HALF_TOPIC, OP_HALF_TOPIC
from bolide.model.steps import at_once
from bolide.record.decode import decode_messages
from bolide.store.cleaning import StoreCleaning
from bolide.store.disk_os import OsDisk
from bolide.store.new_message import Appended, NewMessage
from bolide.store.store import MessageStore
from bolide.wire.command import Command
from bolide.wire.headers.pull import PullFlag
from tests.unit.broker.stage import ALL, fill, pull_request
from tests.unit.broker.transaction_stage import (
    COMMIT,
    ROLLBACK,
    Half,
    Play,
    asked,
    foreign_half,
    forgotten_offsets,
    play,
)
from tests.unit.net.stage import eventually

HOUR_MS = 3_600_000
SEGMENT = 16_384


def test_a_start_knows_what_has_ended_and_what_is_open(tmp_path: Path) -> None:
    """TX-05"""

    async def before(on: Play) -> None:
        for number in range(4):
            half = await on.half(number)
            if number != 1:
                assert (await on.end(half, COMMIT if number else ROLLBACK)).code == 0
        await on.settled()

    async def after(on: Play) -> None:
        assert on.broker.state.offsets.query(GROUP, HALF_TOPIC, 0) == 1
        producer = await on.member()
        assert on.part.halves.open_count == 1
        on.check_later()
        new, message = asked(await producer.next())
        assert message.body == b"1"
        assert (await on.end(new, COMMIT)).code == 0
        assert sorted(message.body for message in await on.stored()) == [b"1", b"2", b"3"]
        await on.settled()
        assert on.broker.state.offsets.query(GROUP, HALF_TOPIC, 0) == 5
        assert on.broker.state.offsets.query(GROUP, OP_HALF_TOPIC, 0) == 4

    async def at_last(on: Play) -> None:
        on.check_later()
        assert on.part.halves.open_count == 0
        assert len(await on.halves()) == 5

    play(tmp_path, before, after, at_last)


def test_a_start_reads_the_first_of_a_line_once_however_often_it_was_stored_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that stays open keeps all behind it from being settled, and nobody is served before they are seen."""
    singly: list[int] = []
    read = HalfMessages._read

    def counted(halves: HalfMessages, offset: int) -> bytes | None:
        singly.append(offset)
        return read(halves, offset)

    async def before(on: Play) -> None:
        await on.half(0, CHECK_IMMUNITY_TIME_IN_SECONDS="3600")
        for number in (1, 2):
            await on.half(number)
        for _ in range(5):
            on.check_later()
        monkeypatch.setattr(HalfMessages, "_read", counted)

    async def after(on: Play) -> None:
        assert singly == [1, 2]
        assert on.part.halves.open_count == 3

    play(tmp_path, before, after)


def test_without_the_offsets_everything_is_found_again_in_the_log(tmp_path: Path) -> None:
    """As after a crash before they were written: of a message that was stored again only the last one is open, and it
    can still be ended by its first place."""
    first: list[Half] = []

    async def before(on: Play) -> None:
        first.extend([await on.half(1), await on.half(2)])
        ended = await on.half(3)
        on.check_later()
        on.check_later()
        assert (await on.end(ended, COMMIT)).code == 0

    async def after(on: Play) -> None:
        assert on.part.halves.open_count == 2
        assert on.part.halves.window.first == 6
        assert (await on.end(first[1], COMMIT)).code == 0
        assert (await on.end(first[0], COMMIT)).code == 0
        assert (await on.end(first[0], COMMIT)).code == 1
        assert sorted(message.body for message in await on.stored()) == [b"1", b"2", b"3"]
        assert on.part.halves.open_count == 0

    play(tmp_path, before, after, between=forgotten_offsets(tmp_path))


async def each_comes_once(on: Play, *bodies: bytes, first: int = 0) -> None:
    """Whoever commits by all places from this one on brings each message once."""
    while first < on.part.halves.end:
        answer = await on.wire.ask(pull_request(first, topic=HALF_TOPIC))
        for half in decode_messages(answer.body, "broker-a"):
            await on.end(Half(half.queue_offset, int(half.log_offset)), COMMIT)
            first = half.queue_offset + 1
    assert sorted(message.body for message in await on.stored()) == list(bodies)
    assert on.part.halves.open_count == 0


def test_however_many_lines_there_are_a_start_leaves_one_place_of_each_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than are remembered by their first places."""
    monkeypatch.setattr("bolide.broker.half_messages.HALF_LINES_MAX", 1)

    async def before(on: Play) -> None:
        for number in (1, 2):
            await on.half(number)
        for _ in range(2):
            on.check_later()

    async def after(on: Play) -> None:
        assert on.part.halves.open_count == 2
        await each_comes_once(on, b"1", b"2")

    play(tmp_path, before, after, between=forgotten_offsets(tmp_path))


def test_of_a_line_whose_first_record_is_gone_only_the_last_is_open_after_a_start(tmp_path: Path) -> None:
    """As when a full disk has made the broker delete what still waited."""

    async def before(on: Play) -> None:
        for number in (1, 2):
            await on.half(number)
        await fill(on.wire, 1, body=bytes(SEGMENT - 1000))  # what follows is in a segment of its own
        for _ in range(2):
            on.check_later()
        store = on.broker.state.store
        cleaning = StoreCleaning(OsDisk(), str(tmp_path), store)
        await on.settled()
        await on.broker.state.checkpointer.checkpoint()
        oldest = cleaning.deletable()[0]
        at_once(cleaning.expire_queues(oldest.base + oldest.size))
        cleaning.delete_file(oldest)
        cleaning.forget(oldest)
        cleaning.let_go(oldest)

    async def after(on: Play) -> None:
        assert on.broker.state.store.reader.queue_range(HALF_TOPIC, 0) == (2, 6)
        assert on.part.halves.open_count == 2
        await each_comes_once(on, b"1", b"2", first=2)

    play(
        tmp_path,
        before,
        after,
        settings={"mappedFileSizeCommitLog": str(SEGMENT)},
        between=forgotten_offsets(tmp_path),
    )


def test_a_committed_message_that_has_lost_its_op_record_is_not_committed_again(tmp_path: Path) -> None:
    """Both are written at once, so a crash can only part them at the very end of the log."""
    halves: list[Half] = []

    async def before(on: Play) -> None:
        halves.extend([await on.half(1), await on.half(2)])
        half = on.part.halves.at(halves[0].log_offset)
        assert half is not None
        on.broker.state.door.append([on.part._committed(half)])

    async def after(on: Play) -> None:
        assert await on.ops() == [b"0"]
        assert on.part.halves.open_count == 1
        assert (await on.end(halves[0], COMMIT)).code == 1
        assert [message.body for message in await on.stored()] == [b"1"]

    play(tmp_path, before, after, between=forgotten_offsets(tmp_path))


def test_an_end_that_finds_no_room_at_a_start_is_noted_when_there_is_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or it would be forgotten with the next start: by then the committed message is the last of the log no more."""
    halves: list[Half] = []
    append, refusals = MessageStore.append, [StoreUnavailable("the disk is full")]

    def append_if_there_is_room(store: MessageStore, messages: Sequence[NewMessage]) -> list[Appended]:
        if refusals and messages[0].topic == OP_HALF_TOPIC:
            raise refusals[0]
        return append(store, messages)

    async def before(on: Play) -> None:
        halves.extend([await on.half(1), await on.half(2)])
        half = on.part.halves.at(halves[1].log_offset)
        assert half is not None
        on.broker.state.door.append([on.part._committed(half)])
        monkeypatch.setattr(MessageStore, "append", append_if_there_is_room)

    async def full(on: Play) -> None:
        assert on.part.halves.open_count == 1
        assert (await on.end(halves[1], COMMIT)).code == 1
        await fill(on.wire, 1)
        assert await on.ops() == []
        refusals.clear()
        await fill(on.wire, 1)
        reader = on.broker.state.store.reader
        await eventually(lambda: reader.queue_range(OP_HALF_TOPIC, 0)[1] == 1)

    async def after(on: Play) -> None:
        assert await on.ops() == [b"1"]
        assert on.part.halves.open_count == 1
        assert (await on.end(halves[1], COMMIT)).code == 1
        assert [message.body for message in await on.stored()] == [b"2"]

    play(tmp_path, before, full, after, between=forgotten_offsets(tmp_path))


def test_no_message_speaks_for_the_transaction_of_another(tmp_path: Path) -> None:
    """Whoever sends a message that looks committed does not end somebody's transaction by it."""

    async def before(on: Play) -> None:
        half = await on.half(1)
        other = b"UNIQ_KEY\x01other\x02"
        forged = NewMessage("T", 0, b"x", other, 0, COMMIT, 0, bytes(8), prepared_offset=half.log_offset)
        line = f"TRAN_PREPARED_QUEUE_OFFSET\x01{half.offset}\x02PGROUP\x01others\x02"
        heir = NewMessage(HALF_TOPIC, 0, b"y", line.encode(), 0, 0, on.clock.ms, bytes(8))
        on.broker.state.door.append([heir, forged])

    async def after(on: Play) -> None:
        assert on.part.halves.open_count == 2

    play(tmp_path, before, after, between=forgotten_offsets(tmp_path))


def test_a_message_that_names_the_line_of_another_is_stored_again_in_one_of_its_own(tmp_path: Path) -> None:
    """In a store of others a client may have written that.  Both are open once, also after a crash."""

    async def before(on: Play) -> None:
        other = await on.half(1)
        foreign_half(on, 2, line=other.offset)
        on.check_later()
        lines = [message.properties.get("TRAN_PREPARED_QUEUE_OFFSET") for message in await on.halves()]
        assert lines == [None, "0", "0", "1"]

    async def after(on: Play) -> None:
        assert on.part.halves.open_count == 2

    play(tmp_path, before, after, between=forgotten_offsets(tmp_path))


@pytest.mark.parametrize("body", [b"0,2,", b"0,2", b"2,0,17,-1,x,,"])
def test_op_records_of_all_versions_are_read(tmp_path: Path, body: bytes) -> None:
    """TX-05: since 5.1 one names several; others are not believed."""

    async def before(on: Play) -> None:
        for number in range(3):
            await on.half(number)
        on.broker.state.door.append([NewMessage(OP_HALF_TOPIC, 0, body, b"TAGS\x01d\x02", 0, 0, 0, bytes(8))])

    async def after(on: Play) -> None:
        assert on.part.halves.open_count == 1
        on.check_later()
        assert (await on.halves())[-1].body == b"1"

    play(tmp_path, before, after)


def test_nobody_else_says_what_is_settled(tmp_path: Path) -> None:
    """Also not with a pull, nor with the same pull again, which could have a plan by then."""

    async def act(on: Play) -> None:
        await on.half()
        fields = {"consumerGroup": GROUP, "topic": HALF_TOPIC, "queueId": "0", "commitOffset": "1"}
        assert (await on.wire.ask(Command(15, fields))).code == 16
        flags = ALL | PullFlag.COMMIT_OFFSET
        pull = pull_request(topic=HALF_TOPIC, group=GROUP, flags=flags, commit_offset=1)
        for _ in range(3):
            assert (await on.wire.ask(pull)).code == 16
        assert on.broker.state.offsets.query(GROUP, HALF_TOPIC, 0) is None

    play(tmp_path, act)


def test_nothing_counts_as_settled_before_what_was_stored_again_is_durable(tmp_path: Path) -> None:
    """Or power loss could take the copy, and the offsets would pass over the first one."""

    async def act(on: Play) -> None:
        await on.half()
        on.check_later()
        for _ in range(3):
            on.part.halves.keep_settled()
        assert on.broker.state.offsets.query(GROUP, HALF_TOPIC, 0) is None
        await on.settled()
        assert on.broker.state.offsets.query(GROUP, HALF_TOPIC, 0) == 1

    play(tmp_path, act)
