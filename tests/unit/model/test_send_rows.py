"""The columns of a run are the same for Python and for compiled code."""

import re
from pathlib import Path

from bolide.model import send_rows

PXD = Path(send_rows.__file__).with_suffix(".pxd")


def test_the_numbers_for_compiled_code_are_those_of_the_module() -> None:
    compiled = {
        name: int(value) for name, value in re.findall(r"^    (\w+) = (\d+)$", PXD.read_text(), re.MULTILINE)
    }
    plain = {name: value for name, value in vars(send_rows).items() if name.isupper()}
    assert compiled == plain


def test_columns_are_numbered_without_gaps() -> None:
    names = [
        name
        for name in vars(send_rows)
        if name.isupper() and not name.startswith(("KIND_", "ROWS", "RECORDS_MAX"))
    ]
    assert sorted(getattr(send_rows, name) for name in names) == list(range(send_rows.COLUMNS + 1))
