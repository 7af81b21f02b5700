"""The format language of `bolide tail -f`, its JSON, and what a terminal may see."""

import base64
import json

import pytest

from bolide.cli.layout import DIRECTIVES, compile_format, json_line
from bolide.cli.lines import Envelope
from bolide.cli.store_export import export_line
from bolide.cli.tail import tail
from bolide.model.errors import ConfigError
from tests.unit.cli.samples import SAMPLE, sample


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (r"%t %q %o %k %T %v\n", b"orders 3 17 42 43 eu paid 42\n"),
        ("%b|%i|%l|%r|%h", b"broker-a|AB01|7|2|10.0.0.9:5000"),
        ("%s %S %B", b"2023-11-14T22:13:20.123Z 1700000000123 1700000000000"),
        ("%v{hex} %v{base64}", b"70616964203432 cGFpZCA0Mg=="),
        ("%p{source},%p{missing},", b"web,,"),
        (r"100%% \\ \t\0", b"100% \\ \t\0"),
        ("no marks: é", "no marks: é".encode()),
        ("", b""),
    ],
)
def test_marks_become_the_parts_of_a_message(text: str, written: bytes) -> None:
    assert compile_format(text)(SAMPLE) == written


@pytest.mark.parametrize("text", ["%z", "%", "a\\", r"\q", "%v{xml}", "%t{x}", "%%{x}"])
def test_a_format_that_cannot_be_meant_is_refused_before_the_first_message(text: str) -> None:
    with pytest.raises(ConfigError, match="format"):
        compile_format(text)


def test_bodies_stay_bytes() -> None:
    assert compile_format("%v")(sample(body=b"\xff\x00")) == b"\xff\x00"


def test_a_body_that_does_not_unpack_is_marked_and_given_as_bytes_only_when_these_are_asked_for() -> None:
    bad = sample(body=b"\x1b\0packed", body_error="it is cut off")
    assert compile_format(r"%o %v\n")(bad) == b"17 [bad body of 8 bytes: it is cut off]\n"
    assert compile_format("%v{hex} %l")(bad) == b"1b007061636b6564 8"


@pytest.mark.parametrize("body", [b"\x1b\0packed", b"it happens to be text", b"\xff"])
def test_a_body_that_does_not_unpack_is_base64_in_every_json_line_with_the_reason(body: bytes) -> None:
    bad = sample(body=body, body_error="it is cut off")
    for write, reason in ((json_line, "body_error"), (export_line, "bodyError")):
        members = json.loads(write(bad))
        assert "body" not in members
        assert base64.b64decode(members["body_base64"]) == body
        assert members[reason] == "it is cut off"


def test_every_mark_is_explained_in_the_help() -> None:
    assert tail.__doc__ is not None
    assert [mark for mark in DIRECTIVES if f"%{mark} " not in tail.__doc__] == []


def test_json_carries_everything_and_binary_bodies_as_base64() -> None:
    members = json.loads(json_line(SAMPLE))
    assert members["body"] == "paid 42"
    assert (members["queue"], members["offset"], members["tag"]) == (3, 17, "eu")
    assert members["keys"] == ["42", "43"]
    binary = json.loads(json_line(sample(body=b"\xff\xfe")))
    assert "body" not in binary
    assert binary["body_base64"] == "//4="


@pytest.mark.parametrize("body", [b"text", b"\xff\x00\xfe", "é".encode()])
def test_what_tail_writes_as_json_send_reads_as_the_same_message(body: bytes) -> None:
    message = Envelope("copy").json(json_line(sample(body=body)))
    assert (message.topic, message.body, message.tags) == ("copy", body, "eu")
    assert list(message.keys) == ["42", "43"]
    assert message.properties == {"source": "web"}
