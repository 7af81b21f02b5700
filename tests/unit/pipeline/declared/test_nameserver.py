"""Whom a pipeline asks whose file does not say it: whom the command would ask."""

from pathlib import Path

import pytest

from bolide.model.usual_nameserver import NAMESERVER_VARIABLES, USUAL_NAMESERVER
from tests.unit.pipeline.declared.stage import loaded, problems

FILE = """\
    name: shop
    sources:
      orders: {topic: orders}
    sinks:
      copy: {from: orders, topic: copies}
    quarantine: {topic: bad}
"""


def asked(tmp_path: Path, text: str = FILE) -> list[str]:
    definition = loaded(tmp_path, text).definition
    assert definition is not None
    assert definition.quarantine is not None
    places = (definition.sources["orders"], definition.sinks["copy"], definition.quarantine)
    return [place.options["nameserver"] for place in places]


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, USUAL_NAMESERVER),
        ({"NAMESRV_ADDR": "theirs:1"}, "theirs:1"),
        ({"NAMESRV_ADDR": "theirs:1", "BOLIDE_NAMESERVER": "ours:1"}, "ours:1"),
    ],
    ids=["nobody", "theirs", "ours"],
)
def test_a_file_that_names_no_name_server_asks_the_one_that_commands_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: str
) -> None:
    for name in NAMESERVER_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert asked(tmp_path) == [expected] * 3
    assert not [one for one in problems(tmp_path, FILE) if "warning" not in one]


def test_what_the_file_says_wins_over_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOLIDE_NAMESERVER", "ours:1")
    whole = FILE.replace("name: shop", "name: shop\n    nameserver: whole:1")
    assert asked(tmp_path, whole) == ["whole:1"] * 3
    assert asked(tmp_path, whole.replace("topic: orders", "topic: orders, nameserver: 'one:1'")) == [
        "one:1",
        "whole:1",
        "whole:1",
    ]


def test_a_variable_that_is_no_address_is_told_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOLIDE_NAMESERVER", "zzz")
    told = "3: the source orders: BOLIDE_NAMESERVER: 'zzz' is not an address of the form host:port"
    assert told in problems(tmp_path, FILE)
    said = FILE.replace("name: shop", "name: shop\n    nameserver: whole:1")
    assert not any("zzz" in one for one in problems(tmp_path, said))
