"""A file is about one noun and a function fits a screen."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.arch import cython, house

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70
CODE = (".py", ".pyx", ".pxi", ".pxd", ".pyi", ".java", ".go", ".js", ".mjs")


def test_a_file_has_at_most_500_lines() -> None:
    """Longer than that there is a second noun in it."""
    lines = {house.name_of(path): len(path.read_text().splitlines()) for path in house.files(*CODE)}
    assert {name: count for name, count in lines.items() if count > FILE_LINES_MAX} == {}


def test_a_function_has_at_most_70_lines() -> None:
    lines = {
        f"{house.name_of(path)}:{function.lineno} {function.name}": _lines(function)
        for path in house.files(".py")
        for function in _functions(path)
    } | {
        f"{house.name_of(path)}:{function.line} {function.name}": function.lines
        for path in house.files(".pyx", ".pxi")
        for function in cython.functions(path)
    }
    assert {name: count for name, count in lines.items() if count > FUNCTION_LINES_MAX} == {}


def _functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert function.end_lineno is not None
    return function.end_lineno - function.lineno + 1
