"""Registration bodies: plain and compressed, both directions, and what is refused."""

import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest import mock

import pytest

from bolide.model.data_version import DataVersion
from bolide.model.errors import InvalidRequest
from bolide.model.topic import TopicConfig
from bolide.wire.bodies import registration_blocks, registration_topics
from bolide.wire.bodies.registration import HeardRegistration, RegistrationBody, checksum
from bolide.wire.bodies.registration_topics import ToldTopic, format_topic_line, parse_topic_line

V4_9_7, V5_4_0, V3_0_10 = 407, 493, 35

BODY = RegistrationBody(
    DataVersion(state_version=1, counter=3, timestamp_ms=1_700_000_000_000),
    (
        TopicConfig("orders", 4, 2, 6),
        TopicConfig("bills", 1, 1, 4, filter_type="MULTI_TAG"),
    ),
    ("10.0.0.9:3000",),
)

HEARD = HeardRegistration(
    BODY.data_version, (ToldTopic("orders", 4, 2, 6), ToldTopic("bills", 1, 1, 4)), BODY.filter_servers
)


@pytest.mark.parametrize("compressed", [False, True])
def test_a_registration_goes_there_and_back(compressed: bool) -> None:
    data = BODY.encode(compressed=compressed)
    assert HeardRegistration.decode(data, compressed=compressed, version=V5_4_0) == HEARD


def test_the_plain_form_is_the_json_of_the_original() -> None:
    body = RegistrationBody(DataVersion(counter=3, timestamp_ms=17), (TopicConfig("T", 4, 4),))
    assert body.encode() == (
        b'{"filterServerList":[],"topicConfigSerializeWrapper":{"dataVersion":'
        b'{"counter":3,"stateVersion":0,"timestamp":17},"topicConfigTable":{"T":{"attributes":{},'
        b'"order":false,"perm":6,"readQueueNums":4,"topicFilterType":"SINGLE_TAG","topicName":"T",'
        b'"topicSysFlag":0,"writeQueueNums":4}}}}'
    )


def test_the_plain_form_carries_what_the_compressed_one_has_no_place_for() -> None:
    flagged = RegistrationBody(
        DataVersion(), (TopicConfig("T", 4, 4, sys_flag=2, order=True, attributes={"a": "b"}),)
    )
    plain = HeardRegistration.decode(flagged.encode(), compressed=False, version=V5_4_0)
    assert plain.topics == (ToldTopic("T", 4, 4, 6, sys_flag=2),)
    packed = HeardRegistration.decode(flagged.encode(compressed=True), compressed=True, version=V5_4_0)
    assert packed.topics == (ToldTopic("T", 4, 4, 6),)


def test_a_compressed_body_of_4_x_ends_before_the_mappings_and_has_five_words_per_topic() -> None:
    version, filters = b'{"counter":1,"timestamp":2}', b"[]"
    line = b"orders 4 2 6 SINGLE_TAG"
    parts = (_block(version), struct.pack(">I", 1), _block(line), _block(filters))
    body = HeardRegistration.decode(zlib.compress(b"".join(parts)), compressed=True, version=V4_9_7)
    assert body == HeardRegistration(DataVersion(counter=1, timestamp_ms=2), (ToldTopic("orders", 4, 2, 6),))


def test_static_topic_mappings_are_stepped_over() -> None:
    data = (
        zlib.decompress(BODY.encode(compressed=True))[:-4] + struct.pack(">I", 1) + _block(b'{"topic":"s"}')
    )
    assert HeardRegistration.decode(zlib.compress(data), compressed=True, version=V5_4_0) == HEARD


def test_before_3_0_11_the_body_is_only_the_topic_table() -> None:
    text = b'{"dataVersion":{"counter":1,"timestamp":2},"topicConfigTable":{"T":{"readQueueNums":4}}}'
    body = HeardRegistration.decode(text, compressed=False, version=V3_0_10)
    assert [topic.name for topic in body.topics] == ["T"]


def test_no_body_is_a_broker_without_topics() -> None:
    assert HeardRegistration.decode(b"", compressed=True, version=V5_4_0) == HeardRegistration()


