"""Requests that wait: how many one host may have."""

import asyncio

import pytest

from bolide.model.response_code import ResponseCode
from bolide.net import dispatch as dispatch_module
from bolide.net.link import Link
from bolide.wire.command import Command
from tests.unit.net.stage import Wire, serving
from tests.unit.store.stage import HeldClock


def test_a_host_whose_requests_wait_keeps_no_other_host_from_being_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As many as there may be are not for one host: it is refused before others are."""
    monkeypatch.setattr(dispatch_module, "IN_FLIGHT_MAX", 100)
    monkeypatch.setattr(dispatch_module, "IN_FLIGHT_OF_ONE_MAX", 5)

    async def main() -> None:
        gate = asyncio.Event()

        async def wait(link: Link, request: Command) -> Command:
            await gate.wait()
            return request.answer()

        async with serving({1: wait, 2: lambda _, request: request.answer()}, clock=HeldClock()) as (
            _,
            _,
            address,
        ):
            greedy = await Wire.connect(address, by="127.0.0.1")
            other = await Wire.connect(address, by="127.0.0.2")
            greedy.send(*(Command(1, opaque=number) for number in range(110)))
            refused = await greedy.next()
            assert refused.code == ResponseCode.SYSTEM_BUSY
            assert (await other.ask(Command(2))).code == 0
            other.send(*(Command(1) for _ in range(5)))
            gate.set()
            assert [(await other.next()).code for _ in range(5)] == [0] * 5
            codes = [(await greedy.next()).code for _ in range(109)]
            assert 25 < codes.count(0) < 50

    asyncio.run(main())
