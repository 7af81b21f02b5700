"""A name server and a broker in one process: when they count as ready."""

import asyncio
from pathlib import Path
from unittest import mock

import pytest

from bolide.broker.membership import Membership
from bolide.cli.standalone import Standalone
from bolide.model.errors import ConfigError
from bolide.model.names import DEFAULT_TOPIC
from bolide.net.caller import Caller
from bolide.net.clock import SystemClock
from bolide.testing.embedded import TEST_SETTINGS
from bolide.wire.codes import RequestCode, ResponseCode
from bolide.wire.command import Command
from tests.peers import frames
from tests.peers.ports import free_port


def standalone(folder: Path, nameserver_port: int) -> Standalone:
    return Standalone(
        data=folder, nameserver_port=nameserver_port, broker_port=0, settings=dict(TEST_SETTINGS)
    )


async def route_code(address: str) -> int:
    caller = Caller(SystemClock())
    try:
        request = Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": DEFAULT_TOPIC})
        return (await caller.call(address, request, 5_000)).code
    finally:
        await caller.close()


def test_before_its_broker_is_there_the_name_server_denies_no_topic_and_then_it_routes_them(
    tmp_path: Path,
) -> None:
    port, codes = free_port(), []
    join = Membership.join

    async def late(membership: Membership) -> None:
        codes.append(await route_code(f"127.0.0.1:{port}"))
        await join(membership)

    async def main() -> None:
        server = standalone(tmp_path, port)
        with mock.patch.object(Membership, "join", late):
            await server.start()
        codes.append(await route_code(server.nameserver))
        await server.stop()

    asyncio.run(main())
    assert codes == [ResponseCode.SYSTEM_ERROR, ResponseCode.SUCCESS]


def test_a_broker_that_its_name_server_does_not_take_ends_the_start_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bolide.cli.standalone.REGISTERED_MS_MAX", 1)
    monkeypatch.setattr("bolide.broker.register.SETTLE_MS", 1)
    monkeypatch.setattr("bolide.nameserver.handlers.brokers.limits.REGISTERED_NAME_LENGTH_MAX", 3)
    port = free_port()

    async def main() -> None:
        with pytest.raises(ConfigError, match=r"could not register .* longer than 3 characters"):
            await standalone(tmp_path, port).start()

    asyncio.run(main())
    assert not frames.answers(f"127.0.0.1:{port}")
    assert not (tmp_path / "abort").exists()  # the broker's store was closed in order
