"""Both implementations of a pull's choice do exactly the same.

Goal: one behaviour, whichever is installed.  Method: the same entries and records, any of them bad in one way, are
looked at by both with the same filters and limits.
"""

import itertools
import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bolide.model.filter import EVERYTHING, Filter
from bolide.model.limits import EXAMINED_BYTES_MAX
from bolide.record.codec import encode_record
from bolide.record.layout import CHECK_LENGTHS, CHECK_SEALED, CHECK_SUMS, FIXED_BYTES, RECORD_CHECKSUM_BYTES
from tests.property.twins import COLLECTS, JUDGES, outcome
from tests.unit.filters import Contains

ENTRIES = st.lists(
    st.tuples(
        st.integers(0, 2000) | st.integers(-(2**63), 2**63 - 1),
        st.sampled_from([100, 100, 200, 0, -1, 0x7FFFFFFF, 2**31 - 2]),
        st.sampled_from([0, 1, 2, -(2**31)]),
    ),
    max_size=12,
).map(lambda entries: b"".join(struct.pack(">qiq", *entry) for entry in entries))


QUEUE_ID = 3
QUEUE_OFFSET = 70
DAMAGED_AT = {"size": 3, "magic": 7, "flag": 19, "body": 90}
STATES = [*DAMAGED_AT, "topic", "queue", "offset", "place", "gap", "zero", "nowhere", "negative"]
FEW, MANY = frozenset(range(100, 107)), frozenset(range(100, 108))
"""With one more they are as many as the compiled twin compares one by one, and one more than that."""

CODES = st.sampled_from([None, *map(frozenset, [{1}, {1, -(2**31)}, {5}, FEW | {1}, MANY | {1}, MANY | {5}])])


EXAMINERS = st.sampled_from(
    [None, None, Contains(b"\0\0\0\x46"), Contains(b"b" * 150), Contains(b"not there")]
)


def test_both_stop_examining_records_after_so_many_bytes_and_call_the_next_one_wanted() -> None:
    entries = b"".join(struct.pack(">qiq", number, 1, 0) for number in range(50))
    for module in COLLECTS:
        read: list[int] = []

        def read_at(log_offset: int, read: list[int] = read) -> bytes:
            read.append(log_offset)
            return bytes(EXAMINED_BYTES_MAX // 10)

        answer = module.first_wanted(entries, Filter(None, Contains(b"x")), 10**6, read_at)
        assert (answer, len(read)) == ((11, True), 11)


@given(ENTRIES, CODES, EXAMINERS, st.sampled_from([0, 500, 10**6, 2**63 - 1]))
@settings(max_examples=250)
def test_both_find_the_same_wanted_entry(
    entries: bytes, codes: frozenset[int] | None, examine: Contains | None, end: int
) -> None:
    """Records are read only for a filter that examines them; there is one at every even place."""
    answers = []
    for module in COLLECTS:
        read: list[int] = []

        def read_at(log_offset: int, read: list[int] = read) -> bytes | None:
            read.append(log_offset)
            return b"b" * (log_offset % 300) if log_offset % 2 == 0 else None

        answers.append((module.first_wanted(entries, Filter(codes, examine), end, read_at), read))
        assert examine is not None or read == []
    assert answers[0] == answers[1]


@given(ENTRIES, st.sampled_from([0, 500, 10**6, 2**63 - 1]))
@settings(max_examples=250)
def test_both_find_the_first_entry_of_each_code_which_is_the_one_that_a_filter_for_it_finds(
    entries: bytes, end: int
) -> None:
    compiled, twin = (module.first_by_code(entries, end) for module in COLLECTS)
    assert compiled == twin
    assert list(compiled[1]) == list(twin[1])
    for code, number in compiled[1].items():
        wanted = EVERYTHING if code is None else Filter(frozenset({code}))
        assert COLLECTS[0].first_wanted(entries, wanted, end, None) == (number, True)
    assert COLLECTS[0].first_wanted(entries, Filter(frozenset()), end, None) == (compiled[0], False)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([100, 100, 300]),
            st.sampled_from([0, 1, -(2**31)]),
            st.sampled_from(["sound"] * 9 + STATES),
        ),
        max_size=90,
    ),
    st.integers(0, 3),
    CODES,
    EXAMINERS,
    st.integers(0, 80),
    st.sampled_from([0, 150, 300, 10**9]),
    st.sampled_from([0, 1500, 10**6, 2**63 - 1]),
    st.sampled_from([0, 1000, 1100]),
    st.sampled_from([b"T", b"T", b""]),
    st.sampled_from([CHECK_LENGTHS, CHECK_SUMS, CHECK_SEALED]),
)
@settings(max_examples=400)
def test_both_collect_the_same_records_for_a_pull(
    parts: list[tuple[int, int, str]],
    first: int,
    codes: frozenset[int] | None,
    examine: Contains | None,
    count_max: int,
    size_max: int,
    end: int,
    start: int,
    topic: bytes,
    check: int,
) -> None:
    base = 1000
    segment, entries = stored(parts, base)
    limits = (first, Filter(codes, examine), count_max, size_max, end, start)
    where = (memoryview(segment), base, topic, QUEUE_ID, QUEUE_OFFSET + first, check)
    compiled, twin = (outcome(m.collect, entries, *limits, *where) for m in COLLECTS)
    assert compiled == twin


