"""The store at work: acknowledged from disk, started again after a kill, asked for a key among millions."""

import random
import time
from statistics import median

from tests.bench.scale import Scale
from tests.bench.sides import Side, Untrustworthy
from tests.bench.workloads import BODY_BYTES, Figures, sync_64_threads
from tests.peers import frames
from tests.peers.server import READY_SECONDS
from tests.peers.waiting import wait_until

QUERY_MESSAGE = 12
PROBE_SECONDS = 0.005
INDEXED_SECONDS = 120
QUERIES = 2_000
FAR_FUTURE_MS = 4_000_000_000_000


def flushed_64_threads(side: Side, scale: Scale) -> Figures:
    """On a server that acknowledges what is synced."""
    return sync_64_threads(side, scale)


def start_after_kill(side: Side, scale: Scale) -> Figures:
    """Kill -9 right behind the last acknowledgement; the clock runs until the next one."""
    topic = side.topic()
    sent = _fill(side, topic, scale.recovery_messages, keys=False)
    side.server.kill()
    side.server.launch()
    started = side.server.processes[0].started_at
    wait_until(lambda: _acknowledged(side), READY_SECONDS, "no send is acknowledged", PROBE_SECONDS)
    seconds = time.monotonic() - started
    if side.stored(topic) != sent:
        raise Untrustworthy(f"{side.name}: {side.stored(topic)} of {sent} messages survived the kill")
    return {"seconds": seconds}


def query_by_key(side: Side, scale: Scale) -> Figures:
    """One query after the other, each for a key that one message has."""
    topic = side.topic()
    _fill(side, topic, scale.indexed_messages, keys=True)
    chosen = random.Random(scale.indexed_messages)
    with frames.Connection(side.server.broker) as connection:
        last = str(scale.indexed_messages - 1)
        wait_until(lambda: _found(connection, topic, last), INDEXED_SECONDS, "the newest key is not found")
        latencies = []
        for _ in range(QUERIES):
            key = str(chosen.randrange(scale.indexed_messages))
            before = time.perf_counter()
            found = _found(connection, topic, key)
            latencies.append(time.perf_counter() - before)
            if not found:
                raise Untrustworthy(f"{side.name}: no message with the key {key}")
    latencies.sort()
    return {"p50_ms": median(latencies) * 1000, "p99_ms": latencies[int(QUERIES * 0.99)] * 1000}


def _fill(side: Side, topic: str, count: int, *, keys: bool) -> int:
    load = {"mode": "batch", "batch": 32, "threads": 4, "size": BODY_BYTES, "keys": str(keys).lower()}
    answer = side.ask("load-send", topic=topic, count=count, **load)
    if answer["sent"] != count:
        raise Untrustworthy(f"{side.name}: {answer['sent']} of {count} messages sent {answer['error']}")
    return count


def _found(connection: frames.Connection, topic: str, key: str) -> bool:
    fields = {
        "topic": topic,
        "key": key,
        "maxNum": "32",
        "beginTimestamp": "0",
        "endTimestamp": str(FAR_FUTURE_MS),
    }
    answer = connection.ask(QUERY_MESSAGE, fields)
    return answer.code == frames.SUCCESS and f"KEYS\x01{key}\x02".encode() in answer.body + b"\x02"


def _acknowledged(side: Side) -> bool:
    return frames.try_send(side.server.nameserver, side.server.broker, "first")
