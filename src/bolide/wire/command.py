"""Command: one request or response, and its two header forms.

A frame is `length(4) mark(4) header body`, big-endian.  `length` does not count itself.  The mark's top byte says
which form the header has, its low 24 bits how long it is:

    JSON (0)      {"code":11,"flag":0,"language":"JAVA","opaque":7,"version":493,"extFields":{"topic":"T"}}
    compact (1)   code(2) language(1) version(2) opaque(4) flag(4) remarkLength(4) remark
                  fieldsLength(4) then keyLength(2) key valueLength(4) value …

A server answers in the form it was asked in, because some clients read only one of them.
"""

import dataclasses
import struct
from dataclasses import dataclass, field
from typing import Any

import orjson

from bolide.model.errors import ProtocolError
from bolide.model.limits import HEADER_FIELDS_MAX
from bolide.model.response_code import ResponseCode

VERSION = 493
"""What we say we are: MQVersion.V5_4_0.  Clients refuse features to brokers that say 0."""

LANGUAGE = "PYTHON"
LANGUAGES = (
    *("JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER"),
    *("HTTP", "GO", "PHP", "OMS", "RUST", "NODE_JS"),
)
OTHER = LANGUAGES.index("OTHER")
_KNOWN = {name: name for name in LANGUAGES}

ACCESS_KEY = "AccessKey"
SECURITY_TOKEN = "SecurityToken"
SIGNATURE = "Signature"
PROOFS = frozenset({ACCESS_KEY, SECURITY_TOKEN, SIGNATURE})
"""Fields that say who asks and prove it; whoever reads a log must not learn them."""

FLAG_RESPONSE = 1
FLAG_ONE_WAY = 2

JSON = 0
COMPACT = 1

_HEADER_LENGTH_MAX = 0xFFFFFF
_FIXED = struct.Struct(">hBhiii")
_U32 = struct.Struct(">I")
_U16 = struct.Struct(">H")
_PREFIX = struct.Struct(">II")

# Codes above 32767 do not fit the compact form's 16 bits; real clients send them truncated.
_TRUNCATED = {code & 0xFFFF: code for code in (*range(200050, 200057), 200151)}


@dataclass(slots=True)
class Command:
    """`fields` are RocketMQ's extFields: text to text, spelled as on the wire.  `language` is one of `LANGUAGES`."""

    code: int
    fields: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    remark: str | None = None
    opaque: int = 0
    flag: int = 0
    language: str = LANGUAGE
    version: int = VERSION
    form: int = JSON
    frame_bytes: int = field(default=0, compare=False)
    """The length of the frame that it came in, which is what it costs to keep; 0 for one that was made here."""

    def __repr__(self) -> str:
        return f"Command({shown(self)})"

    @property
    def is_response(self) -> bool:
        return bool(self.flag & FLAG_RESPONSE)

    @property
    def is_one_way(self) -> bool:
        return bool(self.flag & FLAG_ONE_WAY)

    def answer(
        self,
        code: int = ResponseCode.SUCCESS,
        fields: dict[str, str] | None = None,
        body: bytes = b"",
        remark: str | None = None,
    ) -> "Command":
        """The response to this request: same opaque, same header form."""
        return Command(
            code=code,
            fields={} if fields is None else fields,
            body=body,
            remark=remark,
            opaque=self.opaque,
            flag=FLAG_RESPONSE,
            form=self.form,
        )


def shown(record: Any) -> str:
    """How a dataclass with `fields` of a request shows itself: as all do, but without proofs."""
    values = {one.name: getattr(record, one.name) for one in dataclasses.fields(record) if one.repr}
    values["fields"] = {name: text for name, text in values["fields"].items() if name not in PROOFS}
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def encode_head(command: Command, body_length: int) -> bytes:
    """Prefix and header; the caller sends `body_length` bytes of body behind it."""
    header = _encode_json(command) if command.form == JSON else _encode_compact(command)
    if len(header) > _HEADER_LENGTH_MAX:
        raise ProtocolError(f"a header of {len(header)} bytes does not fit a frame")
    return _PREFIX.pack(4 + len(header) + body_length, command.form << 24 | len(header)) + header


def encode_frame(command: Command) -> bytes:
    """The whole frame."""
    return encode_head(command, len(command.body)) + command.body


def decode_command(form: int, header: bytes | memoryview, body: bytes) -> Command:
    """A command from a frame's parts; `ProtocolError` for anything that is not one."""
    if form == JSON:
        command = _decode_json(header, body)
    elif form == COMPACT:
        command = _decode_compact(bytes(header), body)
    else:
        raise ProtocolError(f"unknown header form {form}")
    command.frame_bytes = _PREFIX.size + len(header) + len(body)
    return command


