"""Two brokers of one name: who starts, who says so, and what operators see."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from bolide.broker.register import BrokerIdentity, Registrar
from bolide.broker.rivals import Rivals, check_no_rival
from bolide.cli import checks_there
from bolide.cli.findings import Finding, Verdict
from bolide.model.errors import ConfigError
from bolide.net.clock import SystemClock
from bolide.wire.bodies.route import ClusterInfo
from bolide.wire.codes import RequestCode
from tests.peers.waiting import PATIENCE_SECONDS
from tests.unit.broker.stage import serving as broker_serving
from tests.unit.broker.test_register import Topics, closed_port
from tests.unit.nameserver.stage import HeldClock, Stage, callers, eventually, serving

NAME = {"brokerName": "broker-a"}


async def problems(stage: Stage) -> list[Finding]:
    """What `bolide doctor` finds wrong with the brokers."""
    info = ClusterInfo.decode((await stage.ask(RequestCode.GET_BROKER_CLUSTER_INFO)).body)
    found = [finding async for finding in checks_there.check_brokers(info, SystemClock())]
    return [finding for finding in found if finding.verdict is Verdict.WRONG]


def test_a_broker_does_not_start_beside_one_of_its_name(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving() as stage:
            settings = {**NAME, "namesrvAddr": stage.address}
            async with broker_serving(tmp_path / "one", settings) as (first, _):
                with pytest.raises(ConfigError, match=f"running at {first.address}.*another brokerName"):
                    async with broker_serving(tmp_path / "two", settings):
                        pass
                assert await stage.brokers() == {"broker-a"}
                assert (await problems(stage)) == []
            async with broker_serving(tmp_path / "two", settings):  # the first is gone
                assert await stage.brokers() == {"broker-a"}

    asyncio.run(main())


@pytest.mark.parametrize(
    "settings", [{"brokerName": "broker-b"}, {"brokerName": "broker-a", "brokerId": "0"}]
)
def test_another_name_or_the_same_place_is_no_rival(tmp_path: Path, settings: dict[str, str]) -> None:
    async def main() -> None:
        async with serving() as stage, callers(1) as (dead,):
            # As after a power failure: the name server still has an address where nobody is any more.
            await stage.register("broker-a", address=f"127.0.0.1:{closed_port()}", caller=dead)
            async with broker_serving(tmp_path, {**settings, "namesrvAddr": stage.address}):
                assert settings["brokerName"] in await stage.brokers()

    asyncio.run(main())


def test_name_servers_that_are_down_or_mute_keep_no_broker_from_starting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bolide.broker.rivals.ASK_MS", 50)

    async def main() -> None:
        mute = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
        address = f"127.0.0.1:{mute.sockets[0].getsockname()[1]}"
        async with serving() as stage, callers(1) as (caller,):
            await stage.register("broker-a", address=address, caller=caller)  # a mute rival, too
            me = BrokerIdentity("C", "broker-a", "127.0.0.1:1")
            servers = [address, f"127.0.0.1:{closed_port()}", stage.address]
            await check_no_rival(caller, servers, me)
        mute.close()

    asyncio.run(main())


def test_a_broker_whose_place_is_taken_says_so_rarely_and_tells_operators(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Both started while neither was known, so neither was refused."""
    monkeypatch.setattr(Registrar, "period_ms", 50)

    async def main() -> None:
        async with serving() as stage, callers(1) as (caller,):
            settings = {**NAME, "namesrvAddr": stage.address}
            async with broker_serving(tmp_path / "one", settings) as (first, _):
                me = BrokerIdentity("DefaultCluster", "broker-a", "127.0.0.1:1")
                rivals = Rivals(me, SystemClock())
                second = Registrar(
                    caller,
                    [stage.address],
                    me,
                    Topics(),
                    rivals=rivals,
                )
                await second.start()
                await eventually(lambda: rivals.figures() and first.state.membership.figures())
                assert rivals.figures() == {"rivalBrokerAddr": first.address}
                assert first.state.membership.figures() == {"rivalBrokerAddr": me.address}
                wrong: list[Finding] = []
                async with asyncio.timeout(
                    PATIENCE_SECONDS
                ):  # the one that the name server has then may be the other
                    while not any("calls itself broker-a, too" in finding.text for finding in wrong):
                        wrong = await problems(stage)
                assert all(finding.advice for finding in wrong)
                await second.stop()
                await eventually(lambda: not first.state.membership.figures())

    asyncio.run(main())
    said = [line for line in caplog.messages if "has taken our place" in line]
    assert len(said) == 2  # one by each of them
    assert all("another brokerName" in line for line in said)


def test_the_doctor_names_a_rival_only_while_it_is_there(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving() as stage, callers(2) as (one, other):
            async with broker_serving(tmp_path, NAME) as (broker, _):
                await stage.register("broker-a", address=broker.address, caller=one)
                await stage.register("broker-a", address="127.0.0.1:1", caller=other)
                texts = [finding.text for finding in await problems(stage)]
                assert any(text.startswith(f"{broker.address} calls itself broker-a, too") for text in texts)
            texts = [finding.text for finding in await problems(stage)]
            assert not any("calls itself" in text for text in texts)

    asyncio.run(main())


def test_a_rival_is_said_again_after_a_while(caplog: pytest.LogCaptureFixture) -> None:
    clock = HeldClock()
    rivals = Rivals(BrokerIdentity("C", "broker-a", "127.0.0.1:1"), clock)
    for _ in range(30):
        rivals.look("names:9876", "127.0.0.1:2")
        clock.ms += 60_000
    assert len(caplog.messages) == 3
    rivals.look("names:9876", None)
    assert rivals.figures() == {}


def test_a_slave_and_its_master_are_no_rivals() -> None:
    async def main() -> None:
        async with serving() as stage, callers(1) as (caller,):
            await stage.register("broker-a", address="127.0.0.1:1", caller=caller)
            me = BrokerIdentity("C", "broker-a", "127.0.0.1:2")
            await check_no_rival(caller, [stage.address], replace(me, broker_id=1))

    asyncio.run(main())
