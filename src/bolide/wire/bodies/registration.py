"""The body of REGISTER_BROKER (103): which topics a broker has, and how new that table is.

Plain, it is JSON (`registration_text.py` reads it).  Compressed, it is one zlib stream of blocks
(`registration_blocks.py`), each behind its length in 4 bytes, big-endian:

    length  data version as JSON
    count   topics, each: length  "name readQueues writeQueues perm FILTER_TYPE [attributesAsJson]"
    length  filter servers as a JSON list
    count   static topic mappings, each: length  JSON          (only from brokers that say 5.0.0 or newer)

The topic lines carry neither the unit flags nor the order mark: the original's form has no place for them.  Attributes
are nothing to a name server, so it does not look into them, in either form.
Everything is bounded before it is unpacked or parsed.  A broker may have thousands of topics, so both ways go in steps.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import orjson

from bolide.model import java_json, json_pieces
from bolide.model.config_json import topic_as_json
from bolide.model.data_version import DataVersion
from bolide.model.steps import Steps, at_once
from bolide.model.topic import TopicConfig
from bolide.wire.bodies.members import as_texts, parse_object
from bolide.wire.bodies.registration_blocks import MAPPING_BYTES_MAX, Blocks
from bolide.wire.bodies.registration_text import RegistrationText
from bolide.wire.bodies.registration_topics import ToldTopic, format_topic_line, parse_topic_line

VERSION_WITH_MAPPINGS = 413
"""MQVersion.V5_0_0: from it on a compressed body ends with static topic mappings."""

ZLIB_FIRST_BYTE = b"x"
"""5.5.0 with `compressedRegister` packs the body and still says that it did not; JSON begins with a brace."""

STEP_TOPICS = 256

_U32 = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class RegistrationBody:
    """What a broker writes."""

    data_version: DataVersion = field(default_factory=DataVersion)
    topics: tuple[TopicConfig, ...] = ()
    filter_servers: tuple[str, ...] = ()

    def encode(self, *, compressed: bool = False) -> bytes:
        return b"".join(self.pieces(compressed=compressed))

    def pieces(self, *, compressed: bool = False) -> Iterator[bytes]:
        """The body, piece by piece."""
        return self._packed_blocks() if compressed else self._json()

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


@dataclass(frozen=True, slots=True)
class HeardRegistration:
    """What a name server hears of it."""

    data_version: DataVersion = field(default_factory=DataVersion)
    topics: tuple[ToldTopic, ...] = ()
    filter_servers: tuple[str, ...] = ()

    @classmethod
    def decode(cls, body: bytes, *, compressed: bool, version: int) -> "HeardRegistration":
        return at_once(cls.decoding(body, compressed=compressed, version=version))

    @classmethod
    def decoding(cls, body: bytes, *, compressed: bool, version: int) -> "Steps[HeardRegistration]":
        """From a broker that says it is `version`; an empty body is a broker without topics."""
        if not body:
            return cls()
        if compressed or body.startswith(ZLIB_FIRST_BYTE):
            return (yield from _decoding_blocks(body, version))
        text = RegistrationText(body)
        yield from text.reading()
        return cls(text.data_version, tuple(text.topics), tuple(text.filter_servers))


def checksum(body: bytes) -> int:
    """`bodyCrc32` of the bytes as sent.  0 on the wire means that nobody checks."""
    return zlib.crc32(body) & 0x7FFF_FFFF


def _decoding_blocks(body: bytes, version: int) -> Steps[HeardRegistration]:
    blocks = Blocks(body)
    data_version = DataVersion.from_json(parse_object(blocks.block(), "the data version"))
    topics: list[ToldTopic] = []
    yield from blocks.many(lambda line: topics.append(parse_topic_line(line)))
    filters = as_texts(java_json.loads(blocks.block() or b"[]") or [], "filterServerList")
    if version >= VERSION_WITH_MAPPINGS:
        # Static topics: nobody here wants them.
        yield from blocks.many(lambda mapping: None, MAPPING_BYTES_MAX)
    yield from blocks.end()
    return HeardRegistration(data_version, tuple(topics), tuple(filters))


def _block(data: bytes) -> bytes:
    return _U32.pack(len(data)) + data