@given(
    st.lists(
        st.tuples(st.sampled_from([100, 300]), st.just(0), st.sampled_from(["sound"] * 3 + STATES)),
        max_size=60,
    ),
    st.sampled_from(["n = 1", "n > 0", "n IS NULL", "n = 'x' OR NOT (n < 2)", "n = '1' AND n > 0"]),
    st.integers(0, 40),
)
@settings(max_examples=200)
def test_both_collect_the_same_records_for_an_expression(
    parts: list[tuple[int, int, str]], expression: str, count_max: int
) -> None:
    """Compiled code asks a compiled expression where the properties lie; beside it the record is handed over."""
    segment, entries = stored(parts, 0)
    where = (memoryview(segment), 0, b"T", QUEUE_ID, QUEUE_OFFSET, CHECK_SUMS)

    def collected(collects: Any, examine: Callable[[bytes | memoryview], bool], weight: int) -> Any:
        wanted = Filter(None, examine, weight)
        return outcome(collects.collect, entries, 0, wanted, count_max, 10**6, 10**6, 0, *where)

    compiled, twin = (module.Judge(expression) for module in JUDGES)
    expected = collected(COLLECTS[1], twin, twin.weight)
    assert collected(COLLECTS[0], compiled, compiled.weight) == expected
    assert collected(COLLECTS[0], twin, twin.weight) == expected


@pytest.mark.parametrize("module", COLLECTS)
def test_an_expression_is_asked_no_more_once_so_many_bytes_were_examined(module: Any) -> None:
    segment, entries = stored([(100, 0, "sound")] * 9, 0)
    where = (memoryview(segment), 0, b"T", QUEUE_ID, QUEUE_OFFSET, CHECK_SUMS)
    heavy = EXAMINED_BYTES_MAX // len(b"n\x010\x02") // 4 + 1
    for judges in JUDGES:
        wanted = Filter(None, judges.Judge("n = 9"), heavy)
        assert module.collect(entries, 0, wanted, 9, 10**6, 10**6, 0, *where)[:2] == (4, 0)


def stored(parts: list[tuple[int, int, str]], base: int) -> tuple[bytearray, bytes]:
    """Records of a queue, the large ones with a checksum, and their entries; any may be bad in one way."""
    segment, entries = bytearray(), b""
    for number, (size, tags_code, state) in enumerate(parts):
        place = base + len(segment)
        sealed = size == 300
        properties = b"n\x01%d\x02" % (number % 3)
        checksum_bytes = RECORD_CHECKSUM_BYTES if sealed else 0
        record = bytearray(
            encode_record(
                topic=b"X" if state == "topic" else b"T",
                body=b"b" * (size - FIXED_BYTES - 1 - len(properties) - checksum_bytes),
                properties=properties,
                queue_id=QUEUE_ID + (state == "queue"),
                flag=0,
                queue_offset=QUEUE_OFFSET + number + (state == "offset"),
                log_offset=place + (state == "place"),
                sys_flag=0,
                born_timestamp_ms=1,
                born_host=bytes(8),
                store_timestamp_ms=2,
                store_host=bytes(8),
                reconsume_times=0,
                prepared_offset=0,
                sealed=sealed,
            )
        )
        if state in DAMAGED_AT:
            record[DAMAGED_AT[state]] ^= 1
        segment += record
        entry = {
            "gap": (place, 0x7FFFFFFF),
            "zero": (0, 0),
            "nowhere": (10**7, size),
            "negative": (-place, size),
        }.get(state, (place, size))
        entries += struct.pack(">qiq", *entry, tags_code)
    return segment, entries


