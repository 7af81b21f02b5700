"""Which tests name which id."""

import ast
import re
from pathlib import Path

from tests.checklist.ids import IDS

TESTS = Path(__file__).parents[1]
_ID = re.compile(r"\b[A-Z]{2}[-_][0-9]{2}\b", re.IGNORECASE)


def covered() -> dict[str, list[str]]:
    """By id, the tests that name it in their name or docstring, or in the docstring of their file."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for name, text in _claims(path):
            for word in {one.upper().replace("_", "-") for one in _ID.findall(text)} & IDS.keys():
                found.setdefault(word, []).append(f"{path.relative_to(TESTS)}::{name}".removesuffix("::"))
    return found


def _claims(path: Path) -> list[tuple[str, str]]:
    tree = ast.parse(path.read_text())
    tests = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    ]
    claims = [(test.name, f"{test.name} {ast.get_docstring(test) or ''}") for test in tests]
    return [("", ast.get_docstring(tree) or ""), *claims]
