"""Python clients and messages for a time of their own: what goes out, what is refused here, and recalling one."""

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bolide import InvalidRequest, Message, MessageIllegal, Producer, PullConsumer, RemoteError
from bolide.client.outgoing import prepare, prepare_batch
from bolide.model.pairs import parse_properties
from bolide.model.recall import RecallHandle, decode_handle
from bolide.testing import EmbeddedServer


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        ({"deliver_at": 1_700_000_000_123}, "TIMER_DELIVER_MS", "1700000000123"),
        ({"deliver_at": datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)}, "TIMER_DELIVER_MS", "1700000000000"),
        ({"delay": 1.5}, "TIMER_DELAY_MS", "1500"),
        ({"delay": 0.0001}, "TIMER_DELAY_MS", "1"),
        ({"delay": timedelta(days=1)}, "TIMER_DELAY_MS", "86400000"),
    ],
)
def test_a_time_goes_out_as_the_property_for_it(given: dict[str, Any], name: str, value: str) -> None:
    outgoing = prepare(Message("orders", b"x", **given), "id")
    assert parse_properties(outgoing.properties) == {name: value, "UNIQ_KEY": "id"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"deliver_at": 1, "delay": 1}, "a deliver_at or a delay, not both"),
        (
            {"deliver_at": "tomorrow"},
            "deliver_at is a datetime, or milliseconds since 1970, not str 'tomorrow'",
        ),
        ({"deliver_at": 1_700_003_600}, "in milliseconds, and 1700003600 looks like seconds: 1700003600000?"),
        (
            {"deliver_at": datetime.fromisoformat("0001-01-01")},
            "deliver_at is a moment that no clock can tell",
        ),
        ({"delay": 1, "delay_level": 3}, "a delay or a delay_level, not both"),
        ({"deliver_at": 1, "delay_level": 3}, "a deliver_at or a delay_level, not both"),
        ({"delay": -1}, "delay is a timedelta, or seconds from 0 to"),
        ({"delay": float("nan")}, "delay is a timedelta"),
        ({"delay": True}, "delay is a timedelta"),
        ({"delay": 5, "properties": {"TIMER_DELAY_MS": "7"}}, "give it once, as delay"),
    ],
)
def test_what_is_no_time_is_refused_with_words(given: dict[str, Any], said: str) -> None:
    with pytest.raises(MessageIllegal) as raised:
        prepare(Message("orders", b"x", **given), "id")
    assert said in str(raised.value)


def test_a_message_with_a_time_goes_alone() -> None:
    with pytest.raises(MessageIllegal, match="cannot be part of a batch"):
        prepare_batch([Message("orders", b"x", delay=1)], ["id"])


def test_a_handle_is_what_the_original_makes_of_it() -> None:
    handle = RecallHandle("T", "broker-a", 1_700_000_000_001, "UK")
    assert handle.encode() == "djEgVCBicm9rZXItYSAxNzAwMDAwMDAwMDAxIFVL"
    assert decode_handle(handle.encode()) == handle
    for wrong in ("", "x", "djEg", "a" * 5000, RecallHandle("T", "b", 1, "k k").encode(), "djIgVCBiIDEgaw=="):
        with pytest.raises(InvalidRequest):
            decode_handle(wrong)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("v1 T b 1700000000001 ", "names no message"),
        ("v1 T b soon UK", "'soon' is no time"),
        ("v1 T b 9223372036854775808 UK", "'9223372036854775808' is no time"),
        ("v2 T b 1 UK", "version 'v2' is not known here"),
    ],
)
def test_a_handle_that_is_none_is_told_what_is_wrong_with_it(text: str, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        decode_handle(base64.urlsafe_b64encode(text.encode()).decode())


def test_a_message_is_recalled_and_another_comes_in_time() -> None:
    """TM-02"""
    with (
        EmbeddedServer(settings={"recallMessageEnable": "true"}) as server,
        Producer(server.nameserver) as producer,
        PullConsumer(server.nameserver, group="readers") as reader,
    ):
        recalled = producer.send(Message("orders", b"recalled", delay=2.2))
        assert recalled.recall_handle is not None
        assert producer.recall(recalled.recall_handle) == recalled.message_id
        another = producer.send(Message("orders", b"recalled too", delay=2.2), queue=recalled.queue)
        assert producer.recall(another) == another.message_id
        kept = producer.send(Message("orders", b"kept", delay=2.5), queue=recalled.queue)
        at_once = producer.send(Message("orders", b"now"))
        assert at_once.recall_handle is None
        found = reader.pull(kept.queue, 0, wait_ms=10_000)
        assert [message.body for message in found.messages] == [b"kept"]
        for nothing in (None, at_once):
            with pytest.raises(InvalidRequest, match="only timed messages have a handle"):
                producer.recall(nothing)
        with pytest.raises(InvalidRequest, match="receipt is a SendReceipt, or its recall_handle, not int 7"):
            producer.recall(7)  # type: ignore[arg-type]
        with pytest.raises(RemoteError, match="too late"):
            producer.recall(recalled.recall_handle)
