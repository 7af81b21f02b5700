"""CONTRIBUTING.md says where tests stand."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = re.compile(r"^\| `tests/(\w+)` \|", re.MULTILINE)


def test_every_folder_of_tests_stands_in_the_table() -> None:
    told = FOLDER.findall((ROOT / "CONTRIBUTING.md").read_text())
    there = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and any(path.rglob("*.*"))}
    assert sorted(told) == sorted(there - {"__pycache__"})
