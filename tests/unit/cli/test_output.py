"""Tables as a person at a narrow terminal gets them."""

import sys

import pytest

from bolide.cli.output import write_table

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
