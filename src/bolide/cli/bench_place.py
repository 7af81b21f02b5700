"""Where a benchmark works: a topic of its own that is made and deleted, or one that is given, and its brokers."""

import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from bolide.cli.ask import ask
from bolide.cli.output import say
from bolide.model.errors import BolideError
from bolide.model.topic import TopicConfig

if TYPE_CHECKING:
    from bolide.admin.connection import AdminConnection

PREFIX = "bolide-bench-"
SYNC = "SYNC_FLUSH"


@dataclass(frozen=True)
class Place:
    topic: str
    addresses: tuple[str, ...]
    """Of the masters that have it."""
    syncs_before_answers: bool
    is_here: bool
    """Whether one of them runs on this machine."""


@contextmanager
def bench_place(nameserver: str, topic: str | None, queues: int) -> Iterator[Place]:
    """One to work in; what was made for it is gone afterwards, whatever happens."""
    if topic is not None:
        yield ask(nameserver, partial(_place, topic=topic))
        return
    made = PREFIX + secrets.token_hex(4)
    ask(nameserver, partial(_make, topic=made, queues=queues))
    try:
        yield ask(nameserver, partial(_place, topic=made))
    finally:
        try:
            ask(nameserver, partial(_delete, topic=made))
        except BolideError as error:
            say(f"the topic {made} is left behind ({error}): `bolide topic delete {made}` removes it")


async def _make(servers: "AdminConnection", *, topic: str, queues: int) -> None:
    from bolide.admin.topics import create_topic

    await create_topic(servers, TopicConfig(topic, queues, queues))


async def _delete(servers: "AdminConnection", *, topic: str) -> None:
    from bolide.admin.topics import delete_topic

    await delete_topic(servers, topic)


async def _place(servers: "AdminConnection", *, topic: str) -> Place:
    from bolide.admin.cluster import broker_settings
    from bolide.admin.topics import masters_of

    addresses = tuple(one.master for one in await masters_of(servers, topic) if one.master is not None)
    syncs = False
    for address in addresses:
        try:
            syncs = syncs or (await broker_settings(servers, address)).get("flushDiskType") == SYNC
        except BolideError:
            continue  # it may keep them to itself
    return Place(topic, addresses, syncs, any(map(is_here, addresses)))


def is_here(address: str) -> bool:
    """Whether an address is one of this machine's own: only such a one can be bound."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, 0, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.bind(place)
    except OSError:
        return False
    return True


def queued_ms(nameserver: str, place: Place, pool: str) -> int:
    """How long the oldest request waits in the busiest of the brokers; 0 where they do not tell."""

    async def look(servers: "AdminConnection") -> int:
        from bolide.admin.cluster import broker_state

        waits = [0]
        for address in place.addresses:
            told = (await broker_state(servers, address)).get(f"{pool}ThreadPoolQueueHeadWaitTimeMills", "0")
            waits.append(int(told) if told.isdigit() else 0)
        return max(waits)

    try:
        return ask(nameserver, look)
    except BolideError:
        return 0
