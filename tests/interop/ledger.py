"""Compares what was sent with what arrived, and says exactly what differs."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable

from tests.peers.clients import QueueKey, Received, Sent

SHOWN_MAX = 8


def assert_each_once(sent: Iterable[str], arrived: Iterable[str]) -> None:
    """Every message arrived exactly once, and nothing else did."""
    wanted, got = Counter(sent), Counter(arrived)
    _no_difference(
        missing=wanted - got,
        duplicated=Counter({body: n for body, n in got.items() if n > 1 and body in wanted}),
        unexpected=Counter({body: n for body, n in got.items() if body not in wanted}),
    )


def assert_nothing_lost(sent: Iterable[str], arrived: Iterable[str]) -> None:
    """Every message arrived at least once, and nothing came that was never sent."""
    wanted, got = Counter(set(sent)), Counter(set(arrived))
    _no_difference(missing=wanted - got, unexpected=got - wanted)


def assert_intact(messages: Iterable[Received]) -> None:
    """No body was changed on its way."""
    damaged = [message.body for message in messages if not message.intact]
    assert not damaged, f"damaged bodies: {_some(damaged)}"


def assert_same_places(sent: Iterable[Sent], messages: Iterable[Received]) -> None:
    """Each message was delivered from the broker, queue and offset that its acknowledgement named."""
    promised = {s.body: (s.broker, s.queue, s.offset) for s in sent}
    found = {m.body: (m.broker, m.queue, m.offset) for m in messages}
    wrong = [f"{b}: said {p}, was {found.get(b)}" for b, p in promised.items() if found.get(b) != p]
    assert not wrong, f"{len(wrong)} messages at another place than acknowledged: {_some(wrong)}"


def assert_queues_have_no_holes(messages: Iterable[Received]) -> None:
    """In every queue the offsets seen are 0, 1, 2 … without a gap or a repetition."""
    for queue, found in by_queue(messages).items():
        offsets = sorted(message.offset for message in found)
        assert offsets == list(range(len(offsets))), f"{queue}: offsets {_some(map(str, offsets))}"


def assert_seen_in_send_order(messages: Iterable[Received]) -> None:
    """Within each queue the consumer saw the messages in the order in which one thread sent them."""
    for queue, found in by_queue(messages).items():
        bodies = [message.body for message in found]
        late = [f"{b} after {a}" for a, b in itertools.pairwise(bodies) if number(b) < number(a)]
        assert not late, f"{queue} out of order: {_some(late)}"


def by_queue(messages: Iterable[Received]) -> dict[QueueKey, list[Received]]:
    """The messages of each queue, in the order seen."""
    queues: defaultdict[QueueKey, list[Received]] = defaultdict(list)
    for message in messages:
        queues[message.key].append(message)
    return dict(queues)


def number(body: str) -> int:
    """The number at the end of a body's name: its place in the sender's own order."""
    return int(body.rpartition("-")[2])


def _no_difference(**differences: Counter[str]) -> None:
    lines = [
        f"{kind} {len(found)}: {_some(f'{body} (x{n})' if n > 1 else body for body, n in found.items())}"
        for kind, found in differences.items()
        if found
    ]
    assert not lines, "\n".join(["what arrived is not what was sent", *lines])


def _some(items: Iterable[str]) -> str:
    shown = sorted(items)
    more = len(shown) - SHOWN_MAX
    return ", ".join(shown[:SHOWN_MAX]) + (f", and {more} more" if more > 0 else "")
