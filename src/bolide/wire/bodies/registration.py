"""The body of REGISTER_BROKER (103): which topics a broker has, and how new that table is.

Plain, it is JSON.  Compressed, it is one zlib stream of blocks, each behind its length in 4 bytes, big-endian:

    length  data version as JSON
    count   topics, each: length  "name readQueues writeQueues perm FILTER_TYPE [attributesAsJson]"
    length  filter servers as a JSON list
    count   static topic mappings, each: length  JSON          (only from brokers that say 5.0.0 or newer)

The topic lines carry neither the unit flags nor the order mark: the original's form has no place for them, and a name
server needs no attributes.
Everything is bounded before it is unpacked.  A broker may have thousands of topics, so both ways go in steps.
"""

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import orjson

from bolide.model import java_json, json_pieces
from bolide.model.config_json import topic_as_json, topic_from_json
from bolide.model.data_version import DataVersion
from bolide.model.errors import InvalidRequest
from bolide.model.limits import TOLD_QUEUES_MAX
from bolide.model.steps import Steps, at_once
from bolide.model.topic import TopicConfig
from bolide.wire.bodies.members import as_number, as_texts, parse_object, table, texts

UNPACKED_BYTES_MAX = 64 * 1024 * 1024
TOPICS_MAX = 200_000
TOPIC_NAME_LENGTH_MAX = 255

VERSION_WITH_FILTERS = 37
"""MQVersion.V3_0_11: before it the whole body is only the topic wrapper."""

VERSION_WITH_MAPPINGS = 413
"""MQVersion.V5_0_0: from it on a compressed body ends with static topic mappings."""

ZLIB_FIRST_BYTE = b"x"
"""5.5.0 with `compressedRegister` packs the body and still says that it did not; JSON begins with a brace."""

STEP_TOPICS = 256
STEP_BYTES = 1024 * 1024

T = TypeVar("T")

_U32 = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class RegistrationBody:
    data_version: DataVersion = field(default_factory=DataVersion)
    topics: tuple[TopicConfig, ...] = ()
    filter_servers: tuple[str, ...] = ()

    def encode(self, *, compressed: bool = False) -> bytes:
        return b"".join(self.pieces(compressed=compressed))

    def pieces(self, *, compressed: bool = False) -> Iterator[bytes]:
        """The body, piece by piece."""
        return self._packed_blocks() if compressed else self._json()

    @classmethod
    def decode(cls, body: bytes, *, compressed: bool, version: int) -> "RegistrationBody":
        return at_once(cls.decoding(body, compressed=compressed, version=version))

    @classmethod
    def decoding(cls, body: bytes, *, compressed: bool, version: int) -> "Steps[RegistrationBody]":
        """From a broker that says it is `version`; an empty body is a broker without topics."""
        if not body:
            return cls()
        if compressed or body.startswith(ZLIB_FIRST_BYTE):
            return (yield from _decode_blocks(body, version))
        return (yield from _decode_json(body, version))

    def _json(self) -> Iterator[bytes]:
        topics = json_pieces.Entries((topic.name, topic_as_json(topic)) for topic in self.topics)
        wrapper = (("dataVersion", self.data_version.as_json()), ("topicConfigTable", topics))
        return json_pieces.compact(
            {
                "filterServerList": list(self.filter_servers),
                "topicConfigSerializeWrapper": json_pieces.Entries(wrapper),
            }
        )

    def _packed_blocks(self) -> Iterator[bytes]:
        stream = zlib.compressobj(zlib.Z_BEST_COMPRESSION)
        yield stream.compress(_block(orjson.dumps(self.data_version.as_json())) + _U32.pack(len(self.topics)))
        for first in range(0, len(self.topics), STEP_TOPICS):
            some = self.topics[first : first + STEP_TOPICS]
            yield stream.compress(b"".join(_block(format_topic_line(topic).encode()) for topic in some))
        yield stream.compress(_block(orjson.dumps(list(self.filter_servers))) + _U32.pack(0))
        yield stream.flush()


def checksum(body: bytes) -> int:
    """`bodyCrc32` of the bytes as sent.  0 on the wire means that nobody checks."""
    return zlib.crc32(body) & 0x7FFF_FFFF


def format_topic_line(topic: TopicConfig) -> str:
    """Five words.  5.x would add the attributes as a sixth, which name servers do not need and 4.x refuses."""
    return f"{topic.name} {topic.read_queues} {topic.write_queues} {int(topic.perm)} {topic.filter_type}"


