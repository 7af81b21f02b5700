"""A delay in words becomes a level of the brokers that are there, or is refused with those there are."""

import asyncio

import pytest

from bolide import PullConsumer
from bolide.admin.connection import AdminConnection
from bolide.admin.delays import level_of
from bolide.cli.main import main
from bolide.model.errors import ConfigError
from bolide.testing import EmbeddedServer
from tests.peers.waiting import PATIENCE_SECONDS, wait_until

LEVELS = {"messageDelayLevel": "1s 5s 60s 2h"}


def level(server: EmbeddedServer, delay: str) -> int:
    async def run() -> int:
        async with AdminConnection(server.nameserver) as servers:
            return await level_of(servers, delay)

    return asyncio.run(run())


def test_a_delay_is_one_of_the_brokers_levels_exactly() -> None:
    with EmbeddedServer(settings=LEVELS) as server:
        assert [level(server, delay) for delay in ("1s", "5s", "1m", "120m")] == [1, 2, 3, 4]
        with pytest.raises(ConfigError, match="no delay level waits 10s; there are 1s, 5s, 60s, 2h"):
            level(server, "10s")
        for wrong in ("soon", "10", "-1s", "1w", "9" * 30 + "s"):
            with pytest.raises(ConfigError, match="is no delay"):
                level(server, wrong)


def test_a_delay_of_the_command_line_is_waited_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an hour, and after no time at all."""
    with (
        EmbeddedServer(settings={"messageDelayLevel": "0s 1h"}) as server,
        PullConsumer(server.nameserver) as reader,
    ):
        monkeypatch.setenv("BOLIDE_NAMESERVER", server.nameserver)
        assert main(("send", "T", "later", "--delay", "60m")) == 0
        assert main(("send", "T", "now", "--delay-level", "1")) == 0
        assert main(("send", "T", "never", "--delay", "2h")) == 2
        assert "there are 0s, 1h" in capsys.readouterr().err
        assert main(("send", "T", "never", "--delay", "1h", "--delay-level", "2")) == 2
        wait_until(lambda: _bodies(reader), PATIENCE_SECONDS, "it has not come")
        assert _bodies(reader) == [b"now"]


def _bodies(reader: PullConsumer) -> list[bytes]:
    pulls = (reader.pull(queue, reader.min_offset(queue)) for queue in reader.queues("T"))
    return [message.body for pull in pulls for message in pull.messages]
