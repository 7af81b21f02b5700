"""Both implementations make the same records of messages that were decided one by one, and file them alike."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bolide.model.names import SCHEDULE_TOPIC
from bolide.store import new_message
from bolide.store.new_message import NewMessage
from tests.property.test_append_twins import PROPERTIES, STORE_HOST, SUFFIX
from tests.property.twins import APPENDS, outcome
from tests.unit.pxd import numbers_for_compiled_code

NUMBERS = st.sampled_from([0, 1, 7, -1, 2**31 - 1, -(2**31), 2**31, 2**63 - 1, 2**63])
MESSAGES = st.lists(
    st.builds(
        NewMessage,
        topic=st.sampled_from(["T0", "T0", "ü", "x" * 127, "x" * 128, SCHEDULE_TOPIC]),
        queue_id=st.sampled_from([0, 0, 1, 2]),
        body=st.binary(max_size=60),
        properties=PROPERTIES
        | st.sampled_from([b"", b"DELAY\x013\x02TAGS\x01a\x02", b"DELAY\x0199\x02", b"x" * 32768]),
        flag=st.just(0) | NUMBERS,
        sys_flag=st.sampled_from([0, 0, 0, 4, 8, 12, 1, 0x30]),
        born_timestamp_ms=st.just(1_700_000_000_000) | NUMBERS,
        born_host=st.sampled_from([bytes(8), bytes(8), bytes(20), bytes(3)]),
        reconsume_times=st.just(0) | NUMBERS,
        prepared_offset=st.just(0) | NUMBERS,
        tags_code=st.none() | NUMBERS,
    ),
    max_size=4,
)


def encoded(module: Any, messages: list[NewMessage], sealed: bool) -> Any:
    """Everything that it leaves behind."""
    tails = {
        place: module.QueueTail(place, 10 * number, None)
        for number, place in enumerate(dict.fromkeys((one.topic, one.queue_id) for one in messages))
    }
    appender = module.Appender(STORE_HOST, SUFFIX, 400, sealed)
    of_each = [tails[one.topic, one.queue_id] for one in messages]
    touched: list[Any] = []
    size = outcome(appender.records_size, messages)
    found = outcome(appender.encode, messages, of_each, 5000, 1_700_000_000_999, touched)
    entries = {place: tail.entries(tail.start, tail.next_offset) for place, tail in tails.items()}
    return (
        size[0],
        found[0],
        (size[1], found[1]) if found[0] == "gave" else None,
        entries,
        [one.key for one in touched],
    )


@given(MESSAGES, st.booleans())
@settings(max_examples=400)
def test_both_make_the_same_records_and_entries(messages: list[NewMessage], sealed: bool) -> None:
    compiled, twin = (encoded(module, messages, sealed) for module in APPENDS)
    assert compiled == twin


@given(MESSAGES, st.booleans())
def test_what_cannot_be_a_record_is_refused_before_anything_is_filed(
    messages: list[NewMessage], sealed: bool
) -> None:
    for module in APPENDS:
        measured, made, given, entries, touched = encoded(module, messages, sealed)
        assert measured == made
        if made == "raised":
            assert (set(entries.values()) <= {b""}, touched) == (True, [])
        else:
            size, (data, appended) = given
            assert size == len(data) == sum(one.end - one.log_offset for one in appended)


def test_compiled_code_knows_the_order_of_the_fields() -> None:
    numbers = numbers_for_compiled_code(new_message)
    assert list(numbers.values()) == list(range(len(NewMessage._fields)))
    assert [name.lower() for name in numbers] == [field.removesuffix("_ms") for field in NewMessage._fields]
