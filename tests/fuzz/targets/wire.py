"""Frames and headers: what anybody can send to a server, and a server to a client."""

import inspect
import struct
from types import ModuleType
from typing import Any

from bolide.model import end_rows
from bolide.model.errors import ProtocolError, RequestError
from bolide.model.limits import FRAME_BYTES_MAX
from bolide.model.send_rows import COLUMNS
from bolide.wire.command import COMPACT, Command, encode_frame
from bolide.wire.frame import FrameReader, Intake, decode_frame
from bolide.wire.headers import admin as admin_headers
from bolide.wire.headers import group as group_headers
from bolide.wire.headers import offset as offset_headers
from bolide.wire.headers import pull as pull_headers
from bolide.wire.headers import query as query_headers
from bolide.wire.headers import reply as reply_headers
from bolide.wire.headers import retry as retry_headers
from bolide.wire.headers import route as route_headers
from bolide.wire.headers import send as send_headers
from bolide.wire.headers import topic as topic_headers
from bolide.wire.headers import transaction as transaction_headers
from bolide.wire.headers import write as write_headers
from bolide.wire.pull_frame import PullFrame
from bolide.wire.schema import Header, layout_of
from bolide.wire.send_run import SendRun
from tests.fuzz.mutate import SIZE_BYTES_MAX
from tests.fuzz.target import Target
from tests.property.test_scan_twins import Speller
from tests.property.twins import FRAMES, PULLS, outcome
from tests.unit.wire.stage import frame, send_frame

# ---- frames -------------------------------------------------------------------------------------------------

_PULL = (
    b'{"code":11,"extFields":{"consumerGroup":"g","topic":"T","queueId":"0","queueOffset":"5","maxMsgNums":"32",'
    b'"sysFlag":"6","commitOffset":"4","suspendTimeoutMillis":"15000","subscription":"*","subVersion":"0"},'
    b'"flag":0,"language":"JAVA","opaque":9,"serializeTypeCurrentRPC":"JSON","version":493}'
)
_FRAME_TOKENS = (
    *(
        b'"extFields":{',
        b'"code":',
        b'"code":10',
        b'"code":11',
        b'"code":310',
        b'"flag":2',
        b'"opaque":',
        b'"b":"',
    ),
    *(
        b'"i":"',
        b'"m":"true"',
        b'"queueOffset":"',
        b'"commitOffset":"',
        b"\x00\x00\x00\x04",
        b"\x01\x00\x00\x00",
    ),
)

_SMALL_INTAKE, _INTAKE = Intake(256), Intake(SIZE_BYTES_MAX)
_RUNS = [SendRun(4096) for _ in FRAMES]
"""Memory that is used again and again, as by the connections of a server."""


def _frames() -> list[bytes]:
    one, two = Command(34, {"a": "b", "c": "1"}, b"body", opaque=3), Command(0, {}, remark="why not", flag=1)
    compact = [
        encode_frame(Command(command.code, command.fields, command.body, command.remark, 7, 1, form=COMPACT))
        for command in (one, two)
    ]
    spelled = [frame(Speller(seed).header(), b"x") for seed in range(30)]
    pulls = [frame(_PULL), *(frame(Speller(seed).pull_header()) for seed in range(10))]
    batch = struct.pack(">IIIiI", 24, 0, 0, 0, 2) + b"hi" + struct.pack(">H", 0)
    sends = [send_frame(1) + send_frame(2, b"second", i="K\x01a\\b\x02"), send_frame(3, batch, m="true")]
    return [encode_frame(one), encode_frame(two), *compact, *spelled, *pulls, *sends]


def mend_frame(data: bytes) -> bytes:
    """One frame of all of it, whose header ends with the last brace."""
    if len(data) < 8:
        return data
    header_length = max(0, data.rfind(b"}") - 7) if data[4] == 0 else len(data) - 8
    return struct.pack(">IB", len(data) - 4, data[4]) + header_length.to_bytes(3, "big") + data[8:]


def _read_commands(data: bytes) -> list[Command]:
    """Through a reader whose memory is smaller than many frames."""
    reader = FrameReader(_SMALL_INTAKE)
    commands = reader.feed(data)
    assert reader.kept <= len(data)
    return commands


