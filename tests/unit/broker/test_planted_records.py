"""A body that looks like a record: whoever names its place names no message."""

from pathlib import Path

import pytest

from bolide.model.names import HALF_TOPIC, TIMER_TOPIC, TRANS_CHECK_MAX_TOPIC
from bolide.model.offsets import LogOffset
from bolide.record.layout import BODY_AFTER, BORN_HOST_AT, HOST_V4_BYTES, STORE_TIMESTAMP_BYTES
from bolide.record.message_id import format_offset_id
from bolide.store.new_message import NewMessage
from bolide.wire.command import Command
from tests.unit.broker.stage import send_request
from tests.unit.broker.transaction_stage import COMMIT, MAKERS, Half, Play, half_properties, play

BODY_AT = BORN_HOST_AT + 2 * HOST_V4_BYTES + STORE_TIMESTAMP_BYTES + BODY_AFTER
HOST = bytes((127, 0, 0, 1, 0, 0, 0, 9))


async def plant(on: Play, topic: str, number: int, **pairs: str) -> int:
    """Send a body that is a whole record; its place."""
    at = int(on.broker.state.store.log.end) + BODY_AT
    properties = half_properties(1, **pairs).encode()
    message = NewMessage(topic, 0, b"planted", properties, 0, 0, 1, HOST)
    answer = await on.wire.ask(send_request(message.record(number, at, on.clock.ms, HOST, sealed=False)))
    assert answer.code == 0
    assert on.broker.state.store.reader.head_at(at) is not None, "it does not look like a record"
    return at


def test_it_ends_no_transaction_and_writes_into_no_topic_of_the_broker(tmp_path: Path) -> None:
    async def act(on: Play) -> None:
        mine = await on.half()
        at = await plant(on, HALF_TOPIC, mine.offset, REAL_TOPIC=TIMER_TOPIC, REAL_QID="0")
        end = on.broker.state.store.log.end
        assert (await on.end(Half(mine.offset, at), COMMIT, group=MAKERS)).code != 0
        assert on.broker.state.store.log.end == end
        assert (await on.end(mine, COMMIT)).code == 0, "the half message itself is still open"

    play(tmp_path, act)


@pytest.mark.parametrize("topic", ["T", HALF_TOPIC, TRANS_CHECK_MAX_TOPIC])
def test_it_is_neither_sent_back_nor_consumed_nor_asked_for_again(tmp_path: Path, topic: str) -> None:
    async def act(on: Play) -> None:
        at = await plant(on, topic, 0)
        named = format_offset_id(on.broker.state.identity.store_host, LogOffset(at))
        end = on.broker.state.store.log.end
        for code, fields in (
            (36, {"offset": str(at), "group": "billing", "delayLevel": "0"}),
            (309, {"consumerGroup": "billing", "clientId": "one", "msgId": named, "topic": "T"}),
            (323, {"msgId": named, "topic": "T"}),
        ):
            answer = await on.wire.ask(Command(code, fields, opaque=code))
            assert answer.code != 0
            assert "no" in (answer.remark or "")
        assert on.broker.state.store.log.end == end

    play(tmp_path, act)
