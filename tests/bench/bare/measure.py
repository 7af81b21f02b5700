"""The rows of the bare sockets: batches, pulls, and pulls with a filter."""

import json
import subprocess
import sys
import time
from typing import Any

from tests.bench.features import FILTERED_TIMES, ONE_IN
from tests.bench.memory import touch_free_memory
from tests.bench.scale import Scale
from tests.bench.sides import Side, Untrustworthy
from tests.bench.workloads import BODY_BYTES, Figures
from tests.peers.waiting import wait_until

LOAD_SECONDS = 300
SHOWN_SECONDS = 120
"""The original shows a message to readers some time after it has acknowledged it, under this load after seconds."""


def send_batches(side: Side, scale: Scale) -> Figures:
    """The watch runs until readers see all that was acknowledged: who answers first has filing to do still."""
    topic = side.topic()
    warm = _load("send", side, topic, str(scale.warm_seconds))
    _shown(side, topic, warm["messages"])
    touch_free_memory()
    before = side.server.cpu_seconds()
    run = _load("send", side, topic, str(scale.run_seconds))
    waited = _shown(side, topic, warm["messages"] + run["messages"])
    cpu = side.server.cpu_seconds() - before
    return {
        "per_second": run["messages"] / (run["seconds"] + waited),
        "acknowledged_per_second": run["messages"] / run["seconds"],
        "cpu_us": cpu * 1e6 / run["messages"],
    }


def pull_all(side: Side, scale: Scale) -> Figures:
    return _pull(side, scale.consume_messages, 1, "TAG", "*")


def pull_by_tag(side: Side, scale: Scale) -> Figures:
    return _pull(side, scale.consume_messages * FILTERED_TIMES, ONE_IN, "TAG", "t0")


def pull_by_sql(side: Side, scale: Scale) -> Figures:
    return _pull(side, scale.consume_messages * FILTERED_TIMES, ONE_IN, "SQL92", "mark = 0")


def _pull(side: Side, stored: int, one_in: int, kind: str, expression: str) -> Figures:
    """The rate is that of messages looked at; a smaller topic before it warms the server up."""
    for count in (stored // 5, stored):
        topic = side.topic()
        load = {"mode": "batch", "batch": 32, "threads": 2, "size": BODY_BYTES, "marked": "true"}
        side.ask("load-send", topic=topic, count=count, **load)
        before = side.server.cpu_seconds()
        run = _load("pull", side, topic, kind, expression)
        cpu = side.server.cpu_seconds() - before
        if run["messages"] != count // one_in:
            raise Untrustworthy(f"{side.name}: {run['messages']} of {count // one_in} messages pulled")
    return {"per_second": count / run["seconds"], "cpu_us": cpu * 1e6 / count}


def _shown(side: Side, topic: str, sent: int) -> float:
    """How many seconds it takes until all of it can be read."""
    began = time.monotonic()
    wait_until(lambda: side.stored(topic) >= sent, SHOWN_SECONDS, "what is stored is not shown to readers")
    waited = time.monotonic() - began
    if side.stored(topic) != sent:
        raise Untrustworthy(f"{side.name}: {side.stored(topic)} of {sent} messages stored")
    return waited


def _load(verb: str, side: Side, topic: str, *words: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.bench.bare.load", verb, side.server.broker, topic, *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=LOAD_SECONDS)
    if done.returncode:
        raise Untrustworthy(f"{side.name}: {done.stderr.strip()}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