def _hold_commands(commands: list[Command]) -> None:
    for command in commands:
        assert decode_frame(encode_frame(command)) == command


def _read_hot(data: bytes) -> list[tuple[bytes, Command]]:
    """Runs and pulls as a server's connection takes them, each beside what the general path makes of its frame."""
    reader = FrameReader(_INTAKE, hot=True)
    reader.writable()[: len(data)] = data
    reader.received(len(data))
    found: list[tuple[bytes, Command]] = []
    while (item := reader.next()) is not None:
        if isinstance(item, SendRun):
            frames = [item.frame(row) for row in range(item.count)]
            frames += [item.end_frame(number) for number in range(item.end_count)]
            found += [(bytes(frame), _general(frame)) for frame in frames]
        elif isinstance(item, PullFrame):
            found.append((item.frame(), _general(item.frame())))
    return found


def _general(whole: bytes | memoryview) -> Command:
    """What a plain request is to the general path, which may find fault with parts that nobody needs."""
    try:
        return decode_frame(whole)
    except ProtocolError:
        return Command(-1)


def _hold_hot(found: list[tuple[bytes, Command]]) -> None:
    assert all(command.code in (-1, 10, 310, 320, 37, 11, 361) for _, command in found)


def _scan(data: bytes) -> None:
    """Compiled and readable scans take the same requests, and answer them alike."""
    seen = [_scanned(module, run, data) for module, run in zip(FRAMES, _RUNS, strict=True)]
    assert seen[0] == seen[1]
    pulls = [outcome(module.scan_pull, bytearray(data), 0, len(data)) for module in PULLS]
    assert pulls[0] == pulls[1]
    counts = [module.count_marks(memoryview(data)) for module in FRAMES]
    assert counts[0] == counts[1]


def _scanned(module: Any, run: SendRun, data: bytes) -> tuple[Any, ...]:
    """Everything that a scan leaves behind, and the answers."""
    stop = module.scan_sends(run, bytearray(data), 0, len(data), FRAME_BYTES_MAX)
    answers = module.encode_send_answers(run, 0, run.count, b"7F000001", b',"x":"y"},"opaque":')
    rows, ends = run.rows[: run.count * COLUMNS], run.ends[: run.end_count * end_rows.COLUMNS]
    return stop, rows, ends, run.topics, bytes(run.properties[: run.properties_used]), answers


# ---- headers ------------------------------------------------------------------------------------------------


def _headers_in(*modules: ModuleType) -> dict[str, type[Header]]:
    return {
        name: found
        for module in modules
        for name, found in inspect.getmembers(module, inspect.isclass)
        if issubclass(found, Header) and found is not Header
    }


HEADERS = _headers_in(
    admin_headers, group_headers, offset_headers, pull_headers, query_headers, route_headers,
    send_headers, topic_headers, reply_headers, retry_headers, transaction_headers, write_headers,
)  # fmt: skip


def _header_texts() -> list[bytes]:
    """The name of the class, then a line for each field, with a value that most types take."""
    return [
        "\n".join([name, *(f"{one.spelling}=1" for one in layout_of(found))]).encode()
        for name, found in HEADERS.items()
    ]


def _read_header(data: bytes) -> Header | None:
    name, *lines = data.decode("utf-8", "replace").split("\n")
    fields = dict(line.partition("=")[::2] for line in lines)
    if name == "SendRequest":
        send_headers.SendRequest.decode_long(
            {"topic": "T", **{letter: text for letter, text in fields.items() if len(letter) > 1}}
        )
    return HEADERS[name].decode(fields) if name in HEADERS else None


def _hold_header(header: Header | None) -> None:
    if header is not None:
        assert type(header).decode(header.encode()) == header


WIRE = [
    Target(
        "frame.commands", _frames, _read_commands, (ProtocolError,), _hold_commands, mend_frame, _FRAME_TOKENS
    ),
    Target("frame.hot", _frames, _read_hot, (ProtocolError,), _hold_hot, mend_frame, _FRAME_TOKENS),
    Target("frame.twins", _frames, _scan, mend=mend_frame, tokens=_FRAME_TOKENS),
    Target(
        "headers",
        _header_texts,
        _read_header,
        (RequestError,),
        _hold_header,
        tokens=tuple(name.encode() for name in HEADERS),
    ),
]
