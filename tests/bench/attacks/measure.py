"""p99 of 64 honest senders without and with an attack beside them, and what the attack makes the server keep."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bench.attacks.kinds import ATTACKS, WIDE_QUEUES, WIDE_TOPIC
from tests.bench.scale import Scale
from tests.bench.sides import ANSWER_SECONDS, Side
from tests.bench.workloads import BODY_BYTES, Figures
from tests.peers.waiting import wait_until

CONNECTIONS = 50
SAMPLE_SECONDS = 0.25
CHECKOUT = Path(__file__).resolve().parents[3]


def prepare(side: Side) -> None:
    """A topic with as many queues as one may have; where so many are refused, half as many, and so on."""
    queues = WIDE_QUEUES
    while queues > 1:
        line = f"updateTopic -b {side.server.broker} -t {WIDE_TOPIC} -r {queues} -w {queues}"
        if "success" in side.load.ask("admin", line=f"{line} -n {side.server.nameserver}")["output"]:
            return
        queues //= 2


def under_attack(side: Side, scale: Scale, kind: str) -> Figures:
    """The quiet figure is taken just before, on the same server and the same topic."""
    topic = side.topic()
    load = {"topic": topic, "size": BODY_BYTES, "mode": "sync", "threads": 64}
    side.ask("load-send", seconds=scale.warm_seconds, **load)
    quiet = side.ask("load-send", seconds=scale.attack_seconds, **load)
    before = side.server.rss_anon_bytes()
    with _attackers(side, kind, topic):
        answer = side.begin("load-send", seconds=scale.attack_seconds, **load)
        most = _most_memory(side, answer)
        attacked = answer.result(ANSWER_SECONDS)
    return {
        f"{kind}_quiet_p99_ms": quiet["p99_us"] / 1000,
        f"{kind}_p99_ms": attacked["p99_us"] / 1000,
        f"{kind}_times": attacked["p99_us"] / quiet["p99_us"],
        f"{kind}_max_ms": attacked["max_us"] / 1000,
        f"{kind}_per_second": attacked["per_second"],
        f"{kind}_failed": attacked["failed"],
        f"{kind}_mb": (most - before) / 1e6,
    }


@contextmanager
def _attackers(side: Side, kind: str, topic: str) -> Iterator[None]:
    address = side.server.nameserver if ATTACKS[kind].at_nameserver else side.server.broker
    command = [sys.executable, "-m", "tests.bench.attacks.attacker", kind, address, topic, str(CONNECTIONS)]
    with subprocess.Popen(command, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield
        finally:
            process.kill()


def _most_memory(side: Side, answer: "Future[dict[str, Any]]") -> int:
    most = 0

    def sampled() -> bool:
        nonlocal most
        most = max(most, side.server.rss_anon_bytes())
        return answer.done()

    wait_until(sampled, ANSWER_SECONDS, "the load does not end", SAMPLE_SECONDS)
    return most
