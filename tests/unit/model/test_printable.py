"""What strangers wrote is shown, and steers nothing."""

import json

import pytest

from bolide.model.errors import RemoteError
from bolide.model.printable import printable, printable_bytes, printable_json, printable_lines

STEERING = ["\x1b[2J", "\x07", "\r", "\x7f", "\x9b31m", "\u202e", "\u2066", "\u061c", "\u2028", "\udc9b"]


@pytest.mark.parametrize("text", STEERING)
def test_what_steers_a_terminal_becomes_an_escape(text: str) -> None:
    for shown in (printable(f"a{text}b"), printable_lines(f"a{text}b")):
        assert text[0] not in shown
        assert shown.startswith("a\\")
        assert shown.endswith(text[1:] + "b")


@pytest.mark.parametrize(
    "text", ["orders", "注文\u3000一覧", "zażółć", "👩\u200d🚀", "a b", r"C:\x1b", "می\u200cخواهم"]
)
def test_what_can_be_seen_stays_as_it_is(text: str) -> None:
    assert printable(text) == printable_lines(text) == text
    assert printable_bytes(text.encode()) == text.encode()


def test_one_line_stays_one_line_and_lines_stay_lines() -> None:
    assert printable("a\nERROR b\tc") == r"a\nERROR b\tc"
    assert printable_lines("a\nb\tc") == "a\nb\tc"


def test_bytes_that_are_no_text_are_shown_by_their_numbers() -> None:
    assert printable_bytes(b"\x1b]0;evil\x07 tab\t and\nline") == rb"\x1b]0;evil\x07 tab" + b"\t and\nline"
    assert printable_bytes("é \x9b31m".encode() + b"\xff") == "é ".encode() + rb"\x9b31m\xff"


def test_an_error_shows_a_remark_that_steers_no_terminal() -> None:
    error = RemoteError(1, "no\x1b[2J\nway")
    assert str(error) == "SYSTEM_ERROR (1): no\\x1b[2J\\nway"
    assert error.remark == "no\x1b[2J\nway"


def test_json_means_the_same_afterwards() -> None:
    value = {"\x9bname": ["\u202e", "\x7f", "\x1b", "é"]}
    shown = printable_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(shown) == value
    assert printable(shown) == shown
