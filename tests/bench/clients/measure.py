"""What each client is asked to do, and the figures that come out; every message is counted."""

import itertools
from pathlib import Path

from tests.bench.clients.sides import ClientSide, running_clients
from tests.bench.memory import touch_free_memory
from tests.bench.scale import Scale
from tests.bench.sides import OURS, THEIRS, Untrustworthy
from tests.bench.workloads import Figures

WARM_SHARE = 3
AIO_SHARE = 3
"""Clients on asyncio get a third of the messages: they are slower."""
READ_FIRST_SHARE = 10
"""So many are read before the watch begins: a group forms, and that takes its time."""
SENDS_OF_OURS = 5
"""So many times the sends that the slow client gets."""

_numbers = itertools.count(1)


def client_figures(name: str, scale: Scale, home: Path) -> Figures:
    """One round of one side, on a fresh server."""
    with running_clients(name, home) as side:
        if name == THEIRS:
            return _sent_one_by_one(side, scale.client_sends)
        figures = {**_produced_and_consumed(side, scale.client_messages), **_aio(side, scale.client_messages)}
        if name == OURS:
            figures |= _sent_one_by_one(side, scale.client_sends * SENDS_OF_OURS)
        return figures


def memory_figures(scale: Scale, home: Path) -> Figures:
    """Of our own client alone."""
    with running_clients(OURS, home) as side:
        count = scale.client_many
        answer = side.ask("memory", _topic(side), count, count // 100)
        _expect(answer["done"], count)
        return {"memory_mb": answer["most_bytes"] / 1e6, "memory_growth": answer["growth"]}


def _produced_and_consumed(side: ClientSide, count: int) -> Figures:
    topic, warm = _topic(side), count // WARM_SHARE
    touch_free_memory()
    produced = side.ask("produce", topic, count, warm)
    _expect(produced["done"], count)
    consumed = side.ask("consume", topic, count + warm, count // READ_FIRST_SHARE)
    _expect(consumed["first"] + consumed["done"], count + warm)
    columns = consumed  # who has no columns is compared by messages
    if side.has_columns:
        columns = side.ask("consume_arrow", topic, count + warm, count // READ_FIRST_SHARE)
        _expect(columns["first"] + columns["done"], count + warm)
    return {**_rates("produce", produced), **_rates("consume", consumed), **_rates("arrow", columns)}


def _aio(side: ClientSide, count: int) -> Figures:
    count //= AIO_SHARE
    touch_free_memory()
    produced = side.ask("aio_produce", _topic(side), count, count // WARM_SHARE)
    _expect(produced["done"], count)
    return _rates("aio", produced)


def _sent_one_by_one(side: ClientSide, count: int) -> Figures:
    return _rates("send", side.ask("send", _topic(side), count, count // WARM_SHARE))


def _rates(name: str, answer: dict[str, float]) -> Figures:
    done = answer["done"]
    return {name: done / answer["seconds"], f"{name}_cpu_us": answer["cpu_seconds"] * 1e6 / done}


def _topic(side: ClientSide) -> str:
    topic = f"clients-{next(_numbers)}"
    side.make_topic(topic)
    return topic


def _expect(done: float, count: int) -> None:
    if done != count:
        raise Untrustworthy(f"{done:,.0f} of {count:,} messages")
