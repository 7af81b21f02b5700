"""A file is about one noun and a function fits a screen."""

import ast
from pathlib import Path

import pytest

from tests.arch import house

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70
CODE = (".py", ".pyx", ".pxd", ".pyi", ".java", ".go", ".js", ".mjs")


@pytest.mark.parametrize("path", house.files(*CODE), ids=house.name_of)
def test_a_file_has_at_most_500_lines(path: Path) -> None:
    lines = len(path.read_text().splitlines())
    assert lines <= FILE_LINES_MAX, f"{lines} lines: what is the second noun?"


@pytest.mark.parametrize("path", house.files(".py"), ids=house.name_of)
def test_a_function_has_at_most_70_lines(path: Path) -> None:
    long = {
        node.name: lines
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES_MAX
    }
    assert not long
