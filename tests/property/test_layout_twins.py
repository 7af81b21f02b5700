"""Whoever walks over a record finds the same places, in Python and in compiled code.

Goal: one layout.  Method: random records, with hosts of both lengths and topics of both versions, are opened by
`layout.open_record` and by the two compiled readers, which together show every place of the compiled walk: what
dispatch needs comes from `inspect_record`, everything else from the columns.
"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bolide.arrow import _columns, columns_twin
from bolide.model.errors import MalformedRecord
from bolide.record import _codec
from bolide.record.layout import BATCH_ITEM, CHECK_LENGTHS, OpenRecord, open_record
from tests.property.test_record_twins import PARTS, encoded
from tests.property.twins import outcome

COLUMNS = tuple(columns_twin._COLUMN_TYPES)


def columns_of(module: Any, data: bytes, at: int) -> dict[str, list[bytes | None]]:
    builder = module.ColumnBuilder("broker", COLUMNS)
    builder.append(data, at, -(2**63), 2**63 - 1)
    return {
        name: [None if buffer is None else bytes(buffer) for buffer in buffers]
        for name, buffers in builder.take().items()
    }


@given(PARTS, st.binary(max_size=9), st.booleans())
def test_every_place_of_a_record_is_the_same_for_all(
    parts: dict[str, Any], before: bytes, sealed: bool
) -> None:
    data, at = before + encoded({**parts, "sealed": sealed}), len(before)
    record = open_record(data, at, len(data))
    for name in set(parts) & set(OpenRecord._fields) - {"sys_flag"}:
        assert getattr(record, name) == parts[name]
    assert data[record.topic_at : record.topic_end] == parts["topic"]
    assert data[record.body_at : record.body_end] == parts["body"]
    assert data[record.properties_at : record.end].startswith(parts["properties"])
    assert record.end == at + record.size == len(data)

    head: Any = _codec.inspect_record(data, at, len(data), CHECK_LENGTHS)
    for name in ("size", "queue_id", "queue_offset", "log_offset", "sys_flag", "store_timestamp_ms"):
        assert getattr(head, name) == getattr(record, name)
    assert head.topic == parts["topic"]
    assert (head.body_at, head.body_length) == (record.body_at - at, record.body_end - record.body_at)
    assert (head.properties_at, head.properties_length) == (
        record.properties_at - at,
        record.end - record.properties_at,
    )
    compiled, twin = (outcome(columns_of, module, data, at) for module in (_columns, columns_twin))
    assert compiled == twin


@given(PARTS, st.data())
def test_lengths_that_do_not_agree_are_found_by_all_and_told_alike(
    parts: dict[str, Any], data: st.DataObject
) -> None:
    record = bytearray(encoded(parts))
    for _ in range(data.draw(st.integers(1, 3))):
        record[data.draw(st.integers(0, len(record) - 1))] = data.draw(
            st.sampled_from([0, 1, 0x7F, 0x80, 0xFF])
        )
    del record[data.draw(st.integers(len(record) // 2, len(record))) :]
    plain = outcome(open_record, record, 0, len(record))
    found = _codec.inspect_record(record, 0, len(record), CHECK_LENGTHS)
    assert (plain[0] == "gave") == isinstance(found, _codec.RecordHead)
    compiled, twin = (outcome(columns_of, module, bytes(record), 0) for module in (_columns, columns_twin))
    assert compiled == twin
    if plain[0] == "raised" and record:
        assert plain[1][0] is MalformedRecord
        assert compiled == plain


def test_an_element_of_a_batch_begins_as_the_layout_says() -> None:
    item = BATCH_ITEM.pack(22 + 4 + 3, 1, 2, -7, 4) + b"body" + b"\0\3K\1v"
    assert _codec.split_batch(item) == [(-7, b"body", b"K\1v")]
