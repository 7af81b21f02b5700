"""Both implementations of the look at properties and checksums find the same.

Goal: one verdict, whichever is installed.  Method: records with and without checksums and with odd properties, damaged
anywhere, are looked over by both, from any record on, until nothing is left.
"""

from hypothesis import given, settings
from hypothesis import strategies as st

from bolide.record.codec_twin import encode_record
from tests.property.twins import TEXTS, outcome

V4 = bytes((127, 0, 0, 1, 0, 0, 42, 159))
TEXT = st.sampled_from(
    [b"", b"a\x01b\x02", b"a\x01b", b"a", b"\x01b\x02", b"\x02\x02a\x01\x02", b"a\x02", b"a\x01b\x01c\x02"]
)
RECORD = st.tuples(TEXT | st.binary(max_size=12), st.sampled_from([True, True, True, False]))
DAMAGE = st.tuples(st.floats(0, 1), st.integers(1, 30), st.sampled_from([0, 1, 2, 0xFF]))


def segment_of(records: list[tuple[bytes, bool]]) -> bytearray:
    data = bytearray()
    for number, (properties, sealed) in enumerate(records):
        data += encode_record(
            topic=b"T",
            body=b"body",
            properties=properties,
            queue_id=0,
            flag=0,
            queue_offset=number,
            log_offset=len(data),
            sys_flag=0,
            born_timestamp_ms=1,
            born_host=V4,
            store_timestamp_ms=1,
            store_host=V4,
            reconsume_times=0,
            prepared_offset=0,
            sealed=sealed,
        )
    return data


@settings(max_examples=300)
@given(st.lists(RECORD, max_size=8), st.lists(DAMAGE, max_size=2), st.booleans(), st.integers(-1, 1500))
def test_both_find_the_same(
    records: list[tuple[bytes, bool]], damages: list[tuple[float, int, int]], sealed: bool, limit: int
) -> None:
    data = segment_of(records)
    for place, count, value in damages:
        at = int(place * len(data))
        data[at : at + count] = bytes((value,)) * len(data[at : at + count])
    view = memoryview(bytes(data))
    position = 0
    for _ in range(20):
        compiled, readable = (outcome(twin.check_texts, view, position, limit, sealed) for twin in TEXTS)
        assert compiled == readable
        if compiled[0] == "raised" or compiled[1][1] == 0:
            return
        size = int.from_bytes(view[compiled[1][0] : compiled[1][0] + 4], "big")
        position, sealed = compiled[1][0] + size, compiled[1][2]


def test_a_negative_position_is_refused_by_both() -> None:
    answers = {outcome(twin.check_texts, memoryview(b"x"), -1, 5, True) for twin in TEXTS}
    assert [kind for kind, _ in answers] == ["raised"]