def test_a_packed_body_is_read_even_when_the_broker_forgets_to_say_that_it_is_packed() -> None:
    """The broker of 5.5.0 does, with `compressedRegister=true`."""
    data = BODY.encode(compressed=True)
    assert HeardRegistration.decode(data, compressed=False, version=V5_4_0) == HEARD


def test_a_topic_line_is_read_with_and_without_attributes() -> None:
    topic = ToldTopic("T", 1, 2, 4)
    assert parse_topic_line(format_topic_line(TopicConfig("T", 1, 2, 4)).encode()) == topic
    assert parse_topic_line(b'T 1 2 4 SINGLE_TAG {"note":"two words"}') == topic
    assert parse_topic_line(b"T 1 2 4 SINGLE_TAG " + b"[" * 10_000) == topic  # nobody looks


@pytest.mark.parametrize(
    "line", [b"T 1 2 4", b"T 1 x 4 S", b"T 1 2 \xb2 S", b"T 1 " + b"9" * 30 + b" 6 S", b"\xff 1 1 6 S"]
)
def test_a_topic_line_that_is_none_is_refused(line: bytes) -> None:
    with pytest.raises(InvalidRequest):
        parse_topic_line(line)


def test_the_checksum_is_a_positive_crc_32() -> None:
    assert checksum(b"hello") == 907060870


@pytest.mark.parametrize(
    "data",
    [
        b"not zlib",
        zlib.compress(b""),
        zlib.compress(b"\xff\xff\xff\xff"),
        zlib.compress(struct.pack(">I", 2) + b"{}" + b"\xff\xff\xff\xff"),
        zlib.compress(struct.pack(">I", 2) + b"{}" + struct.pack(">I", 1) + struct.pack(">I", 5) + b"a b c"),
        BODY.encode(compressed=True)[:-8],
    ],
)
def test_a_malformed_compressed_body_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidRequest):
        HeardRegistration.decode(data, compressed=True, version=V5_4_0)


@pytest.mark.parametrize(
    "data",
    [
        b"[]",
        b'{"topicConfigSerializeWrapper":[]}',
        b'{"topicConfigSerializeWrapper":{"topicConfigTable":{"":{}}}}',
        b'{"topicConfigSerializeWrapper":{"topicConfigTable":{"T":{"readQueueNums":-1}}}}',
        b'{"topicConfigSerializeWrapper":{"topicConfigTable":{"T":{"readQueueNums":70000}}}}',
        b'{"topicConfigSerializeWrapper":{"topicConfigTable":{"T":{"readQueueNums":true}}}}',
        b'{"topicConfigSerializeWrapper":{"topicConfigTable":{"T":{"perm":2147483648}}}}',
        b'{"topicConfigSerializeWrapper":{"topicConfigTable":{"T":{"topicSysFlag":1099511627776}}}}',
        b'{"topicConfigSerializeWrapper":{"topicConfigTable":{"T":{"topicName":5}}}}',
        b'{"topicConfigSerializeWrapper":{"topicConfigTable":{"T":[]}}}',
        b'{"topicConfigSerializeWrapper":{"topicConfigTable":{"%s":{}}}}' % (b"x" * 256),
        b'{"topicConfigSerializeWrapper":{"dataVersion":{"counter":"x"}}}',
        b'{"filterServerList":[1]}',
    ],
)
def test_a_malformed_plain_body_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidRequest):
        HeardRegistration.decode(data, compressed=False, version=V5_4_0)


def test_a_stream_that_unpacks_to_more_than_its_bound_is_refused_before_it_is_unpacked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registration_blocks, "REGISTRATION_UNPACKED_BYTES_MAX", 300_000)
    bomb = zlib.compress(zlib.decompress(BODY.encode(compressed=True)) + bytes(10_000_000))
    with pytest.raises(InvalidRequest, match="more than 300000"):
        HeardRegistration.decode(bomb, compressed=True, version=V5_4_0)


