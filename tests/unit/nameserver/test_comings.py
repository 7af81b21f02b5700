"""What a name server says of brokers that come and go: everything of a large cluster, a number of who has no end."""

import asyncio
import logging

import pytest

from bolide.model.limits import BROKERS_MAX
from bolide.nameserver.comings import LINES_MAX, LINES_OF_HOST_MAX, PERIOD_MS, Comings
from bolide.wire.codes import RequestCode
from bolide.wire.headers.route import BrokerRequest
from tests.unit.nameserver.stage import HeldClock, callers, eventually, serving

log = logging.getLogger(__name__)


@pytest.fixture(autouse=True)
def everything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def test_a_large_cluster_that_starts_and_stops_is_in_the_log_whole(caplog: pytest.LogCaptureFixture) -> None:
    comings = Comings(HeldClock())
    for line in ("is at", "has left", "is gone"):
        for number in range(BROKERS_MAX):
            remote = f"10.0.{number // 40}.1:{number}"  # forty of them on a host
            comings.say(log, logging.INFO, remote, "%d %s", number, line)
    assert len(caplog.messages) == 3 * BROKERS_MAX


def test_who_comes_and_goes_without_end_is_a_number(caplog: pytest.LogCaptureFixture) -> None:
    clock = HeldClock()
    comings = Comings(clock)
    for number in range(10_000):
        comings.say(log, logging.INFO, f"10.0.0.1:{number}", "%d is at", number)
    comings.say(log, logging.INFO, "10.0.0.2:1", "another")
    assert len(caplog.messages) == LINES_OF_HOST_MAX + 1
    clock.ms += PERIOD_MS
    comings.say(log, logging.INFO, "10.0.0.1:1", "again")
    said, again = caplog.messages[-2:]
    assert f"{10_000 - LINES_OF_HOST_MAX} lines" in said
    assert "10.0.0.1" in said
    assert again == "again"


def test_many_hosts_that_come_and_go_leave_room_for_who_does_it_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    comings = Comings(HeldClock())
    for number in range(100_000):
        comings.say(log, logging.INFO, f"10.0.0.{number % 100}:1", "%d is at", number)
    assert len(caplog.messages) <= LINES_MAX // 4 * 3
    comings.say(log, logging.INFO, "10.0.1.1:1", "honest")
    assert caplog.messages[-1] == "honest"


def test_ever_new_hosts_have_no_more_than_all_of_them_together() -> None:
    comings = Comings(HeldClock())
    for number in range(3 * LINES_MAX):
        comings.say(log, logging.DEBUG, f"host-{number}:1", "is at")
    assert len(comings._lines) == LINES_MAX


def test_registering_leaving_and_closing_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    rounds = LINES_OF_HOST_MAX // 2 + 10

    async def scenario() -> None:
        async with serving(clock=HeldClock()) as stage, callers(1) as (broker,):
            who = BrokerRequest("broker-a", "127.0.0.1:10911", "C", 0)
            for _ in range(rounds):
                await stage.register("broker-a")
                await stage.ask(RequestCode.UNREGISTER_BROKER, who)
            await stage.register("broker-b", caller=broker)
            await broker.close()
            await eventually(
                lambda: stage.server._state.comings._left_out == 2 * rounds + 2 - LINES_OF_HOST_MAX
            )

    asyncio.run(scenario())
    lines = [line for line in caplog.messages if line.startswith("broker ")]
    assert len(lines) == LINES_OF_HOST_MAX
    assert {line.split()[4] for line in lines} == {"is", "has"}
