"""A record's bytes are declared once for Python and once for compiled code, and both say the same."""

import re
import struct
from itertools import accumulate

from bolide.model import message, pairs
from bolide.record import layout
from tests.unit.pxd import numbers_for_compiled_code

ROW = re.compile(r"^ +(\d+)(?:/\d+)? +(\d+)  (.+)$", re.MULTILINE)


def test_the_numbers_for_compiled_code_are_those_of_python() -> None:
    """What is no number of the layout is a bit of the sysFlag, or one of the characters between properties."""
    places = {
        name: value
        for name, value in vars(layout).items()
        if type(value) is int and name.isupper() and not name.startswith("_")
    }
    del places["PROPERTIES_BYTES_MAX"]  # the model's; here it is LENGTH_MAX
    others = {
        **{name: int(flag) for name, flag in message.SysFlag.__members__.items()},
        "TRANSACTION_MASK": message.TRANSACTION_MASK,
        "NAME_END": ord(pairs.NAME_END),
        "PAIR_END": ord(pairs.PAIR_END),
    }
    compiled = numbers_for_compiled_code(layout)
    assert compiled.keys() - others.keys() == places.keys()
    assert compiled == {name: (places | others)[name] for name in compiled}


def test_places_follow_from_the_fields_before_them() -> None:
    def ends(format: str) -> list[int]:
        return list(accumulate(struct.calcsize(">" + field) for field in format))

    names = ("MAGIC", "BODY_CRC", "QUEUE_ID", "FLAG", "QUEUE_OFFSET", "LOG_OFFSET", "SYS_FLAG")
    places = [getattr(layout, f"{name}_AT") for name in (*names, "BORN_TIMESTAMP", "BORN_HOST")]
    assert ends(layout.HEAD.format.lstrip(">")) == places
    assert ends("iqI") == [layout.PREPARED_OFFSET_AFTER, layout.BODY_LENGTH_AFTER, layout.BODY_AFTER]
    items = [layout.ITEM_FLAG_AT, layout.ITEM_BODY_LENGTH_AT, layout.ITEM_BODY_AT]
    assert ends(layout.BATCH_ITEM.format.lstrip(">"))[2:] == items
    body_at = (
        layout.BORN_HOST_AT + 2 * layout.HOST_V4_BYTES + layout.STORE_TIMESTAMP_BYTES + layout.BODY_AFTER
    )
    assert body_at + 1 + layout.PROPERTIES_LENGTH_BYTES == layout.FIXED_BYTES
    assert layout.BATCH_ITEM_FIXED_BYTES == layout.ITEM_BODY_AT + layout.PROPERTIES_LENGTH_BYTES
    checksum = layout.RECORD_CHECKSUM_NAME_BYTES + layout.RECORD_CHECKSUM_DIGITS + 1
    assert (len(layout.RECORD_CHECKSUM_NAME), checksum) == (
        layout.RECORD_CHECKSUM_NAME_BYTES,
        layout.RECORD_CHECKSUM_BYTES,
    )


def test_the_table_for_readers_is_right() -> None:
    assert layout.__doc__ is not None
    rows = [(int(size), int(at)) for size, at, _ in ROW.findall(layout.__doc__.partition("\n\nThe body")[0])]
    assert [at for _, at in rows] == [0, *accumulate(size for size, _ in rows)][: len(rows)]
    assert sum(rows[-1]) == 88