LINE = b"T 1 1 6 SINGLE_TAG " + bytes(60_000)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("count", [40, 400])
def test_of_large_topics_a_step_takes_few(compressed: bool, count: int) -> None:
    if compressed:
        lines = struct.pack(">I", count) + _block(LINE) * count
        body = zlib.compress(_block(b"{}") + lines + _block(b"[]") + struct.pack(">I", 0))
    else:
        topic = '"t%d":{"attributes":{"+note":"%s"}}'
        topics = ",".join(topic % (number, "x" * 60_000) for number in range(count))
        body = b'{"topicConfigSerializeWrapper":{"topicConfigTable":{%s}}}' % topics.encode()
    steps = HeardRegistration.decoding(body, compressed=compressed, version=V5_4_0)
    with count_calls(registration_topics, "told") as taken:
        most = before = 0
        while next(steps, HEARD) is not HEARD:
            most, before = max(most, taken() - before), taken()
    assert taken() == count
    assert most <= 6


@pytest.mark.parametrize("blank", ["", " ", "\n\t "])
def test_a_plain_body_may_have_blanks_and_members_that_nobody_knows(blank: str) -> None:
    text = (
        '{_"unknown"_:_[1,{"a":"}"}]_,"topicConfigSerializeWrapper"_:_{_"mappingDataVersion":{"counter":{}},'
        '"topicQueueMappingInfoMap":_{_"T":{"hostedQueues":{0:[{"logicOffset":1}]}},"U":{}_}_,'
        '"topicConfigTable"_:_{_"T"_:_{"readQueueNums":4}_,_"U":{"writeQueueNums":2}_}_,'
        '"dataVersion":{"counter":7}_}_,"filterServerList":_null_,_"last":"\\"}{"_}'
    )
    body = HeardRegistration.decode(text.replace("_", blank).encode(), compressed=False, version=V5_4_0)
    assert [(topic.name, topic.read_queues, topic.write_queues) for topic in body.topics] == [
        ("T", 4, 16),
        ("U", 16, 2),
    ]
    assert body.data_version.counter == 7


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_plain_body_that_is_cut_anywhere_is_refused(cut: int) -> None:
    with pytest.raises(InvalidRequest):
        HeardRegistration.decode(BODY.encode()[:-cut], compressed=False, version=V5_4_0)


@pytest.mark.parametrize(
    "inside",
    [
        b'"topicConfigTable":{"T":{"attributes":%s}}' % (b"[" * 7 + b"]" * 7),
        b'"topicConfigTable":{"T":{"attributes":{"a":"%s"}}}' % (b"x" * 70_000),
        b'"topicConfigTable":{"T":{}%s}' % (b" " * 70_000),
        b'"unknown":%s1%s' % (b"[" * 100_000, b"]" * 100_000),
        b'"unknown":["%s"]' % (b"x" * 2_000_000),
        b'"%s":1' % (b"x" * 70_000),
    ],
    ids=["deep", "long", "blank", "deeper", "longer", "name"],
)
def test_what_no_broker_writes_is_refused_before_it_is_parsed(inside: bytes) -> None:
    with pytest.raises(InvalidRequest, match="malformed at its byte"):
        HeardRegistration.decode(b'{"x":1,%s}' % inside, compressed=False, version=V5_4_0)


def test_wrappers_in_wrappers_are_stepped_over() -> None:
    text = b'{"topicConfigSerializeWrapper":' * 5 + b"1" + b"}" * 5
    assert HeardRegistration.decode(text, compressed=False, version=V5_4_0) == HeardRegistration()


@pytest.mark.parametrize("count", [120_001, 0xFFFF_FFFF])
def test_more_topics_than_a_broker_can_have_are_refused_by_their_number(count: int) -> None:
    body = zlib.compress(_block(b"{}") + struct.pack(">I", count))
    with pytest.raises(InvalidRequest, match="120000 are allowed"):
        HeardRegistration.decode(body, compressed=True, version=V5_4_0)


@contextmanager
def count_calls(owner: object, name: str) -> Iterator[Callable[[], int]]:
    function = getattr(owner, name)
    with mock.patch.object(owner, name, side_effect=function) as called:
        yield lambda: called.call_count


def _block(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data
