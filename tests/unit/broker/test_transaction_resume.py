"""Half messages that are given up, and what an operator opens again (323)."""

from pathlib import Path

from bolide.model.names import TRANS_CHECK_MAX_TOPIC
from bolide.wire.command import Command
from tests.unit.broker.stage import send_request
from tests.unit.broker.transaction_stage import COMMIT, ROLLBACK, Half, Play, forgotten_offsets, play
from tests.unit.net.stage import eventually


def test_a_half_message_is_given_up_after_so_many_checks_and_can_be_resumed(tmp_path: Path) -> None:
    """TX-03, and 323."""

    async def act(on: Play) -> None:
        await on.half()
        for times in (1, 2):
            on.check_later()
            assert (await on.halves())[-1].properties["TRANSACTION_CHECK_TIMES"] == str(times)
        on.check_later()
        (given_up,) = await on.stored(TRANS_CHECK_MAX_TOPIC, 0)
        assert (given_up.body, given_up.properties["REAL_TOPIC"]) == (b"1", "T")
        assert (on.part.halves.open_count, len(await on.halves())) == (0, 3)
        assert on.part.figures()["halfMessagesGivenUp"] == "1"
        resume = Command(323, {"msgId": given_up.offset_message_id, "topic": "T"}, opaque=3)
        assert (await on.wire.ask(resume)).code == 0
        half = (await on.halves())[-1]
        assert half.properties["TRANSACTION_CHECK_TIMES"] == "0"
        assert (await on.end(Half(int(half.queue_offset), int(half.log_offset)), COMMIT)).code == 0
        assert len(await on.stored()) == 1

    play(tmp_path, act, settings={"transactionCheckMax": "2"})


def test_what_was_resumed_or_ended_is_told_of_when_it_is_synced(tmp_path: Path) -> None:
    async def act(on: Play) -> None:
        store = on.broker.state.store
        half = await on.half()
        on.check_later()
        await eventually(lambda: store.marks.durable > store.log.last_record)  # before, nobody can read it
        open_one = (await on.halves())[0].offset_message_id
        assert (await on.wire.ask(Command(323, {"msgId": open_one}))).code == 0
        assert store.marks.durable > store.log.last_record
        assert (await on.end(half, COMMIT)).code == 0
        assert store.marks.durable > store.log.last_record

    play(tmp_path, act, settings={"flushDiskType": "SYNC_FLUSH"})


def test_what_was_given_up_is_resumed_once_also_after_a_crash(tmp_path: Path) -> None:
    """Or one message would be open, and committed, as often as somebody says 323."""
    resume = Command(323)

    async def before(on: Play) -> None:
        await on.half()
        on.check_later()
        on.check_later()
        (given_up,) = await on.stored(TRANS_CHECK_MAX_TOPIC, 0)
        resume.fields = {"msgId": given_up.offset_message_id}
        assert (await on.wire.ask(resume)).code == 0
        assert "resumed before" in ((await on.wire.ask(resume)).remark or "")
        assert on.part.halves.open_count == 1

    async def after(on: Play) -> None:
        assert (await on.wire.ask(resume)).code == 1
        on.check_later()
        assert (await on.wire.ask(resume)).code == 1
        assert on.part.halves.open_count == 1
        on.check_later()
        assert (await on.wire.ask(resume)).code == 1
        first, again = await on.stored(TRANS_CHECK_MAX_TOPIC, 0)
        assert first.offset_message_id == resume.fields["msgId"]
        assert (await on.wire.ask(Command(323, {"msgId": again.offset_message_id}))).code == 0
        assert on.part.halves.open_count == 1

    play(tmp_path, before, after, settings={"transactionCheckMax": "1"}, between=forgotten_offsets(tmp_path))


def test_resuming_an_open_half_message_is_stored_only_if_it_changes_something(tmp_path: Path) -> None:
    """A request of a few bytes must not store megabytes each time."""

    async def act(on: Play) -> None:
        await on.half()
        on.check_later()
        resume = Command(323, {"msgId": (await on.halves())[0].offset_message_id})
        for _ in range(3):
            assert (await on.wire.ask(resume)).code == 0
        checks = [message.properties.get("TRANSACTION_CHECK_TIMES") for message in await on.halves()]
        assert checks == [None, "1", "0"]
        assert on.part.halves.open_count == 1

    play(tmp_path, act)


def test_only_half_messages_are_resumed(tmp_path: Path) -> None:
    """The original makes one of any message, which its group would then be asked about."""

    async def act(on: Play) -> None:
        plain = (await on.wire.ask(send_request())).fields["msgId"]
        half = await on.half()
        ended = (await on.halves())[0].offset_message_id
        assert (await on.wire.ask(Command(323, {"msgId": ended}))).code == 0
        assert on.part.halves.open_count == 1
        assert (await on.end(half, ROLLBACK)).code == 0
        for bad in (plain, ended, plain[:-1] + "9", "", "0" * 32, "x"):
            assert (await on.wire.ask(Command(323, {"msgId": bad}))).code != 0
        assert on.part.halves.open_count == 0

    play(tmp_path, act)
