"""The page of compatibility says what was seen and what the tables hold."""

import pytest

from bolide.wire.absent import ABSENT
from bolide.wire.codes import REQUESTS
from tests.docs import compatibility_page
from tests.interop.mqadmin import seen
from tests.interop.mqadmin.cases import CASES, NOT_HERE
from tests.peers import java


def test_the_page_is_written_from_the_tables_and_from_what_was_seen() -> None:
    assert compatibility_page.PAGE.read_text() == compatibility_page.rendered(), (
        "`make fix` writes docs/compatibility.md again"
    )


@pytest.mark.parametrize("version", java.VERSIONS)
def test_every_command_is_run_or_has_a_reason(version: str) -> None:
    commands = seen.load()[version]["commands"]
    run = {case.command for case in CASES}
    assert not run & NOT_HERE.keys()
    assert {
        command for command, outcome in commands.items() if not outcome
    } == commands.keys() & NOT_HERE.keys()
    assert commands.keys() <= run | NOT_HERE.keys()


@pytest.mark.parametrize("version", java.VERSIONS)
def test_at_least_95_of_100_commands_that_make_sense_here_work(version: str) -> None:
    works, of = compatibility_page.share(seen.load(), version)
    assert of >= 50
    assert works >= 0.95 * of


def test_every_request_code_is_served_or_has_a_reason() -> None:
    told = {number for version in java.VERSIONS for number in seen.load()[version]["codes"].values()}
    served = {int(code) for code in REQUESTS}
    assert told <= served | ABSENT.keys()
    assert not served & ABSENT.keys()


def test_a_request_has_the_original_s_name_and_number() -> None:
    numbers = seen.load()[java.LATEST]["codes"] | seen.load()[java.CLASSIC]["codes"]
    for code in REQUESTS:
        assert numbers.get(code.name, int(code)) == code
    for number, (name, _) in ABSENT.items():
        assert numbers[name] == number