def _encode_json(command: Command) -> bytes:
    head: dict[str, Any] = {
        "code": int(command.code),
        "extFields": command.fields,
        "flag": command.flag,
        "language": command.language,
        "opaque": command.opaque,
        "serializeTypeCurrentRPC": "JSON",
        "version": command.version,
    }
    if command.remark is not None:
        head["remark"] = command.remark
    return orjson.dumps(head)


def _decode_json(header: bytes | memoryview, body: bytes) -> Command:
    try:
        head = orjson.loads(header)
    except orjson.JSONDecodeError as error:
        raise ProtocolError(f"the header is not JSON: {error}") from error
    if not isinstance(head, dict):
        raise ProtocolError("the header is not a JSON object")
    fields = head.get("extFields") or {}
    if not isinstance(fields, dict):
        raise ProtocolError("extFields is not a JSON object")
    if len(fields) > HEADER_FIELDS_MAX:
        raise _too_many_fields()
    try:
        for value in fields.values():
            if type(value) is not str:
                fields = {name: _text(value) for name, value in fields.items() if value is not None}
                break
        return Command(
            code=_integer(head, "code"),
            fields=fields,
            body=body,
            remark=_remark(head.get("remark")),
            opaque=_integer(head, "opaque"),
            flag=_integer(head, "flag"),
            language=_KNOWN.get(head.get("language", ""), "OTHER"),
            version=_version(head),
            form=JSON,
        )
    except (ValueError, TypeError, OverflowError, RecursionError) as error:  # the last: nested too deeply
        raise ProtocolError(f"malformed header: {error}") from error


def _version(head: dict[str, Any]) -> int:
    """It is only compared, so one that cannot be is no reason to refuse what the scans of plain requests take."""
    value = int(head.get("version") or 0)
    return value if -0x8000_0000 <= value <= 0x7FFF_FFFF else 0


def _integer(head: dict[str, Any], name: str) -> int:
    value = int(head.get(name) or 0)
    if not -0x8000_0000 <= value <= 0x7FFF_FFFF:
        raise ValueError(f"{name} is not a 32-bit number")
    return value


def _remark(value: object) -> str | None:
    return None if value is None else str(value)


def _text(value: object) -> str:
    """Node and C++ send numbers and booleans where Java sends text."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return orjson.dumps(value).decode()
    return str(value)


def _encode_compact(command: Command) -> bytes:
    code = command.code & 0xFFFF
    language = LANGUAGES.index(command.language) if command.language in LANGUAGES else OTHER
    remark = (command.remark or "").encode()
    fields = bytearray()
    for name, value in command.fields.items():
        key, text = name.encode(), value.encode()
        fields += _U16.pack(len(key)) + key + _U32.pack(len(text)) + text
    return b"".join(
        (
            _FIXED.pack(
                code - 0x10000 if code & 0x8000 else code,
                language,
                command.version,
                command.opaque,
                command.flag,
                len(remark),
            ),
            remark,
            _U32.pack(len(fields)),
            fields,
        )
    )


def _decode_compact(header: bytes, body: bytes) -> Command:
    try:
        code, language, version, opaque, flag, remark_length = _FIXED.unpack_from(header)
        at = _FIXED.size
        remark = _slice(header, at, remark_length).decode() if remark_length else None
        at += remark_length
        (fields_length,) = _U32.unpack_from(header, at)
        at += 4
        end = at + fields_length
        if end > len(header):
            raise ProtocolError("the compact header is cut short")
        fields: dict[str, str] = {}
        count = 0  # of what came: names may be equal
        while at < end:
            count += 1
            if count > HEADER_FIELDS_MAX:
                raise _too_many_fields()
            (key_length,) = _U16.unpack_from(header, at)
            key = _slice(header, at + 2, key_length).decode()
            at += 2 + key_length
            (value_length,) = _U32.unpack_from(header, at)
            fields[key] = _slice(header, at + 4, value_length).decode()
            at += 4 + value_length
    except (struct.error, UnicodeDecodeError) as error:
        raise ProtocolError(f"malformed compact header: {error}") from error
    return Command(
        code=_TRUNCATED.get(code & 0xFFFF, code & 0xFFFF),
        fields=fields,
        body=body,
        remark=remark,
        opaque=opaque,
        flag=flag,
        language=LANGUAGES[language] if language < len(LANGUAGES) else "OTHER",
        version=version,
        form=COMPACT,
    )


def _too_many_fields() -> ProtocolError:
    return ProtocolError(f"a header with more than {HEADER_FIELDS_MAX} fields")


def _slice(header: bytes, at: int, length: int) -> bytes:
    if length < 0 or at + length > len(header):
        raise ProtocolError("the compact header is cut short")
    return header[at : at + length]
