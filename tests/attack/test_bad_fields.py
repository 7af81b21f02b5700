"""Every request of the table, with each of its fields missing, mistyped, oversized and hostile.

Which fields a request has is learned from its handler: the header that it decodes.  So a new code is walked over
without being listed here.  Whatever comes, the answer is one that helps: an error for what is wrong names the field,
none is an unforeseen one, and the server serves the next request as if nothing had been.
"""

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bolide.model.response_code import ResponseCode
from bolide.nameserver.app import NameServer
from bolide.nameserver.config import NameServerConfig
from bolide.wire import schema
from bolide.wire.codes import REQUESTS, RequestCode, Sender
from bolide.wire.command import Command
from bolide.wire.schema import Header, Layout
from tests.unit.broker.stage import serving as serving_broker
from tests.unit.net.stage import Wire

ASKED = [code for code, kind in REQUESTS.items() if kind.sender not in (Sender.TO_CLIENT, Sender.TO_BROKER)]
REMARK_LENGTH_MAX = 2048
HOSTILE_TEXTS = (
    "",
    "x" * 20_000,
    "../../../etc/passwd",
    "%s%n{0}${jndi:ldap://a}",
    "a\x00b\x01c\x02d\r\n",
    "\u202eevil\ud7ff\U0001f600",
    "%RETRY%",
    "' OR 1=1 --",
)
HOSTILE_NUMBERS = (
    "-1",
    str(2**31),
    str(-(2**31) - 1),
    str(2**63),
    "9" * 400,
    "1e9",
    "0x10",
    "١",
    " 1",
    "NaN",
    "1.5",
)
BODIES = (b"", b"\x00", b"{", b"[]", b"null", b'{"a":' * 2000, b'{"topic":7}', b"\xff\xfe", b"x" * 70_000)


class Known(NamedTuple):
    """What a request is made of."""

    layout: Layout
    fields: dict[str, str]
    """With which it gets past its header."""


@contextmanager
def headers_seen() -> Iterator[list[Layout]]:
    """The layouts of the headers that are decoded meanwhile."""
    seen: list[Layout] = []
    decode = Header.decode_by.__func__  # type: ignore[attr-defined]

    def recording(cls: type[Header], layout: Layout, fields: Mapping[str, str]) -> Any:
        seen.append(layout)
        return decode(cls, layout, fields)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Header, "decode_by", classmethod(recording))
        yield seen


async def learn(wire: Wire, code: RequestCode) -> Known | None:
    """The fields of a request; None for one without a header."""
    with headers_seen() as seen:
        await ask(wire, Command(code, {}))
        if not seen:
            return None
        layout = seen[0]
    return Known(layout, {field.spelling: "0" for field in layout if field.default is schema._MISSING})


async def ask(wire: Wire, request: Command) -> Command:
    """The answer to this one; what is told to everybody in between is not one."""
    request.opaque = next(_opaques)
    answer = await wire.ask(request)
    while not answer.is_response or answer.opaque != request.opaque:
        answer = await wire.next()
    return answer


_opaques = itertools.count(1000)


@asynccontextmanager
async def serving_nameserver(root: Path) -> AsyncIterator[tuple[frozenset[int], Wire]]:
    settings = {"listenPort": "0", "bindAddress": "127.0.0.1", "kvConfigPath": str(root / "kv.json")}
    server = NameServer(NameServerConfig.from_settings(settings))
    await server.start()
    try:
        yield server._dispatcher.codes, await Wire.connect(f"127.0.0.1:{server.port}")
    finally:
        await server.stop()


@asynccontextmanager
async def serving(which: str, root: Path) -> AsyncIterator[tuple[frozenset[int], Wire]]:
    if which == "name server":
        async with serving_nameserver(root) as served:
            yield served
    else:
        async with serving_broker(root) as (broker, wire):
            yield broker.state.dispatcher.codes, wire


def judge(code: RequestCode, what: str, answer: Command) -> None:
    """What holds for every answer."""
    name = f"{code.name} with {what[:80]!r}"
    remark = answer.remark or ""
    assert len(remark) <= REMARK_LENGTH_MAX, name
    if answer.code != ResponseCode.SUCCESS:
        assert remark, f"{name}: {answer.code} without a remark"
    assert not remark.startswith(("KeyError", "TypeError", "ValueError", "AttributeError", "IndexError")), (
        name
    )


async def walk(wire: Wire, code: RequestCode) -> int:
    """Gives the number of its fields."""
    known = await learn(wire, code)
    for body in BODIES:
        fields = {} if known is None else known.fields
        judge(code, f"the body {body[:20]!r}", await ask(wire, Command(code, fields, body)))
    if known is None:
        return 0
    for field in known.layout:
        await walk_field(wire, code, known.fields, field)
    return len(known.layout)


async def walk_field(wire: Wire, code: RequestCode, fields: dict[str, str], field: schema._Field) -> None:
    name, is_text = field.spelling, field.read is schema._read_text
    is_required, is_number = (
        field.default is schema._MISSING,
        field.read in (schema._read_int, schema._read_long),
    )
    if is_required:
        left = {spelling: text for spelling, text in fields.items() if spelling != name}
        answer = await ask(wire, Command(code, left))
        judge(code, f"no {name}", answer)
        assert answer.code == ResponseCode.INVALID_PARAMETER, f"{code.name} without {name}"
        assert f"required field {name} is missing" in (answer.remark or ""), code.name
    for text in HOSTILE_TEXTS if is_text else (*HOSTILE_NUMBERS, *HOSTILE_TEXTS):
        answer = await ask(wire, Command(code, {**fields, name: text}))
        judge(code, f"{name}={text}", answer)
        if is_number and text not in ("", "-1", str(2**31), str(-(2**31) - 1)):
            assert answer.code == ResponseCode.INVALID_PARAMETER, f"{code.name} with {name}={text[:40]!r}"
            assert name in (answer.remark or ""), code.name


@pytest.mark.parametrize("which", ["broker", "name server"])
def test_every_field_of_every_request_is_refused_with_a_word_that_helps(
    which: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> int:
        async with serving(which, tmp_path) as (codes, wire):
            served = [code for code in ASKED if code in codes]
            return sum([await walk(wire, code) for code in served])

    with caplog.at_level(logging.ERROR):
        assert asyncio.run(main()) > 30
    unforeseen = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert unforeseen == []


def test_every_request_of_the_table_is_served_by_one_of_the_two(tmp_path: Path) -> None:
    async def main() -> set[RequestCode]:
        async with (
            serving("broker", tmp_path / "b") as (broker, _),
            serving("name server", tmp_path) as (names, _),
        ):
            return set(ASKED) - broker - names

    assert asyncio.run(main()) == set()
