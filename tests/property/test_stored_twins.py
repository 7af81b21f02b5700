"""Both implementations read the same messages out of the same bytes."""

import pickle
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bolide.record.codec import encode_record
from bolide.record.compress import pack_body
from tests.property.twins import STORED, outcome

HOSTS = st.sampled_from([bytes(8), bytes([10, 0, 0, 7, 0, 0, 9, 9]), bytes(range(20))])
NUMBERS = st.sampled_from([0, 1, 7, 2**31 - 1])
PROPERTIES = st.sampled_from(
    [
        b"",
        b"TAGS\x01a\x02KEYS\x01x y\x02UNIQ_KEY\x017F01\x02",
        b"a\x01b",
        b"\xff\x01\xfe\x02",
        b"a\x01\x02\x01b\x02",
        "ü\x01é\x02".encode(),
    ]
)


@st.composite
def records(draw: st.DrawFn) -> bytes:
    born, store = draw(HOSTS), draw(HOSTS)
    packed = draw(st.sampled_from([0, 0, 0, 1, 0x101]))
    flags = packed | (0x10 if len(born) == 20 else 0) | (0x20 if len(store) == 20 else 0)
    body = draw(st.binary(max_size=40))
    if packed == 1 and draw(st.booleans()):
        body = pack_body(body)
    return encode_record(
        topic=draw(st.sampled_from([b"orders", b"orders", b"\xff", b"x" * 200])),
        body=body,
        properties=draw(PROPERTIES),
        queue_id=draw(NUMBERS),
        flag=draw(NUMBERS),
        queue_offset=draw(NUMBERS),
        log_offset=draw(NUMBERS),
        sys_flag=flags,
        born_timestamp_ms=draw(NUMBERS),
        born_host=born,
        store_timestamp_ms=draw(NUMBERS),
        store_host=store,
        reconsume_times=draw(NUMBERS),
        prepared_offset=0,
    )


def told(module: Any, message: Any) -> tuple[Any, ...]:
    names = STORED[1].StoredMessage.__dataclass_fields__
    return (*(getattr(message, name) for name in names), message.tags, message.keys, message.cost_bytes)


BLOCKS = st.builds(
    lambda some, times: b"".join(some) * times,
    st.lists(records(), max_size=4),
    st.sampled_from([1, 1, 30]),  # few keep all that came, many are copied out
)
DAMAGE = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=3)


@given(BLOCKS, DAMAGE, st.sampled_from([0, 1200, 3000, 1 << 24]))
@settings(max_examples=400)
def test_both_read_the_same_messages_and_stop_at_the_same_place(
    block: bytes, damage: list[tuple[int, int]], cost_bytes_max: int
) -> None:
    damaged = bytearray(block)
    for at, value in damage:
        if at < len(damaged):
            damaged[at] = value
    data = bytes(damaged)
    found = []
    for module in STORED:
        messages, at, cost_bytes = module.messages_in(data, "broker-a", cost_bytes_max)
        found.append(([told(module, message) for message in messages], at, cost_bytes))
        for message in messages:
            assert pickle.loads(pickle.dumps(message)) == message  # noqa: S301 - our own
            assert message.replaced(topic="other").topic == "other"
    assert found[0] == found[1]
    single = [outcome(module.message_at, data, 0, "broker-a") for module in STORED]
    assert single[0][0] == single[1][0]
    if single[0][0] == "raised":
        assert single[0][1] == single[1][1]


@given(BLOCKS, st.integers(-1, 8), st.integers(-1, 8))
def test_both_find_the_same_message_out_of_its_place(block: bytes, begin: int, end: int) -> None:
    found = []
    for module in STORED:
        messages, _, _ = module.messages_in(block, "broker-a", 1 << 24)
        found.append(module.misplaced(messages, begin, end))
    assert found[0] == found[1]
