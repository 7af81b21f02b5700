"""Registration bodies: plain and compressed, both directions, and what is refused."""

import struct
import zlib

import pytest

from bolide.model.data_version import DataVersion
from bolide.model.errors import InvalidRequest
from bolide.model.topic import TopicConfig
from bolide.wire.bodies import registration
from bolide.wire.bodies.registration import RegistrationBody, checksum, format_topic_line, parse_topic_line

V4_9_7, V5_4_0, V3_0_10 = 407, 493, 35

BODY = RegistrationBody(
    DataVersion(state_version=1, counter=3, timestamp_ms=1_700_000_000_000),
    (
        TopicConfig("orders", 4, 2, 6),
        TopicConfig("bills", 1, 1, 4, filter_type="MULTI_TAG"),
    ),
    ("10.0.0.9:3000",),
)


@pytest.mark.parametrize("compressed", [False, True])
def test_a_registration_goes_there_and_back(compressed: bool) -> None:
    data = BODY.encode(compressed=compressed)
    assert RegistrationBody.decode(data, compressed=compressed, version=V5_4_0) == BODY


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
    plain = RegistrationBody.decode(flagged.encode(), compressed=False, version=V5_4_0)
    assert plain == flagged
    packed = RegistrationBody.decode(flagged.encode(compressed=True), compressed=True, version=V5_4_0)
    assert packed.topics == (TopicConfig("T", 4, 4),)


def test_a_compressed_body_of_4_x_ends_before_the_mappings_and_has_five_words_per_topic() -> None:
    version, filters = b'{"counter":1,"timestamp":2}', b"[]"
    line = b"orders 4 2 6 SINGLE_TAG"
    parts = (_block(version), struct.pack(">I", 1), _block(line), _block(filters))
    body = RegistrationBody.decode(zlib.compress(b"".join(parts)), compressed=True, version=V4_9_7)
    assert body == RegistrationBody(DataVersion(counter=1, timestamp_ms=2), (TopicConfig("orders", 4, 2, 6),))


def test_static_topic_mappings_are_stepped_over() -> None:
    data = (
        zlib.decompress(BODY.encode(compressed=True))[:-4] + struct.pack(">I", 1) + _block(b'{"topic":"s"}')
    )
    assert RegistrationBody.decode(zlib.compress(data), compressed=True, version=V5_4_0) == BODY


def test_before_3_0_11_the_body_is_only_the_topic_table() -> None:
    text = b'{"dataVersion":{"counter":1,"timestamp":2},"topicConfigTable":{"T":{"readQueueNums":4}}}'
    body = RegistrationBody.decode(text, compressed=False, version=V3_0_10)
    assert [topic.name for topic in body.topics] == ["T"]


def test_no_body_is_a_broker_without_topics() -> None:
    assert RegistrationBody.decode(b"", compressed=True, version=V5_4_0) == RegistrationBody()


def test_a_packed_body_is_read_even_when_the_broker_forgets_to_say_that_it_is_packed() -> None:
    """The broker of 5.5.0 does, with `compressedRegister=true`."""
    data = BODY.encode(compressed=True)
    assert RegistrationBody.decode(data, compressed=False, version=V5_4_0) == BODY


def test_a_topic_line_is_read_with_and_without_attributes() -> None:
    topic = TopicConfig("T", 1, 2, 4)
    assert parse_topic_line(format_topic_line(topic)) == topic
    with_note = parse_topic_line('T 1 2 4 SINGLE_TAG {"note":"two words"}')
    assert with_note == TopicConfig("T", 1, 2, 4, attributes={"note": "two words"})


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
        RegistrationBody.decode(data, compressed=True, version=V5_4_0)


@pytest.mark.parametrize(
    "data",
    [
        b"[]",
        b'{"topicConfigSerializeWrapper":[]}',
        b'{"topicConfigSerializeWrapper":{"topicConfigTable":{"":{}}}}',
        b'{"topicConfigSerializeWrapper":{"topicConfigTable":{"T":{"readQueueNums":-1}}}}',
        b'{"topicConfigSerializeWrapper":{"topicConfigTable":{"T":{"readQueueNums":70000}}}}',
        b'{"topicConfigSerializeWrapper":{"topicConfigTable":{"%s":{}}}}' % (b"x" * 256),
        b'{"topicConfigSerializeWrapper":{"dataVersion":{"counter":"x"}}}',
        b'{"filterServerList":[1]}',
    ],
)
def test_a_malformed_plain_body_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidRequest):
        RegistrationBody.decode(data, compressed=False, version=V5_4_0)


def test_a_stream_that_unpacks_to_more_than_its_bound_is_refused_before_it_is_unpacked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registration, "UNPACKED_BYTES_MAX", 1000)
    with pytest.raises(InvalidRequest, match="more than 1000"):
        RegistrationBody.decode(zlib.compress(bytes(1_000_000)), compressed=True, version=V5_4_0)


def _block(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data
