"""What sends may cost: messages of a batch, and queues that come into being."""

import struct
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from bolide.broker.app import Broker
from bolide.broker.handlers import send as send_module
from bolide.model.limits import BATCH_MESSAGES_MAX, BATCH_ODD_MESSAGES_MAX
from bolide.model.topic import TopicConfig
from bolide.store.new_message import NewMessage
from bolide.wire.command import COMPACT, Command, encode_frame
from tests.unit.broker.stage import batch_of, fill, properties_of, pull_request, send_request
from tests.unit.broker.test_send import play
from tests.unit.net.stage import Wire


def one_byte_messages(count: int) -> bytes:
    """As many as there can be in four MiB: no properties, a body of one byte."""
    return struct.pack(">IIIiIcH", 23, 0, 0, 0, 1, b"x", 0) * count


@pytest.mark.parametrize("form", [0, COMPACT])
@pytest.mark.parametrize("topic", ["T", "New"])
@pytest.mark.parametrize("count", [BATCH_MESSAGES_MAX, BATCH_MESSAGES_MAX + 1])
def test_a_batch_of_plain_messages_has_so_many_whether_its_topic_is_new_or_not(
    tmp_path: Path, count: int, topic: str, form: int
) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 1)
        batch = batch_of(b"a") * count
        with mock.patch.object(send_module, "NewMessage", side_effect=AssertionError("one by one")):
            answer = await wire.ask(send_request(batch, 9, batch=True, topic=topic, queue_id=1, form=form))
        end = broker.state.store.reader.queue_range(topic, 1)[1]
        if count > BATCH_MESSAGES_MAX:
            assert (answer.code, "send fewer" in (answer.remark or ""), end) == (13, True, 0)
        else:
            assert (answer.code, answer.fields["queueOffset"], end) == (0, "0", count)
            assert len(answer.fields["msgId"].split(",")) == count

    play(tmp_path, act, {"mappedFileSizeCommitLog": str(64 * 1024 * 1024)})


@pytest.mark.parametrize("count", [BATCH_ODD_MESSAGES_MAX, BATCH_ODD_MESSAGES_MAX + 1, 182_000])
def test_a_batch_whose_messages_need_decisions_has_fewer(tmp_path: Path, count: int) -> None:
    """Each of them gets a unique key.  Too many are counted, and nothing is made of them."""

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 1)
        with mock.patch.object(send_module, "NewMessage", wraps=NewMessage) as made:
            answer = await wire.ask(send_request(one_byte_messages(count), 9, batch=True))
        end = broker.state.store.reader.queue_range("T", 0)[1]
        if count > BATCH_ODD_MESSAGES_MAX:
            assert (answer.code, end, made.call_count) == (13, 1, 0)
            assert "send fewer" in (answer.remark or "")
        else:
            assert (answer.code, end) == (0, 1 + count)

    play(tmp_path, act)


def test_a_batch_behind_others_that_fills_a_run_is_a_run_of_its_own(tmp_path: Path) -> None:
    """Not the general path: it would be refused there for its length."""

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 1)
        half = batch_of(b"a") * (BATCH_MESSAGES_MAX // 2 + 1)
        requests = [send_request(half, number, batch=True) for number in range(3)]
        wire.send(*requests)
        answers = [await wire.next() for _ in requests]
        assert [answer.code for answer in answers] == [0, 0, 0]
        assert broker.state.store.reader.queue_range("T", 0)[1] == 1 + 3 * (BATCH_MESSAGES_MAX // 2 + 1)

    play(tmp_path, act, {"mappedFileSizeCommitLog": str(64 * 1024 * 1024)})


def test_a_queue_is_made_by_its_first_message_and_by_nothing_else(tmp_path: Path) -> None:
    """Sends make that queue, in either way; questions about others, and what is refused, make none."""

    async def act(broker: Broker, wire: Wire) -> None:
        broker.state.topics.put(TopicConfig("wide", 16_384, 16_384))
        await fill(wire, 1, topic="wide", queue_id=7)
        await fill(wire, 3, topic="wide", queue_id=7)
        assert (await wire.ask(send_request(topic="wide", queue_id=9, properties=""))).code == 0
        for queue_id in range(20, 40):
            pull = pull_request(0, topic="wide", queue_id=queue_id, group=f"g{queue_id}")
            assert (await wire.ask(pull)).code == 19
            for code in (29, 30, 31, 32, 14):
                fields = {"topic": "wide", "queueId": f"{queue_id}", "timestamp": "1", "consumerGroup": "g"}
                await wire.ask(Command(code, fields, opaque=1))
            refused = send_request(topic="wide", queue_id=queue_id, properties="DELAY\x01soon\x02")
            assert (await wire.ask(refused)).code == 13
        await wire.ask(Command(202, {"topic": "wide"}, opaque=1))
        assert [queue.tail.key for queue in broker.state.store.queues] == [("wide", 7), ("wide", 9)]
        assert [*broker.state.offsets.members()["pullOffsetTable"].entries] == []
        broker._behind._begin()
        assert {path.name for path in (tmp_path / "consumequeue" / "wide").iterdir()} <= {"7", "9"}

    play(tmp_path, act)


def test_messages_that_leave_the_choice_to_a_wide_topic_make_the_queues_they_reach(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        broker.state.topics.put(TopicConfig("wide", 1_000, 1_000))
        await fill(wire, 50, topic="wide", queue_id=-1)
        queues = [queue.tail.key[1] for queue in broker.state.store.queues]
        assert len(set(queues)) == len(queues) == 50

    play(tmp_path, act)


def test_the_answer_to_a_long_batch_can_say_that_its_sync_took_too_long() -> None:
    ids = ",".join(["7F0000010000" + "0" * 20] * BATCH_MESSAGES_MAX)
    frame = encode_frame(Command(0, {"msgId": ids}, opaque=7, flag=1))
    assert len(send_module._late(frame)) > len(frame)


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        (b"", {}),
        (b"x", {"queue_id": 1000}),
        (b"x", {"properties": "DELAY\x01soon\x02"}),
        (b"x", {"properties": "TRAN_MSG\x01true\x02"}),
        (b"x", {"properties": f"k\x01{'v' * 33_000}\x02"}),
    ],
)
def test_a_refused_message_costs_no_topic(tmp_path: Path, body: bytes, fields: dict[str, Any]) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        answer = await wire.ask(send_request(body, 9, topic="New", **fields))
        assert answer.code != 0
        assert broker.state.topics.get("New") is None

    play(tmp_path, act)


@pytest.mark.parametrize("zeros", [1, 600])
@pytest.mark.parametrize(
    "more", [{}, {"DELAY": "3"}, {"TRAN_MSG": "true", "PGROUP": "g"}], ids=["plain", "delayed", "half"]
)
def test_properties_with_zeros_in_them_are_refused(tmp_path: Path, zeros: int, more: dict[str, str]) -> None:
    """A recovery takes zeros for what a crash has left out, and would end the log before them."""

    async def act(broker: Broker, wire: Wire) -> None:
        pairs = "".join(f"{name}\x01{text}\x02" for name, text in {"a": "x" + "\0" * zeros, **more}.items())
        before = broker.state.store.log.end
        answer = await wire.ask(send_request(b"x", properties=properties_of(1) + pairs))
        assert (answer.code, "U+0000" in (answer.remark or "")) == (13, True)
        assert broker.state.store.log.end == before

    play(tmp_path, act)
