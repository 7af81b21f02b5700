"""The table of clients claims what tests show, and nothing else."""

import ast
from pathlib import Path

from tests.interop.clients_table import CLIENTS, ROWS, Cannot, Works, section

FOLDER = Path(__file__).parent


def _tests(path: Path) -> set[str]:
    """The tests of a file as the table writes them."""
    functions = (node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef))
    file = path.stem.removeprefix("test_")
    return {f"{file}::{name.removeprefix('test_')}" for name in functions if name.startswith("test_")}


def _named() -> list[str]:
    return [test for row in ROWS for cell in row[1:] if isinstance(cell, Works) for test in cell.tests]


def test_every_claim_is_shown_by_a_test_that_exists() -> None:
    existing = set[str]().union(*map(_tests, FOLDER.glob("test_*.py")))
    assert set(_named()) - existing == set()
    assert all(cell.tests for row in ROWS for cell in row[1:] if isinstance(cell, Works))


def test_every_test_of_the_go_and_the_node_client_stands_behind_a_claim() -> None:
    """What a client turned out not to do is shown by a test too, which the reason stands for."""
    paths = [*FOLDER.glob("test_go*.py"), *FOLDER.glob("test_node*.py")]
    shown = set[str]().union(*map(_tests, paths))
    assert shown - set(_named()) == {"node::a_send_to_an_unknown_topic_fails_with_the_servers_words"}


def test_the_section_has_a_line_for_each_feature_and_a_reason_for_each_gap() -> None:
    lines = section().splitlines()
    cells = [cell for row in ROWS for cell in row[1:]]
    gaps = sum(isinstance(cell, Cannot) or bool(cell.but) for cell in cells)
    assert len([line for line in lines if line.startswith("| ")]) == 2 + len(ROWS)
    assert len([line for line in lines if line[:1].isdigit()]) == gaps
    assert all(client in lines[0] for client in CLIENTS)
