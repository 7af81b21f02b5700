"""Entries of queues and of the index are declared once for Python and once for compiled code, and both say the same."""

import struct
from itertools import accumulate
from types import ModuleType

import pytest

from bolide.store import index_layout, queue_entry
from bolide.store.timer import layout as timer_layout
from tests.unit.pxd import numbers_for_compiled_code


def places(fields: struct.Struct) -> list[int]:
    return [0, *accumulate(struct.calcsize(">" + field) for field in fields.format.lstrip(">"))]


@pytest.mark.parametrize("module", [queue_entry, index_layout, timer_layout])
def test_the_numbers_for_compiled_code_are_those_of_python(module: ModuleType) -> None:
    compiled = numbers_for_compiled_code(module)
    assert compiled == {name: getattr(module, name) for name in compiled}
    assert {name for name in vars(module) if name.endswith(("_AT", "_BYTES"))} <= compiled.keys()


def test_the_places_in_a_queue_entry_follow_from_its_fields() -> None:
    names = ("LOG_OFFSET_AT", "SIZE_AT", "TAGS_CODE_AT", "ENTRY_BYTES")
    assert [getattr(queue_entry, name) for name in names] == places(queue_entry.ENTRY)
    assert places(queue_entry.PLACE) == places(queue_entry.ENTRY)[:3]


def test_the_places_in_an_index_file_follow_from_its_fields() -> None:
    header = (
        "BEGIN_MS_AT",
        "END_MS_AT",
        "BEGIN_OFFSET_AT",
        "END_OFFSET_AT",
        "SLOTS_USED_AT",
        "NEXT_ENTRY_AT",
    )
    assert [getattr(index_layout, name) for name in (*header, "HEADER_BYTES")] == places(index_layout.HEADER)
    entry = ("HASH_AT", "LOG_OFFSET_AT", "SECONDS_AT", "OLDER_AT", "ENTRY_BYTES")
    assert [getattr(index_layout, name) for name in entry] == places(index_layout.ENTRY)
