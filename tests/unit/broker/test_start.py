"""Starting a broker: whoever comes early meets a whole broker, and a start that fails leaves nothing behind."""

import asyncio
import ipaddress
from pathlib import Path
from typing import Any

import pytest

from bolide.broker.app import Broker
from bolide.broker.config import BrokerConfig
from bolide.model.errors import ConfigError
from tests.unit.broker.stage import connect, send_request, serving


def broker_of(root: Path, **settings: str) -> Broker:
    base = {
        "storePathRootDir": str(root),
        "listenPort": "0",
        "bindAddress": "127.0.0.1",
        "mappedFileSizeCommitLog": str(1024 * 1024),
    }
    return Broker(BrokerConfig.from_settings(base | settings))


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
def test_a_client_that_connects_while_the_broker_starts_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flush: str
) -> None:
    """Method: clients that wait in the backlog come in with the first wait after the port was opened."""
    answers: list[int] = []

    async def meanwhile(broker: Broker) -> None:
        wire = await connect(broker)
        for topic in ("New", "TBW102"):
            answers.append((await wire.ask(send_request(topic=topic))).code)
        wire.writer.close()

    async def main() -> None:
        monkeypatch.setattr(Broker, "_listen_vip", meanwhile)
        broker = broker_of(tmp_path, flushDiskType=flush)
        await asyncio.wait_for(broker.start(), 20)
        await broker.stop()

    asyncio.run(main())
    assert answers == [0, 0]


@pytest.mark.parametrize(
    "settings", [{"namesrvAddr": "nowhere"}, {"namesrvAddr": "127.0.0.1:1", "brokerIP1": "0.0.0.0"}]
)
def test_a_start_that_fails_leaves_the_store_to_the_next(tmp_path: Path, settings: dict[str, Any]) -> None:
    async def main() -> None:
        for _ in range(2):
            with pytest.raises(ConfigError):
                await broker_of(tmp_path, **settings).start()
        async with serving(tmp_path) as (_, wire):
            assert (await wire.ask(send_request())).code == 0
        assert not (tmp_path / "abort").exists()

    asyncio.run(main())


@pytest.mark.parametrize(("bind", "version"), [("0.0.0.0", 4), ("::", 6), ("127.0.0.1", 4), ("::1", 6)])
def test_clients_are_told_an_address_of_the_family_that_the_broker_listens_on(
    bind: str, version: int
) -> None:
    broker = Broker(BrokerConfig.from_settings({"bindAddress": bind}))
    assert ipaddress.ip_address(broker.host).version == version
