"""Server: ports, limits, silent connections."""

import asyncio
import os
import resource
import socket
import struct
from functools import partial

import pytest

from bolide.model.errors import ConfigError
from bolide.net import link as link_module
from bolide.net import server as server_module
from bolide.net.clock import SystemClock
from bolide.net.link import Link
from bolide.net.server import Server
from bolide.wire.command import Command, encode_frame
from tests.unit.net.stage import Bench, Wire, eventually, serving
from tests.unit.net.test_link import HANDLERS
from tests.unit.net.turns import counted_by_turn
from tests.unit.store.stage import HeldClock


def test_a_port_in_use_is_named_with_what_to_do() -> None:
    async def main() -> None:
        async with serving(HANDLERS) as (_, _, address):
            port = int(address.rpartition(":")[2])
            with pytest.raises(ConfigError, match=f"port {port} on 127.0.0.1 is already in use"):
                await Server(Bench({}), SystemClock()).start("127.0.0.1", port)

    asyncio.run(main())


def test_connections_are_limited_and_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with serving(HANDLERS, connections_max=2) as (bench, server, address):
            first, second = await Wire.connect(address), await Wire.connect(address)
            await first.ask(Command(1))
            await second.ask(Command(1))
            for _ in range(3):
                third = await Wire.connect(address)
                assert await third.closed()
            assert caplog.text.count("2 connections are open") == 1
            assert (await first.ask(Command(1))).code == 0
            assert len(bench.opened) == 2
            second.close()
            await eventually(lambda: len(server.links) == 1)
            fourth = await Wire.connect(address)
            assert (await fourth.ask(Command(1))).code == 0

    asyncio.run(main())


