"""Checks of `bolide doctor` on the servers: name servers, brokers at the addresses that clients are told, a probe."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from bolide.admin.cluster import broker_settings, broker_state, cluster_info, listed
from bolide.admin.connection import AdminConnection
from bolide.aio import Message, Producer, PullConsumer
from bolide.cli.access import access
from bolide.cli.checks_state import check_state
from bolide.cli.findings import Finding, doubtful, good, wrong
from bolide.cli.output import counted
from bolide.model.clock import Clock
from bolide.model.errors import BolideError, ConnectionLost, NotANameServer
from bolide.wire.bodies.route import ClusterInfo

TIMEOUT_MS = 3_000
PROBE_TOPIC = "bolide-doctor"

RIVALS = "rivalBrokerAddr"
"""What a broker of ours says when others have its name."""


@dataclass(frozen=True, slots=True)
class NameserverCheck:
    """What was found at an address; `is_taken` when a server is there, of whatever kind."""

    finding: Finding
    is_taken: bool
    info: ClusterInfo | None = None


async def check_nameserver(address: str) -> NameserverCheck:
    async with AdminConnection(address, timeout_ms=TIMEOUT_MS, **access()) as server:
        try:
            info = await cluster_info(server)
        except BolideError as error:
            if isinstance(error, ConnectionLost) and not isinstance(error, NotANameServer):
                return NameserverCheck(wrong("name server", str(error), _start_hint(address)), is_taken=False)
            text = f"{address} accepts connections but does not answer like a name server: {error}"
            advice = "Is this the name server's port (9876 by default), not a broker's?"
            return NameserverCheck(wrong("name server", text, advice), is_taken=True)
    return NameserverCheck(good("name server", f"{address} answers"), is_taken=True, info=info)


async def check_brokers(info: ClusterInfo, clock: Clock) -> AsyncIterator[Finding]:
    """Every address that clients are told, tried from here."""
    if not info.brokers:
        advice = (
            "Start one with `bolide broker -n ADDRESS`; if one runs, look at its namesrvAddr and its log."
        )
        yield wrong("brokers", "no broker is registered with the name server", advice)
    else:
        yield good(
            "brokers",
            f"the name server knows {counted(len(info.brokers), 'broker')}: {listed(info.brokers)}",
        )
    for name, broker in sorted(info.brokers.items()):
        if broker.master is None:
            yield doubtful("brokers", f"{name} has no master now: nobody can send to it", "Start its master.")
        for rival in broker.rivals:
            if await _is_called(rival, name):
                yield _rivals(name, rival)
        for broker_id, address in sorted(broker.addresses.items()):
            label = f"{name}:{broker_id} at {address}"
            async with AdminConnection(address, timeout_ms=TIMEOUT_MS, **access()) as server:
                try:
                    state = await broker_state(server, address)
                    settings = await broker_settings(server, address)
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
                    for finding in check_state(name, state, settings, clock.now_ms()):
                        yield finding


async def check_probe(nameserver: str, clock: Clock) -> Finding:
    """Send one message and read it back."""
    began_ms = clock.monotonic_ms()
    text = f"probe {clock.now_ms()}".encode()
    try:
        async with Producer(nameserver, group=PROBE_TOPIC, **access()) as producer:
            receipt = await producer.send(Message(PROBE_TOPIC, text))
        async with PullConsumer(nameserver, group=PROBE_TOPIC, **access()) as consumer:
            result = await consumer.pull(receipt.queue, receipt.queue_offset, 1, wait_ms=TIMEOUT_MS)
    except BolideError as error:
        advice = (
            "What the brokers said above about messages and disk comes first;"
            f" `bolide topic create {PROBE_TOPIC}` helps if they do not create topics by themselves."
        )
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
        async with AdminConnection(address, timeout_ms=TIMEOUT_MS, **access()) as server:
            return (await broker_settings(server, address)).get("brokerName") == name
    except BolideError:
        return False


def _rivals(name: str, rival: str) -> Finding:
    return wrong(
        "brokers",
        f"{rival} calls itself {name}, too: clients find whichever registered last, and miss the messages of the other",
        "Stop one of them, or give it another brokerName in its broker.conf. Then look into both stores: each has"
        " the messages that were sent to it.",
    )


def _start_hint(address: str) -> str:
    return (
        f"Is it running? `bolide up` starts one. If it runs elsewhere: is {address} right, and does a"
        " firewall let it through? If it listens on 127.0.0.1 only, start it with --host 0.0.0.0."
    )


def _advertise_hint(address: str) -> str:
    return (
        f"Is it up? If so: it tells all clients to use {address}. Give it an address that they can reach:"
        " brokerIP1=ADDRESS in broker.conf, or `bolide up --host 0.0.0.0 --set brokerIP1=ADDRESS`;"
        " in a container publish the port under the same number."
    )
