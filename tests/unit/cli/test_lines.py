"""JSON lines as messages."""

from collections.abc import Callable

import pytest

from bolide.cli.later import When
from bolide.cli.layout import json_line
from bolide.cli.lines import Envelope
from bolide.cli.store_export import export_line
from bolide.model.errors import MessageIllegal
from bolide.record.stored import StoredMessage
from tests.unit.cli.samples import sample

ENVELOPE = Envelope("orders", tag="eu", keys=("7",), properties={"source": "cli"})


def test_a_line_of_text_is_a_body_with_the_shared_tag_keys_and_properties() -> None:
    message = ENVELOPE.text(b" hello ")
    assert (message.topic, message.body, message.tags) == ("orders", b" hello ", "eu")
    assert (list(message.keys), message.properties) == (["7"], {"source": "cli"})


def test_a_json_line_wins_over_what_is_shared() -> None:
    message = ENVELOPE.json(
        b'{"body": "x", "tag": "us", "keys": ["8", "9"], "properties": {"source": "web"}}'
    )
    assert (message.body, message.tags, list(message.keys)) == (b"x", "us", ["8", "9"])
    assert message.properties == {"source": "web"}


def test_a_delay_is_shared_and_one_that_is_over_is_not_copied() -> None:
    """What `tail --json` shows of a message that has waited, the broker's own pairs included."""
    assert Envelope("orders", when=When(delay_level=3)).text(b"x").delay_level == 3
    assert Envelope("orders", when=When(delay_level=3)).json(b'{"body": "x"}').delay_level == 3
    waited = b'{"body": "x", "properties": {"DELAY": "3", "REAL_TOPIC": "orders", "REAL_QID": "0", "a": "b"}}'
    assert ENVELOPE.json(waited).properties == {"source": "cli", "a": "b"}
    assert ENVELOPE.json(b'{"body": "x", "properties": {"DELAY": "3"}}').properties["DELAY"] == "3"


def test_other_spellings_and_structured_bodies_are_understood() -> None:
    message = ENVELOPE.json(b'{"body": {"id": 1}, "tags": "us", "key": "8"}')
    assert (message.body, message.tags, list(message.keys)) == (b'{"id":1}', "us", ["8"])


@pytest.mark.parametrize(
    "line",
    [
        b"hello",
        b"[1]",
        b"{}",
        b'{"tag": "x"}',
        b'{"body": ""}',
        b'{"body": "x", "tag": 1}',
        b'{"body": "x", "keys": {"a": 1}}',
        b'{"body": "x", "properties": {"a": 1}}',
        b'{"body_base64": "!!"}',
        b'{"body_base64": 5}',
    ],
)
def test_a_line_that_is_no_message_is_refused(line: bytes) -> None:
    with pytest.raises(MessageIllegal):
        ENVELOPE.json(line)


@pytest.mark.parametrize("write", [json_line, export_line])
def test_a_message_whose_body_did_not_unpack_is_shown_as_such_and_not_sent_on(
    write: Callable[[StoredMessage], bytes],
) -> None:
    line = write(sample(body=b"packed", body_error="the packed body is cut off"))
    with pytest.raises(MessageIllegal, match="did not unpack: the packed body is cut off"):
        Envelope("copy").json(line)


def test_what_the_timer_wrote_into_a_message_is_not_sent_on() -> None:
    line = b'{"topic": "T", "body": "x", "properties": {"TIMER_OUT_MS": "5", "TIMER_ENQUEUE_MS": "5", "own": "1"}}'
    assert Envelope("orders").json(line).properties == {"own": "1"}
