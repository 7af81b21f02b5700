"""The simulated network behaves as TCP does where it matters to us."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from bolide.net.surroundings import Surroundings
from tests.simulation.world import Host, World

PORT = 7000


class Ear(asyncio.BufferedProtocol):
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.heard = bytearray()
        self.reads = 0
        self.paused = self.resumed = 0
        self.lost: list[Exception | None] = []
        self.transport: Any = None
        self._buffer = bytearray(1024)

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.reads += 1
        self.heard += self._buffer[:nbytes]

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self.paused += 1

    def resume_writing(self) -> None:
        self.resumed += 1

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.append(exc)


class Scene:
    """Two hosts and a connection between them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.near, self.far = world.add_host("near"), world.add_host("far")
        self.client, self.server = Ear(), Ear()

    async def connect(self) -> None:
        self.world.start(self.far, self._serve)
        await self.world.sleep(0.1)
        self.world.start(self.near, self._call)
        await self.world.until("they are connected", lambda: self.server.transport is not None, 5)
        await self.world.sleep(1)

    async def _serve(self, surroundings: Surroundings) -> None:
        loop = asyncio.get_running_loop()
        await loop.create_server(lambda: self.server, self.far.address, PORT)

    async def _call(self, surroundings: Surroundings) -> None:
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: self.client, self.far.address, PORT)

    def cut(self, *, both_ways: bool = True) -> None:
        self.world.cut([self.near], [self.far], both_ways=both_ways)


def play(act: Callable[[Scene], Coroutine[Any, Any, None]], seed: int = 1) -> None:
    scene = Scene(World(seed))
    scene.world.run(act(scene))


@pytest.mark.parametrize("seed", range(5))
def test_bytes_arrive_whole_in_order_and_in_pieces(seed: int) -> None:
    async def act(scene: Scene) -> None:
        await scene.connect()
        sent = bytes(range(256)) * 1000
        for at in range(0, len(sent), 7001):
            scene.client.transport.write(sent[at : at + 7001])
            await scene.world.sleep(0.0001)
        await scene.world.until("all has come", lambda: len(scene.server.heard) == len(sent), 60)
        assert scene.server.heard == sent
        assert scene.server.transport.get_extra_info("peername")[0] == scene.near.address

    play(act, seed)


def test_who_does_not_read_holds_up_who_writes() -> None:
    async def act(scene: Scene) -> None:
        await scene.connect()
        scene.server.transport.pause_reading()
        scene.client.transport.write(bytes(1_000_000))
        await scene.world.sleep(5)
        assert (scene.client.paused, scene.client.resumed, len(scene.server.heard)) == (1, 0, 0)
        scene.server.transport.resume_reading()
        await scene.world.until("all has come", lambda: len(scene.server.heard) == 1_000_000, 60)
        assert scene.client.resumed == 1

    play(act)


def test_a_cut_is_silence_and_what_was_said_comes_after_it_heals() -> None:
    async def act(scene: Scene) -> None:
        await scene.connect()
        scene.cut()
        scene.client.transport.write(b"hello")
        await scene.world.sleep(30)
        assert not scene.server.heard
        assert not scene.client.lost + scene.server.lost
        scene.world.heal()
        await scene.world.until("it comes", lambda: scene.server.heard == b"hello", 30)

    play(act)


def test_a_cut_without_end_is_noticed_after_a_quarter_of_an_hour_by_who_has_something_to_say() -> None:
    async def act(scene: Scene) -> None:
        await scene.connect()
        scene.cut()
        scene.client.transport.write(b"hello")
        took = await scene.world.until("it is noticed", lambda: bool(scene.client.lost), 3600)
        assert 800 < took < 1000
        assert isinstance(scene.client.lost[0], TimeoutError)
        assert scene.server.lost == []

    play(act)


def test_a_killed_process_is_missed_at_once_and_one_without_power_is_not() -> None:
    async def act(scene: Scene) -> None:
        await scene.connect()
        scene.world.power_off(scene.far)
        await scene.world.sleep(100)
        assert scene.client.lost == []
        scene.world.start(scene.far, scene._serve)
        scene.client.transport.write(b"are you there?")
        await scene.world.until("a new kernel refuses", lambda: bool(scene.client.lost), 5)
        assert isinstance(scene.client.lost[0], ConnectionResetError)

        scene.client, scene.server = Ear(), Ear()
        scene.world.kill(scene.near)
        scene.world.kill(scene.far)
        await scene.connect()
        scene.world.kill(scene.far)
        await scene.world.until("the connection is closed", lambda: bool(scene.client.lost), 5)
        assert scene.server.lost == []

    play(act)


def test_a_forgotten_connection_carries_nothing_and_new_ones_do() -> None:
    async def act(scene: Scene) -> None:
        await scene.connect()
        scene.world.network.forget_connections(scene.near.address, scene.far.address)
        scene.client.transport.write(b"hello")
        await scene.world.sleep(60)
        assert not scene.server.heard
        assert not scene.client.lost
        again = Ear()

        async def call(surroundings: Surroundings) -> None:
            await asyncio.get_running_loop().create_connection(lambda: again, scene.far.address, PORT)

        scene.world.start(scene.world.add_host("other"), call)
        await scene.world.until("it is accepted", lambda: again.transport is not None, 5)

    play(act)


@pytest.mark.parametrize(("state", "error"), [("up", ConnectionRefusedError), ("down", TimeoutError)])
def test_nobody_there_is_a_refusal_or_silence(state: str, error: type[Exception]) -> None:
    caught: list[Exception] = []

    async def act(scene: Scene) -> None:
        if state == "down":
            scene.world.power_off(scene.far)

        async def call(surroundings: Surroundings) -> None:
            try:
                await asyncio.get_running_loop().create_connection(Ear, scene.far.address, PORT)
            except OSError as problem:
                caught.append(problem)

        scene.world.start(scene.near, call)
        await scene.world.until("an answer", lambda: bool(caught), 200)

    play(act)
    assert type(caught[0]) is error


def test_a_host_that_is_in_use_keeps_its_port() -> None:
    async def act(scene: Scene) -> None:
        await scene.connect()

        async def again() -> None:
            await asyncio.get_running_loop().create_server(Ear, scene.far.address, PORT)

        with pytest.raises(OSError, match="in use"):
            await scene.world.call(scene.far, again(), 5)

    play(act)


def test_the_clock_of_a_host_may_step_and_its_timers_do_not() -> None:
    async def act(scene: Scene) -> None:
        clock: Any = Host("x", "10.0.0.9", scene.near.clock).clock
        wall, mono = clock.now_ms(), clock.monotonic_ms()
        clock.step(-3_600_000)
        await scene.world.sleep(10)
        assert abs(clock.now_ms() - wall + 3_590_000) <= 10
        assert clock.monotonic_ms() - mono == 10_000

    play(act)
