"""The readable twin of `_pull.pyx`: scanning a pull request, and answering one that found messages.

A consumer asks the same again and again; only the offset to read from, the offset to commit and the opaque differ.
What is left of the header without these three numbers is the request's shape: two requests of equal shape differ in
nothing else, so whatever was checked for one holds for the other.
"""

import re
import struct

from bolide.model.limits import HEADER_FIELDS_MAX
from bolide.wire.command import LANGUAGE, VERSION, Command, encode_head
from bolide.wire.frame_twin import (
    AFTER_FIELDS,
    FIELD,
    FIELDS_START,
    NotPlain,
    expect,
    expect_end,
    expect_start,
)

_PREFIX = struct.Struct(">II")
_CODES = ("11", "361")
_DIGITS = re.compile(r"-?[0-9]{1,18}", re.ASCII)

PullScan = tuple[bytes, int, int, int, int]
"""Shape, opaque, queue offset, commit offset, and where the frame ends."""


def scan_pull(buffer: bytearray, start: int, end: int) -> PullScan | None:
    """The plain pull request that begins at `start`; None for anything else, which the general path handles."""
    if start < 0 or end > len(buffer):
        raise ValueError("the frame lies outside the buffer")
    if end - start < 8:
        return None
    length, mark = _PREFIX.unpack_from(buffer, start)
    if mark + 4 != length or end - start < 4 + length:
        return None
    header = bytes(buffer[start + 8 : start + 4 + length])
    try:
        numbers = _read_head(header.decode())
    except (NotPlain, UnicodeDecodeError):
        return None
    texts = {name: number[0] for name, number in numbers.items()}
    if texts.keys() != {"opaque", "queueOffset", "commitOffset"}:
        return None
    if not all(_DIGITS.fullmatch(text) for text in texts.values()):
        return None
    opaque, queue_offset = int(texts["opaque"]), int(texts["queueOffset"])
    if not -0x8000_0000 <= opaque <= 0x7FFF_FFFF or queue_offset < 0:
        return None
    shape = header.decode()
    for text, at in sorted(numbers.values(), key=lambda number: number[1], reverse=True):
        shape = shape[:at] + shape[at + len(text) :]
    return shape.encode(), opaque, queue_offset, int(texts["commitOffset"]), start + 4 + length


def _read_head(text: str) -> dict[str, tuple[str, int]]:
    """The three numbers, each with its place.

    What counts may be there only once, and the code comes before the fields, as in a send.
    """
    numbers: dict[str, tuple[str, int]] = {}
    seen: set[str] = set()
    at = expect_start(text)
    mark = ","
    while mark == ",":
        member = FIELD.match(text, at)
        name = "extFields" if member is None else member["key"]
        if name in seen and name in ("code", "flag", "opaque", "extFields"):
            raise NotPlain
        seen.add(name)
        if member is None:
            start = expect(FIELDS_START, text, at)
            if start["key"] != "extFields" or "code" not in seen:
                raise NotPlain
            at = _read_fields(text, start.end(), numbers)
            member = expect(AFTER_FIELDS, text, at)
        elif name == "extFields" or not _is_wanted(name, member["number"]):
            raise NotPlain
        elif name == "opaque":
            numbers["opaque"] = (member["number"], member.start("number"))
        at, mark = member.end(), member["mark"]
    expect_end(text, at)
    if not {"flag", "extFields"} <= seen:
        raise NotPlain
    return numbers


def _is_wanted(name: str, number: str | None) -> bool:
    if name == "code":
        return number in _CODES
    if name == "flag":
        return number in ("0", "-0")
    return name != "opaque" or number is not None


def _read_fields(text: str, at: int, numbers: dict[str, tuple[str, int]]) -> int:
    mark, count = ",", 0
    while mark == ",":
        count += 1
        if count > HEADER_FIELDS_MAX:
            raise NotPlain
        field = expect(FIELD, text, at)
        name = field["key"]
        if name in ("queueOffset", "commitOffset"):
            if name in numbers or field["text"] is None:
                raise NotPlain
            numbers[name] = (field["text"], field.start("text"))
        at, mark = field.end(), field["mark"]
    return at


def encode_found(opaque: int, next_offset: int, offset_min: int, offset_max: int, body_length: int) -> bytes:
    """Prefix and header of the answer to a plain pull that found messages; the caller sends the body behind it."""
    fields = {
        "suggestWhichBrokerId": "0",
        "nextBeginOffset": str(next_offset),
        "minOffset": str(offset_min),
        "maxOffset": str(offset_max),
    }
    answer = Command(0, fields, remark="FOUND", opaque=opaque, flag=1, language=LANGUAGE, version=VERSION)
    return encode_head(answer, body_length)
