"""What strangers can make a server say: of each host something, of all of them not much."""

import asyncio
import logging

import pytest

from bolide.machines.said import LINES_MAX, LINES_OF_ONE_MAX, PERIOD_MS
from bolide.net.provoked import Provoked
from tests.unit.net.stage import Wire, serving
from tests.unit.net.test_link import HANDLERS

log = logging.getLogger(__name__)


class SetClock:
    def __init__(self) -> None:
        self.ms = 0

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms


def test_a_host_is_spoken_of_once_in_a_while_and_then_with_a_count(caplog: pytest.LogCaptureFixture) -> None:
    clock = SetClock()
    provoked = Provoked(clock)
    for port in range(1000):
        provoked.say(log, logging.WARNING, f"10.0.0.1:{port}", "closing %s", port)
    provoked.say(log, logging.WARNING, "10.0.0.2:5", "closing %s", 5)
    clock.ms = PERIOD_MS
    provoked.say(log, logging.WARNING, "10.0.0.1:7", "closing %s", 7)
    assert caplog.messages == ["closing 0", "closing 5 (999 lines like this one were left out)", "closing 7"]


def test_what_is_about_different_things_is_said_singly_as_long_as_it_is_little(
    caplog: pytest.LogCaptureFixture,
) -> None:
    provoked = Provoked(SetClock())
    for number in range(2 * LINES_OF_ONE_MAX):
        for _ in range(3):
            provoked.say(log, logging.WARNING, "10.0.0.1:1", "reset %s", number, about=number)
    assert len(caplog.messages) == LINES_OF_ONE_MAX
    provoked.say(log, logging.WARNING, "10.0.0.2:1", "reset %s", 0, about=0)
    assert len(caplog.messages) == LINES_OF_ONE_MAX + 1


def test_ever_new_hosts_are_not_all_quoted(caplog: pytest.LogCaptureFixture) -> None:
    provoked = Provoked(SetClock())
    for number in range(1000):
        provoked.say(log, logging.WARNING, f"10.0.{number}:1", "closing %s", number)
    assert len(caplog.messages) == LINES_MAX


def test_malformed_connections_are_not_a_line_each(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with serving(HANDLERS) as (_, _, address):
            for _ in range(20):
                wire = await Wire.connect(address)
                wire.send(b"\xff" * 16)
                assert await wire.closed()

    asyncio.run(main())
    assert caplog.text.count("closing the connection of") == 1
