"""docs/spark.md has a row for every option of a read, and for no other."""

import re
from pathlib import Path

from bolide.pipeline.option_table import OPTIONS, Use
from bolide.pipeline.schema import COLUMNS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "spark.md").read_text()


def first_cells(heading: str) -> list[str]:
    """The names in the first column of all tables of a section."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]


def test_every_option_of_a_read_is_in_the_page() -> None:
    assert sorted(first_cells("Options")) == sorted(
        option.name for option in OPTIONS if option.uses & Use.READ
    )


def test_every_column_is_in_the_page() -> None:
    assert first_cells("Columns") == list(COLUMNS)