def test_connections_leave_descriptors_for_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Method: a process that may have 40, of which 10 are kept, and sockets that get these numbers."""
    numbers = iter([29, 30, 12])
    monkeypatch.setattr(server_module, "DESCRIPTORS_KEPT", 10)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (40, 40))
    monkeypatch.setattr(Link, "descriptor", property(lambda link: next(numbers)))

    async def main() -> None:
        async with serving(HANDLERS) as (_, _, address):
            first = await Wire.connect(address)
            assert (await first.ask(Command(1))).code == 0
            second = await Wire.connect(address)
            assert await second.closed()
            third = await Wire.connect(address)
            assert (await third.ask(Command(1))).code == 0
            assert (await first.ask(Command(1))).code == 0

    asyncio.run(main())


def test_a_link_knows_the_descriptor_of_its_socket() -> None:
    async def main() -> None:
        async with serving(HANDLERS) as (bench, _, address):
            wire = await Wire.connect(address)
            await wire.ask(Command(1))
            (link,) = bench.opened
            assert os.readlink(f"/proc/self/fd/{link.descriptor}").startswith("socket:")
            wire.close()
            await eventually(lambda: link.descriptor == -1)

    asyncio.run(main())


def test_a_thousand_idle_connections_are_held_and_others_are_served() -> None:
    async def main() -> None:
        async with serving(HANDLERS, connections_max=2000) as (_, server, address):
            host, _, port = address.rpartition(":")
            idle = []
            for _ in range(20):
                idle += await asyncio.gather(*(asyncio.open_connection(host, int(port)) for _ in range(50)))
            await eventually(lambda: len(server.links) == 1000)
            wire = await Wire.connect(address)
            assert (await wire.ask(Command(1))).code == 0
            for _, writer in idle:
                writer.close()
            await eventually(lambda: len(server.links) == 1)

    asyncio.run(main())


def test_a_connection_silent_for_two_minutes_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "SWEEP_MS", 10)
    clock = HeldClock()

    async def main() -> None:
        async with serving(HANDLERS, clock=clock) as (_, server, address):
            silent, lively = await Wire.connect(address), await Wire.connect(address)
            await silent.ask(Command(1))
            await lively.ask(Command(1))
            await eventually(lambda: not any(link._finished for link in server.links))
            clock.ms += 119_000
            await lively.ask(Command(1))
            await eventually(lambda: not any(link._finished for link in server.links))
            clock.ms += 2_000
            assert await silent.closed()
            assert (await lively.ask(Command(1))).code == 0
            assert len(server.links) == 1

    asyncio.run(main())


def test_a_connection_is_busy_for_longer_than_from_one_heartbeat_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server_module, "SWEEP_MS", 10)
    clock = HeldClock()

    async def main() -> None:
        async with serving(HANDLERS, clock=clock) as (_, server, address):
            beating, silent = await Wire.connect(address), await Wire.connect(address)
            await beating.ask(Command(1))
            await eventually(lambda: len(server.links) == 2)
            await eventually(lambda: not any(link._finished for link in server.links))
            clock.ms += 31_000
            assert [link.is_busy for link in server.links] == [True, False]
            clock.ms += 30_000
            assert not any(link.is_busy for link in server.links)
            silent.close()

    asyncio.run(main())


def test_many_silent_connections_are_closed_some_per_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "SWEEP_MS", 10)
    clock = HeldClock()
    count = 2 * server_module.CLOSED_PER_TURN + 1

    async def main() -> None:
        async with serving(HANDLERS, clock=clock) as (bench, server, address):
            wires = [await Wire.connect(address) for _ in range(count)]
            await eventually(lambda: len(server.links) == count)
            with counted_by_turn(Link, "abort") as closed:
                clock.ms += 121_000
                await eventually(lambda: not server.links)
            assert (closed.most, closed.total) == (server_module.CLOSED_PER_TURN, count)
            assert len(bench.closed) == count
            for wire in wires:
                wire.close()

    asyncio.run(main())


def has_come(link: Link, size: int) -> bool:
    return link._reader.kept == size or not link.is_open


def test_a_frame_that_comes_byte_by_byte_for_ever_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "SWEEP_MS", 10)
    clock = HeldClock()

    async def main() -> None:
        async with serving(HANDLERS, clock=clock) as (_, server, address):
            slow = await Wire.connect(address)
            await slow.ask(Command(1))
            (link,) = server.links
            await eventually(lambda: not link._finished)
            for byte in encode_frame(Command(1, body=bytes(1000)))[:121]:
                came = link._reader.kept + 1
                slow.send(bytes((byte,)))
                await eventually(partial(has_come, link, came))
                clock.ms += 1_000
            assert await slow.closed()
            await eventually(lambda: not server.links)
            assert server.kept_bytes == 0

    asyncio.run(main())


def test_a_connection_that_asks_and_does_not_read_is_closed_whatever_is_pending(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It sends all the time, and what waits for it is far below the bound at which it would not be served."""
    monkeypatch.setattr(server_module, "SWEEP_MS", 10)
    clock = HeldClock()
    sizes = {b"large": 3_000_000, b"": 100}

    served: list[Link] = []

    def answer(link: Link, request: Command) -> Command:
        served.append(link)
        return request.answer(body=bytes(sizes[request.body]))

    def was_served_or_closed(link: Link, before: int) -> bool:
        return not link.is_open or served.count(link) > before

    async def main() -> None:
        async with serving({1: answer}, clock=clock) as (_, server, address):
            deaf, lively = await Wire.connect(address), await Wire.connect(address)
            deaf.reader._transport.pause_reading()  # type: ignore[attr-defined]
            deaf.send(Command(1, body=b"large"), Command(1, body=b"large"))
            await eventually(lambda: server.kept_bytes > 0)
            link = next(iter(server.links))
            assert not link.is_congested
            for _ in range(13):
                before = served.count(link)
                deaf.send(Command(1))
                await lively.ask(Command(1))
                await eventually(partial(was_served_or_closed, link, before))
                await eventually(lambda: not any(one._finished for one in server.links))
                clock.ms += 10_000
            await eventually(lambda: len(server.links) == 1)
            assert server.kept_bytes == 0
            assert (await lively.ask(Command(1))).code == 0

    asyncio.run(main())


def test_a_connection_that_is_to_be_closed_and_does_not_read_goes_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(link_module, "CLOSING_S", 0.01)

    async def main() -> None:
        handlers = {1: lambda _, request: request.answer(body=bytes(3_000_000))}
        async with serving(handlers) as (_, server, address):
            deaf = await Wire.connect(address)
            deaf.reader._transport.pause_reading()  # type: ignore[attr-defined]
            deaf.send(Command(1), Command(1))
            await eventually(lambda: server.kept_bytes > 0)
            (link,) = server.links
            link.close()
            await eventually(lambda: not server.links)

    asyncio.run(main())


def test_what_a_connection_brings_that_was_reset_before_it_was_accepted_is_not_served() -> None:
    """A message keeps the address of its sender; the faster loop does not know it any more."""

    async def main() -> None:
        served: list[str] = []

        def note(link: Link, request: Command) -> Command:
            served.append(link.remote)
            return request.answer()

        async with serving({1: note}) as (bench, server, address):
            host, _, port = address.rpartition(":")
            for _ in range(20):
                with socket.create_connection((host, int(port))) as gone:  # nobody accepts it meanwhile
                    gone.sendall(encode_frame(Command(1)))
                    gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            honest = await Wire.connect(address)
            assert (await honest.ask(Command(1))).code == 0
            assert len(served) == len(bench.opened) == len(server.links) == 1

    pytest.importorskip("uvloop").run(main())
