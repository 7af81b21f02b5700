"""What commands write, as a person at a terminal gets it."""

import io
import logging
import sys
from collections.abc import Callable

import pytest

from bolide.cli.logs import FORMAT, PrintableLines
from bolide.cli.output import say, say_error, write_json, write_json_line, write_line, write_table

ID = "7F0000015FA1257ECA984ACE66A50001"


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_table_is_never_cut(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    write_table(("STORED", "ID", "OFFSET", "BODY"), [("2026-01-31T10:00:00.000Z", ID, 42, "x" * 600)])
    shown = capsys.readouterr().out
    for value in ("2026-01-31T10:00:00.000Z", ID, " 42 ", "x" * 600):
        assert value in shown


def test_a_table_is_as_wide_as_it_must_be(capsys: pytest.CaptureFixture[str]) -> None:
    write_table(("NAME", "COUNT"), [("a", 1), ("bb", 22)])
    assert max(map(len, capsys.readouterr().out.splitlines())) < 20


EVIL = "pay\x1b[2J\u202e"


@pytest.mark.parametrize(
    "show",
    [
        lambda: write_table(("NAME",), [(EVIL,)]),
        lambda: write_line(EVIL),
        lambda: write_json({EVIL: EVIL}),
        lambda: write_json_line([EVIL]),
        lambda: say(EVIL),
        lambda: say_error(EVIL),
    ],
    ids=["table", "line", "json", "json line", "words", "error"],
)
def test_no_name_steers_the_terminal(show: Callable[[], None], capsys: pytest.CaptureFixture[str]) -> None:
    show()
    captured = capsys.readouterr()
    shown = captured.out + captured.err
    assert "pay\\" in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_a_name_in_the_log_neither_steers_nor_forges_a_line() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(PrintableLines(FORMAT))
    try:
        raise ValueError("\x1b[2J")
    except ValueError:
        record = logging.LogRecord(
            "bolide",
            logging.ERROR,
            __file__,
            1,
            "topic %s is odd",
            ("a\n2026 ERROR b\x1b[2J",),
            sys.exc_info(),
        )
    handler.handle(record)
    first, *traceback = stream.getvalue().splitlines()
    assert first.endswith(r"topic a\n2026 ERROR b\x1b[2J is odd")
    assert traceback[0].startswith("Traceback")
    assert "\x1b" not in stream.getvalue()