def parse_topic_line(line: str) -> TopicConfig:
    """4.x sends five words, 5.x a sixth with the attributes, which may contain spaces."""
    words = line.split(" ", 5)
    if len(words) < 5:
        raise InvalidRequest(f"a topic line has {len(words)} words instead of five")
    attributes = parse_object(words[5].encode(), "attributes") if len(words) == 6 and words[5] else {}
    return topic_from_json(
        {
            "topicName": words[0],
            "readQueueNums": as_number(words[1], "readQueueNums"),
            "writeQueueNums": as_number(words[2], "writeQueueNums"),
            "perm": as_number(words[3], "perm"),
            "topicFilterType": words[4],
            "attributes": attributes,
        }
    )


def _decode_json(body: bytes, version: int) -> Steps[RegistrationBody]:
    members = parse_object(body, "the registration")
    if version < VERSION_WITH_FILTERS:
        members = {"topicConfigSerializeWrapper": members}
    wrapper = table(members, "topicConfigSerializeWrapper")
    topics = table(wrapper, "topicConfigTable")
    _check_count(len(topics))
    yield
    configs = yield from _in_steps(_checked(_named(topics, key)) for key in topics)
    return RegistrationBody(
        data_version=DataVersion.from_json(table(wrapper, "dataVersion")),
        topics=tuple(configs),
        filter_servers=tuple(texts(members, "filterServerList")),
    )


def _named(topics: dict[str, Any], key: str) -> TopicConfig:
    """The entry of a topic table; the key is its name where it does not say so itself."""
    return topic_from_json({"topicName": key, **table(topics, key)})


def _decode_blocks(body: bytes, version: int) -> Steps[RegistrationBody]:
    blocks = _Blocks((yield from _unpacked(body)))
    data_version = DataVersion.from_json(parse_object(blocks.block(), "the data version"))
    topics = yield from _in_steps(blocks.many(lambda block: _checked(parse_topic_line(_text_of(block)))))
    filters = as_texts(java_json.loads(blocks.block() or b"[]") or [], "filterServerList")
    if version >= VERSION_WITH_MAPPINGS:
        yield from _in_steps(blocks.many(lambda block: None))  # static topics: read for bounds, and not kept
    return RegistrationBody(data_version, tuple(topics), tuple(filters))


def _in_steps(items: Iterable[T]) -> Steps[list[T]]:
    """The items, some with each step."""
    listed: list[T] = []
    for item in items:
        listed.append(item)
        if len(listed) % STEP_TOPICS == 0:
            yield
    return listed


def _checked(topic: TopicConfig) -> TopicConfig:
    if not 0 < len(topic.name) <= TOPIC_NAME_LENGTH_MAX or topic.name.isspace():
        raise InvalidRequest(f"the registration holds an impossible topic name: {topic.name[:64]!r}")
    if not (0 <= topic.read_queues <= TOLD_QUEUES_MAX and 0 <= topic.write_queues <= TOLD_QUEUES_MAX):
        raise InvalidRequest(f"topic {topic.name} has an impossible number of queues")
    return topic


def _check_count(count: int) -> None:
    if count > TOPICS_MAX:
        raise InvalidRequest(f"{count} topics in one registration; {TOPICS_MAX} are allowed")


def _block(data: bytes) -> bytes:
    return _U32.pack(len(data)) + data


def _text_of(block: bytes) -> str:
    try:
        return block.decode()
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"a topic line is not UTF-8: {error}") from error


def _unpacked(body: bytes) -> Steps[bytes]:
    """The stream's content, never more than `UNPACKED_BYTES_MAX` of it."""
    stream = zlib.decompressobj()
    data = bytearray()
    packed = body
    while not stream.eof:
        if len(data) >= UNPACKED_BYTES_MAX:
            raise InvalidRequest(f"the registration unpacks to more than {UNPACKED_BYTES_MAX} bytes")
        try:
            some = stream.decompress(packed, min(STEP_BYTES, UNPACKED_BYTES_MAX - len(data)))
        except zlib.error as error:
            raise InvalidRequest(f"the registration is not a zlib stream: {error}") from error
        if not some and not stream.eof:
            raise InvalidRequest("the compressed registration is cut short")
        data += some
        packed = stream.unconsumed_tail
        yield
    return bytes(data)


class _Blocks:
    """A cursor over length-prefixed blocks."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def block(self) -> bytes:
        length = self._count()
        start, self._at = self._at, self._at + length
        if self._at > len(self._data):
            raise InvalidRequest("a block of the registration is cut short")
        return self._data[start : self._at]

    def many(self, read: Callable[[bytes], T]) -> Iterator[T]:
        count = self._count()
        _check_count(count)
        return (read(self.block()) for _ in range(count))

    def _count(self) -> int:
        if self._at + 4 > len(self._data):
            raise InvalidRequest("the registration ends in the middle of a length")
        (value,) = _U32.unpack_from(self._data, self._at)
        self._at += 4
        return int(value)
