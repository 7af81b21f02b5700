"""A message that the broker stores again, and what it changes about it."""

from bolide.model.pairs import parse_properties
from bolide.record.decode import decode_messages
from bolide.store.new_message import NewMessage

HOST = bytes((127, 0, 0, 1, 0, 0, 0, 9))
MESSAGE = NewMessage(
    topic="orders",
    queue_id=3,
    body=b"hello",
    properties=b"TAGS\x01a\x02KEYS\x01k\x02",
    flag=7,
    sys_flag=0,
    born_timestamp_ms=11,
    born_host=HOST,
    reconsume_times=2,
    prepared_offset=5,
)


def record(message: NewMessage, *, sealed: bool = False) -> bytes:
    return message.record(1, 2, 3, HOST, sealed=sealed)


def test_the_message_of_a_record_is_the_one_that_was_stored() -> None:
    assert NewMessage.of_record(record(MESSAGE)) == MESSAGE


def test_the_checksum_of_a_record_is_not_stored_again() -> None:
    assert NewMessage.of_record(record(MESSAGE, sealed=True)) == MESSAGE


def test_pairs_are_replaced_added_and_taken_away() -> None:
    changed = MESSAGE.with_pairs(TAGS="b", KEYS=None, REAL_TOPIC="payments")
    assert parse_properties(changed.properties.decode()) == {"TAGS": "b", "REAL_TOPIC": "payments"}
    assert decode_messages(record(changed), "b")[0].properties == {"TAGS": "b", "REAL_TOPIC": "payments"}


def test_a_name_that_ends_like_another_one_stays() -> None:
    message = MESSAGE.with_pairs(MY_TAGS="mine")
    assert parse_properties(message.with_pairs(TAGS=None).properties.decode()) == {
        "KEYS": "k",
        "MY_TAGS": "mine",
    }


def test_a_pair_that_lacks_its_end_gets_it() -> None:
    message = NewMessage("t", 0, b"x", b"A\x011", 0, 0, 0, HOST)
    assert message.with_pairs(B="2").properties == b"A\x011\x02B\x012\x02"
