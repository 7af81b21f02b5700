"""What the load program does to one side, and the figures that come out: name to value, in the units of the rows."""

from typing import Any

from tests.bench.memory import touch_free_memory
from tests.bench.scale import Scale
from tests.bench.sides import QUEUES, Side, Untrustworthy
from tests.peers.waiting import wait_until

Figures = dict[str, float]
BODY_BYTES = 128
SHOWN_S = 60
"""The original acknowledges before it files: under much load its readers see messages seconds later."""


def warm_up(side: Side, scale: Scale) -> None:
    """Gives the JVMs, the load program's and Apache's, time to compile their hot paths before anything counts."""
    topic = side.topic()
    for mode, threads in (("sync", 64), ("async", 1), ("batch", 2)):
        load = {"mode": mode, "threads": threads, "topic": topic, "size": BODY_BYTES}
        side.ask("load-send", seconds=max(1, scale.jvm_warm_seconds // 3), **load)


def sync_64_threads(side: Side, scale: Scale) -> Figures:
    return send(side, scale, mode="sync", threads=64)


def sync_1_thread(side: Side, scale: Scale) -> Figures:
    return send(side, scale, mode="sync", threads=1)


def async_1024_in_flight(side: Side, scale: Scale) -> Figures:
    return send(side, scale, mode="async", threads=1, inflight=1024)


def batches_of_32(side: Side, scale: Scale) -> Figures:
    """Also proves that every message of a batch became a record of its own."""
    return send(side, scale, mode="batch", threads=4, batch=32)


def batches_of_32_from_many(side: Side, scale: Scale) -> Figures:
    """From so many threads that they load the server: four mostly wait for the way there and back."""
    return send(side, scale, shown_s=SHOWN_S, mode="batch", threads=32, batch=32)


def push_consume(side: Side, scale: Scale) -> Figures:
    """A default push consumer reads what is already stored; a smaller topic before it warms both sides up."""
    for count in (scale.consume_messages // 5, scale.consume_messages):
        topic = side.topic()
        side.ask("load-send", topic=topic, mode="batch", batch=32, threads=2, count=count, size=BODY_BYTES)
        before = side.server.cpu_seconds()
        answer = side.ask("load-consume", topic=topic, group=f"group-{topic}", count=count)
        cpu = side.server.cpu_seconds() - before
        if not answer["exact"]:
            raise Untrustworthy(f"{side.name}: {answer['received']} of {count} messages consumed")
    return {"per_second": answer["per_second"], "cpu_us": cpu * 1e6 / count}


def send_to_listener(side: Side, scale: Scale) -> Figures:
    """At 100 messages a second, measured from each message's due time, so a stall hides nothing."""
    topic = side.topic()
    answer = side.ask(
        "load-latency",
        topic=topic,
        group=f"group-{topic}",
        queues=QUEUES,
        rate=100,
        warm=scale.warm_seconds,
        seconds=scale.latency_seconds,
        size=BODY_BYTES,
    )
    if answer["received"] != answer["expected"]:
        raise Untrustworthy(f"{side.name}: {answer['received']} of {answer['expected']} messages arrived")
    return latencies(answer)


def memory_after_all_runs(side: Side, scale: Scale) -> Figures:
    """Comes last in a round, when the server has carried every other workload."""
    return {"rss_anon_mb": side.server.rss_anon_bytes() / 1e6}


def send(side: Side, scale: Scale, *, stored_in: str = "", shown_s: float = 0, **options: object) -> Figures:
    """As fast as it goes; `stored_in` is the topic where messages wait that are not for readers yet, `shown_s` how long
    after the last answer the last message may be shown to readers."""
    topic = side.topic()
    before_all = side.stored(stored_in) if stored_in else 0
    load = {"topic": topic, "size": BODY_BYTES, **options}
    warm = side.ask("load-send", seconds=scale.warm_seconds, **load)
    touch_free_memory()
    before = side.server.cpu_seconds()
    answer = side.ask("load-send", seconds=scale.run_seconds, **load)
    cpu = side.server.cpu_seconds() - before
    if shown_s:
        sent = warm["sent"] + answer["sent"]
        wait_until(lambda: side.stored(topic) >= sent, shown_s, "what is stored is not shown to readers")
    check_stored(side, stored_in or topic, warm, answer, more=before_all)
    return {
        "per_second": answer["per_second"],
        "cpu_us": cpu * 1e6 / max(1, answer["sent"]),
        "failed": answer["failed"],
        **latencies(answer),
    }


def check_stored(side: Side, topic: str, *answers: dict[str, Any], more: int = 0) -> None:
    """Everything acknowledged is there; more than that only where a failed send was stored all the same."""
    sent = sum(answer["sent"] for answer in answers)
    failed = sum(answer["failed"] for answer in answers)
    stored = side.stored(topic) - more
    if sent == 0 or stored < sent or (failed == 0 and stored != sent):
        errors = "; ".join(answer["error"] for answer in answers if answer["error"])
        raise Untrustworthy(f"{side.name}: {sent} sent, {failed} failed, {stored} stored {errors}")


def latencies(answer: dict[str, Any]) -> Figures:
    return {f"{name}_ms": answer[f"{name}_us"] / 1000 for name in ("p50", "p99", "p999", "max")}
