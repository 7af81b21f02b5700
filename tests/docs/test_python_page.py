"""docs/python.md names what there is: every error that an application can catch, every setting of every client."""

import re
from pathlib import Path

import pytest

import bolide
from tests.unit.client.misuse import CLIENTS, Client

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "python.md").read_text()


def first_cells(table: str) -> set[str]:
    """What stands in backticks in the first column of the table whose header has this there."""
    _, _, below = PAGE.partition(f"\n| {table} |")
    cells = [line.split("|")[1] for line in below.split("\n\n", 1)[0].splitlines()[2:]]
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


def test_every_error_that_is_exported_is_in_the_table() -> None:
    exported = {name: getattr(bolide, name) for name in bolide.__all__}
    errors = {
        name
        for name, one in exported.items()
        if isinstance(one, type) and issubclass(one, bolide.BolideError)
    }
    around = {"BolideError", "ClientError"}  # in the text around it
    raised_by_listeners = {"Later", "RetryLater", "Suspend"}
    assert errors - first_cells("error") == around | raised_by_listeners


@pytest.mark.parametrize("client", [one for one in CLIENTS if one.is_blocking], ids=str)
def test_every_setting_of_a_client_is_in_its_table(client: Client) -> None:
    named = first_cells(f"`{client.kind}`")
    if client.kind == "TransactionProducer":  # its table has what it takes more
        named |= first_cells("`Producer`")
    assert set(client.settings) - named == set()
