"""The columns of a run are the same for Python and for compiled code."""

from types import ModuleType

import pytest

from bolide.model import end_rows, send_rows
from tests.unit.pxd import numbers_for_compiled_code


@pytest.mark.parametrize("module", [send_rows, end_rows])
def test_the_numbers_for_compiled_code_are_those_of_the_module(module: ModuleType) -> None:
    plain = {name: value for name, value in vars(module).items() if name.isupper()}
    assert numbers_for_compiled_code(module) == plain


def test_columns_are_numbered_without_gaps() -> None:
    names = [
        name
        for name in vars(send_rows)
        if name.isupper() and not name.startswith("KIND_") and not name.endswith("_MAX")
    ]
    assert sorted(getattr(send_rows, name) for name in names) == list(range(send_rows.COLUMNS + 1))
