"""A real name server and broker in a process of their own, fresh for every module: attacks leave things behind."""

import asyncio
from collections import Counter
from collections.abc import Iterator

import pytest

from bolide.client import lite_queue, reader, rounds
from tests.peers import frames
from tests.peers.bolide import Bolide
from tests.peers.server import Together


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Together]:
    server = Together(Bolide(), tmp_path_factory.mktemp("attacked")).start()
    yield server
    server.stop()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """The pauses that readers of queues take, by their length; they are taken, but are short."""
    taken: Counter[int] = Counter()
    honest = rounds.wait_at_most

    async def wait_at_most(event: asyncio.Event, timeout_ms: int | None) -> bool:
        assert timeout_ms is not None
        taken[timeout_ms] += 1
        return await honest(event, min(timeout_ms, 2))

    for module in (lite_queue, reader):
        monkeypatch.setattr(module, "wait_at_most", wait_at_most)
    return taken


@pytest.fixture
def bystander(server: Together) -> Iterator[frames.Connection]:
    """A connection that was there before, and must work all along."""
    with frames.Connection(server.broker) as connection:
        yield connection
        assert connection.ask(frames.SEND_MESSAGE_V2, frames.send_fields("bystander"), b"x").code == 0