@pytest.mark.parametrize("size", [100, 300])
@pytest.mark.parametrize("state", STATES)
def test_nothing_is_handed_out_that_is_not_the_message_asked_for(state: str, size: int) -> None:
    """An entry that points at no record, at another's, or at a damaged one does not hide the sound ones beside it."""
    parts = [(size, 0, "sound"), (size, 0, state), (size, 0, "sound")]
    segment, entries = stored(parts, 0)
    unseen = {("flag", CHECK_LENGTHS), ("body", CHECK_LENGTHS)}
    if size == 100:  # no checksum of the whole
        unseen.add(("flag", CHECK_SUMS))
    beside = bytes(segment[:size] + segment[2 * size :])
    for module, check in itertools.product(COLLECTS, (CHECK_LENGTHS, CHECK_SUMS)):
        where = (memoryview(segment), 0, b"T", QUEUE_ID, QUEUE_OFFSET, check)
        result = module.collect(entries, 0, EVERYTHING, 9, 10**6, 10**8, 0, *where)
        if state == "nowhere":  # perhaps in another segment: the pull ends before it
            assert result == (1, 1, 0, bytes(segment[:size]))
        elif state in {"gap", "zero", "negative"}:
            assert result == (3, 2, 0, beside)
        elif (state, check) in unseen:
            assert result == (3, 3, 0, bytes(segment))
        else:
            assert result == (3, 2, 1, beside)


def test_a_filter_is_asked_before_bodies_are_read_and_what_it_does_not_want_is_passed_over() -> None:
    """Of one that it wants and whose body is damaged, only the damage counts."""
    parts = [(100, 1, "sound"), (300, 1, "sound"), (300, 2, "sound"), (300, 1, "body"), (300, 1, "sound")]
    segment, entries = stored(parts, 0)
    for module in COLLECTS:
        asked: list[bytes] = []

        def large(record: bytes | memoryview, asked: list[bytes] = asked) -> bool:
            asked.append(bytes(record))
            return len(record) == 300

        where = (memoryview(segment), 0, b"T", QUEUE_ID, QUEUE_OFFSET, CHECK_SUMS)
        limits = (0, Filter(frozenset({1}), large), 9, 10**6, 10**6, 0)
        wanted = bytes(segment[100:400] + segment[1000:])
        assert module.collect(entries, *limits, *where) == (5, 2, 1, wanted)
        places = (slice(0, 100), slice(100, 400), slice(700, 1000), slice(1000, None))
        assert asked == [bytes(segment[place]) for place in places]


def test_a_filter_that_fails_leaves_the_segment_free() -> None:
    segment, entries = stored([(100, 0, "sound")], 0)

    def fail(record: bytes | memoryview) -> bool:
        raise LookupError("no such property")

    for module in COLLECTS:
        where = (memoryview(segment), 0, b"T", QUEUE_ID, QUEUE_OFFSET, CHECK_SUMS)
        with pytest.raises(LookupError):
            module.collect(entries, 0, Filter(None, fail), 9, 10**6, 10**6, 0, *where)
        del where
    segment.append(0)  # nobody looks at it any more


def test_a_queue_shared_with_other_topics_asks_only_for_sound_records() -> None:
    segment, entries = stored([(100, 0, "topic"), (100, 0, "queue"), (100, 0, "offset"), (100, 0, "body")], 0)
    for module in COLLECTS:
        where = (memoryview(segment), 0, b"", 0, 0, CHECK_SUMS)
        assert module.collect(entries, 0, EVERYTHING, 9, 10**6, 10**6, 0, *where) == (
            4,
            3,
            1,
            bytes(segment[:300]),
        )


def test_without_a_checksum_a_record_is_not_handed_out_where_all_must_have_one() -> None:
    segment, entries = stored([(100, 0, "sound"), (300, 0, "sound")], 0)
    for module in COLLECTS:
        where = (memoryview(segment), 0, b"T", QUEUE_ID, QUEUE_OFFSET, CHECK_SEALED)
        assert module.collect(entries, 0, EVERYTHING, 9, 10**6, 10**6, 0, *where) == (
            2,
            1,
            1,
            bytes(segment[100:]),
        )


def test_a_record_at_the_end_of_the_log_is_not_collected_from_beyond_it() -> None:
    segment, entries = stored([(100, 0, "sound"), (300, 0, "sound")], 0)
    for module in COLLECTS:
        where = (memoryview(segment)[:350], 0, b"T", QUEUE_ID, QUEUE_OFFSET, CHECK_SUMS)
        assert module.collect(entries, 0, EVERYTHING, 9, 10**6, 10**6, 0, *where) == (
            2,
            1,
            1,
            bytes(segment[:100]),
        )
