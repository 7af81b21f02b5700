"""Checks of `bolide doctor` on the servers: name servers, brokers at the addresses that clients are told, a probe."""

import re
from collections.abc import AsyncIterator

from bolide.admin.cluster import broker_identity, broker_state, cluster_info
from bolide.admin.connection import AdminConnection
from bolide.aio import Message, Producer, PullConsumer
from bolide.cli.findings import Finding, doubtful, good, wrong
from bolide.model.clock import Clock
from bolide.model.errors import BolideError, ConnectionLost
from bolide.wire.bodies.route import ClusterInfo

TIMEOUT_MS = 3_000
PROBE_TOPIC = "bolide-doctor"
CLOCK_MS_MAX = 5_000
"""How far the clock of a broker may be off; its own words are only exact to a second."""

RIVALS = "rivalBrokerAddr"
"""What a broker of ours says when others have its name."""

_RUNTIME = re.compile(r"(\d+) days?, (\d+) hours?, (\d+) minutes?, (\d+) seconds?")


async def check_nameservers(addresses: list[str]) -> AsyncIterator[tuple[Finding, ClusterInfo | None]]:
    """Each one by itself: clients work with any that is up, so one that is down is easily missed."""
    for address in addresses:
        async with AdminConnection(address, timeout_ms=TIMEOUT_MS) as server:
            try:
                info = await cluster_info(server)
            except ConnectionLost as error:
                yield wrong("name server", str(error), _start_hint(address)), None
            except BolideError as error:
                text = f"{address} accepts connections but does not answer like a name server: {error}"
                advice = "Is this the name server's port (9876 by default), not a broker's?"
                yield wrong("name server", text, advice), None
            else:
                yield good("name server", f"{address} answers"), info


async def check_brokers(info: ClusterInfo, clock: Clock) -> AsyncIterator[Finding]:
    """Every address that clients are told, tried from here."""
    if not info.brokers:
        advice = "Start one with `bolide broker --set namesrvAddr=…`, or check its namesrvAddr."
        yield wrong("brokers", "no broker is registered with the name server", advice)
    for name, broker in sorted(info.brokers.items()):
        if broker.master is None:
            yield doubtful("brokers", f"{name} has no master now: nobody can send to it", "Start its master.")
        for rival in broker.rivals:
            if await _is_called(rival, name):
                yield _rivals(name, rival)
        for broker_id, address in sorted(broker.addresses.items()):
            label = f"{name}:{broker_id} at {address}"
            async with AdminConnection(address, timeout_ms=TIMEOUT_MS) as server:
                try:
                    state = await broker_state(server, address)
                except BolideError as error:
                    yield wrong(
                        "brokers", f"{label} cannot be used from here: {error}", _advertise_hint(address)
                    )
                else:
                    version = state.get("brokerVersionDesc", "of unknown version")
                    yield good("brokers", f"{label} answers ({version})")
                    rivals = filter(None, state.get(RIVALS, "").split(","))
                    for rival in (one for one in rivals if one not in broker.rivals):
                        yield _rivals(name, rival)
                    yield _compare_clocks(name, state, clock.now_ms())


async def check_probe(nameserver: str, clock: Clock) -> Finding:
    """Send one message and read it back."""
    began_ms = clock.monotonic_ms()
    text = f"probe {clock.now_ms()}".encode()
    try:
        async with Producer(nameserver, group=PROBE_TOPIC) as producer:
            receipt = await producer.send(Message(PROBE_TOPIC, text))
        async with PullConsumer(nameserver, group=PROBE_TOPIC) as consumer:
            result = await consumer.pull(receipt.queue, receipt.queue_offset, 1, wait_ms=TIMEOUT_MS)
    except BolideError as error:
        advice = f"`bolide topic create {PROBE_TOPIC}` helps if the broker does not create topics by itself."
        return wrong("probe", f"a message could not be sent and read back: {error}", advice)
    if [message.body for message in result.messages] != [text]:
        return wrong(
            "probe", "a message was acknowledged and could not be read back", "Look into the broker's log."
        )
    took_ms = clock.monotonic_ms() - began_ms
    return good("probe", f"sent a message to {receipt.queue} and read it back in {took_ms} ms")


async def _is_called(address: str, name: str) -> bool:
    """Whether a broker of this name answers there.  One that has moved is still known where it was, for a while."""
    try:
        async with AdminConnection(address, timeout_ms=TIMEOUT_MS) as server:
            return (await broker_identity(server, address))[0] == name
    except BolideError:
        return False


def _rivals(name: str, rival: str) -> Finding:
    return wrong(
        "brokers",
        f"{rival} calls itself {name}, too: clients find whichever registered last, and miss the messages of the other",
        "Stop one of them, or give it another brokerName in its broker.conf. Then look into both stores: each has"
        " the messages that were sent to it.",
    )


def _compare_clocks(name: str, state: dict[str, str], now_ms: int) -> Finding:
    """Start time plus running time is the broker's idea of now."""
    running = _RUNTIME.search(state.get("runtime", ""))
    boot = state.get("bootTimestamp", "")
    if running is None or not boot.isdecimal():
        return good("clock", f"{name} does not tell its time")
    days, hours, minutes, seconds = map(int, running.groups())
    running_ms = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000
    off_ms = int(boot) + running_ms - now_ms
    if abs(off_ms) > CLOCK_MS_MAX:
        text = f"the clock of {name} is {abs(off_ms) // 1000} s {'ahead of' if off_ms > 0 else 'behind'} this one"
        return doubtful("clock", text, "Let NTP set both: retention, delays and --since go by the clock.")
    return good("clock", f"{name} and this machine agree on the time")


def _start_hint(address: str) -> str:
    return (
        f"Is it running? `bolide up` starts one. If it runs elsewhere: is {address} right, and does a"
        " firewall let it through? If it listens on 127.0.0.1 only, start it with --host 0.0.0.0."
    )


def _advertise_hint(address: str) -> str:
    return (
        f"The broker tells all clients to use {address}. Give it an address that they can reach:"
        " brokerIP1=ADDRESS in broker.conf, or `bolide up --host 0.0.0.0 --set brokerIP1=ADDRESS`;"
        " in a container publish the port under the same number."
    )
