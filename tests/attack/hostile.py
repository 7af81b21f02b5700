"""A server that answers as badly as it likes: name server and broker on one port, written apart from bolide.

What it says to a request is a function by request code; those that a test does not replace are honest.  It speaks to
clients under test that run on the same event loop.
"""

import asyncio
import json
import struct
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.attack.stage import framed

PULL = 11
QUERY_OFFSET = 14
UPDATE_OFFSET = 15
MAX_OFFSET = 30
MIN_OFFSET = 31
HEARTBEAT = 34
UNREGISTER = 35
MEMBERS = 38
MEMBERS_CHANGED = 40
ROUTE = 105
SEND = 310

FOUND = 0
NO_NEW_MESSAGE = 19
RETRY_AT_ONCE = 20
OFFSET_MOVED = 21

RESPONSE = 1
ONE_WAY = 2

HOLD = None
"""No answer at all."""


@dataclass
class Request:
    code: int
    opaque: int
    fields: dict[str, str]
    body: bytes

    def answer(
        self,
        code: int = FOUND,
        fields: Mapping[str, object] | None = None,
        body: bytes = b"",
        remark: str | None = None,
    ) -> bytes:
        return response(self.opaque, code, fields, body, remark)

    def pulled(self, code: int, next_offset: int, body: bytes = b"", broker_id: int = 0) -> bytes:
        """The answer to a pull."""
        fields = {
            "suggestWhichBrokerId": broker_id,
            "nextBeginOffset": next_offset,
            "minOffset": 0,
            "maxOffset": 2**62,
        }
        return self.answer(code, fields, body)


def response(
    opaque: int,
    code: int = FOUND,
    fields: Mapping[str, object] | None = None,
    body: bytes = b"",
    remark: str | None = None,
) -> bytes:
    return _frame(code, opaque, RESPONSE, fields, body, remark)


def request(
    code: int, fields: Mapping[str, object] | None = None, *, opaque: int = 1, flag: int = 0
) -> bytes:
    """What a broker sends by itself."""
    return _frame(code, opaque, flag, fields)


def route(brokers: Mapping[str, str], queues: int = 1, odd: Mapping[str, Any] | None = None) -> bytes:
    """Broker name to address."""
    return json.dumps(
        {
            "brokerDatas": [
                {"brokerName": name, "cluster": "c", "brokerAddrs": {"0": address}}
                for name, address in brokers.items()
            ],
            "queueDatas": [
                {"brokerName": name, "perm": 6, "readQueueNums": queues, "writeQueueNums": queues}
                for name in brokers
            ],
            **(odd or {}),
        }
    ).encode()


Answer = Callable[[Request], bytes | None]


@dataclass
class HostileServer:
    """`on` is what it says, by request code; `seen` counts what it was asked; `writers` are its connections."""

    address: str = ""
    queues: int = 1
    members: list[str] = field(default_factory=list)
    on: dict[int, Answer] = field(default_factory=dict)
    seen: Counter[int] = field(default_factory=Counter)
    requests: list[Request] = field(default_factory=list)
    writers: list[asyncio.StreamWriter] = field(default_factory=list)
    reads: asyncio.Event = field(default_factory=asyncio.Event)
    """Clear it, and it reads nothing any more."""

    def __post_init__(self) -> None:
        self.reads.set()
        honest: dict[int, Answer] = {
            ROUTE: lambda asked: asked.answer(body=route({"b": self.address}, self.queues)),
            HEARTBEAT: self._heartbeat,
            MEMBERS: lambda asked: asked.answer(body=json.dumps({"consumerIdList": self.members}).encode()),
            QUERY_OFFSET: lambda asked: asked.answer(fields={"offset": 0}),
            MAX_OFFSET: lambda asked: asked.answer(fields={"offset": 0}),
            MIN_OFFSET: lambda asked: asked.answer(fields={"offset": 0}),
            PULL: lambda asked: HOLD,
        }
        self.on = honest | self.on

    def _heartbeat(self, asked: Request) -> bytes:
        client_id = json.loads(asked.body)["clientID"]
        if client_id not in self.members:
            self.members.append(client_id)
        return asked.answer()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        try:
            while True:
                await self.reads.wait()
                length, mark = struct.unpack(">ii", await reader.readexactly(8))
                header = json.loads(await reader.readexactly(mark & 0xFFFFFF))
                body = await reader.readexactly(length - 4 - (mark & 0xFFFFFF))
                if header["flag"] & RESPONSE:
                    self.seen[-header["code"]] += 1  # an answer to what we asked
                    continue
                asked = Request(header["code"], header["opaque"], header.get("extFields") or {}, body)
                self.seen[asked.code] += 1
                self.requests.append(asked)
                answer = self.on.get(asked.code, Request.answer)(asked)
                if answer is not None and not header["flag"] & ONE_WAY:
                    writer.write(answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def hostile_server(**options: Any) -> AsyncIterator[HostileServer]:
    made = HostileServer(**options)
    listening = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.address = f"127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        listening.close()
        for writer in made.writers:
            writer.close()


def record(
    body: bytes, offset: int, *, sys_flag: int = 0, properties: bytes = b"", topic: bytes = b"T"
) -> bytes:
    """A stored message, as pull answers have it."""
    host = bytes([127, 0, 0, 1]) + struct.pack(">i", 10911)
    middle = struct.pack(">Iiiqqiq", 0, 0, 0, offset, 0, sys_flag, 0) + host
    middle += struct.pack(">q", 0) + host + struct.pack(">iqi", 0, 0, len(body)) + body
    middle += struct.pack(">B", len(topic)) + topic + struct.pack(">H", len(properties)) + properties
    return struct.pack(">II", 8 + len(middle), 0xDAA320A7) + middle


def _frame(
    code: int,
    opaque: int,
    flag: int,
    fields: Mapping[str, object] | None,
    body: bytes = b"",
    remark: str | None = None,
) -> bytes:
    header = {"code": code, "language": "JAVA", "version": 453, "opaque": opaque, "flag": flag}
    texts = {name: str(value) for name, value in (fields or {}).items()}
    return framed(json.dumps(header | {"extFields": texts, "remark": remark}).encode(), body)
