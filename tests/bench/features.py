"""Filters, order, transactions and delays at work: what they cost beside plain messages, and how late is late."""

from tests.bench.memory import touch_free_memory
from tests.bench.scale import Scale
from tests.bench.sides import ASYNC_FLUSH, QUEUES, Side, Untrustworthy
from tests.bench.workloads import BODY_BYTES, Figures, latencies, send
from tests.peers.waiting import wait_until

FILTERS = {**ASYNC_FLUSH, "enablePropertyFilter": "true"}
ONE_IN = 10
FILTERED_TIMES = 5
"""So many times more are stored for a filter to look at: of a million it leaves what a listener takes in a second."""
WIDE_SPAN = 65_535
"""The most that the Java client allows between the first and the last message that it has of a queue; by default 2,000,
of which a filter leaves it 200, and then it waits for itself."""
FAR_LEVEL = 18
"""Two hours: nothing of it is due while the benchmark runs."""
FAR_MS = 7_200_000
COMMITTED_SECONDS = 60
DUE_PER_SECOND = 1_000
SHORT_LEVEL, SHORT_LEVEL_MS = 2, 5_000
SCHEDULE_TOPIC, TIMER_TOPIC = "SCHEDULE_TOPIC_XXXX", "rmq_sys_wheel_timer"


def consume_by_tag(side: Side, scale: Scale) -> Figures:
    return _consume(side, scale, ONE_IN, tag="t0")


def consume_by_tag_unhindered(side: Side, scale: Scale) -> Figures:
    return _consume(side, scale, ONE_IN, tag="t0", span=str(WIDE_SPAN))


def consume_by_sql(side: Side, scale: Scale) -> Figures:
    return _consume(side, scale, ONE_IN, sql="mark = 0")


def consume_by_sql_unhindered(side: Side, scale: Scale) -> Figures:
    return _consume(side, scale, ONE_IN, sql="mark = 0", span=str(WIDE_SPAN))


def consume_in_order(side: Side, scale: Scale) -> Figures:
    return _consume(side, scale, 1, order="true")


def send_in_transactions(side: Side, scale: Scale) -> Figures:
    """Half message, local transaction, commit; every one of them is readable at last, and once."""
    topic = side.topic()
    load = {"topic": topic, "size": BODY_BYTES, "mode": "transaction", "threads": 64}
    warm = side.ask("load-send", seconds=scale.warm_seconds, **load)
    touch_free_memory()
    before = side.server.cpu_seconds()
    answer = side.ask("load-send", seconds=scale.run_seconds, **load)
    cpu = side.server.cpu_seconds() - before
    if warm["failed"] or answer["failed"]:
        raise Untrustworthy(f"{side.name}: transactions failed {warm['error']} {answer['error']}")
    sent = warm["sent"] + answer["sent"]
    wait_until(lambda: side.stored(topic) >= sent, COMMITTED_SECONDS, "not all of them were committed")
    if side.stored(topic) != sent:
        raise Untrustworthy(f"{side.name}: {side.stored(topic)} messages of {sent} transactions")
    return {
        "per_second": answer["per_second"],
        "cpu_us": cpu * 1e6 / max(1, answer["sent"]),
        **latencies(answer),
    }


def send_with_a_level(side: Side, scale: Scale) -> Figures:
    return send(side, scale, stored_in=SCHEDULE_TOPIC, mode="sync", threads=64, level=FAR_LEVEL)


def send_with_a_time(side: Side, scale: Scale) -> Figures:
    return send(side, scale, stored_in=TIMER_TOPIC, mode="sync", threads=64, later=FAR_MS)


def lateness_of_levels(side: Side, scale: Scale) -> Figures:
    return _lateness(side, scale, level=SHORT_LEVEL, later=SHORT_LEVEL_MS)


def lateness_of_times(side: Side, scale: Scale) -> Figures:
    return _lateness(side, scale, later=SHORT_LEVEL_MS)


def _consume(side: Side, scale: Scale, one_in: int, **options: str) -> Figures:
    """The rate is that of messages looked at, so that it can be held against a consumer of all of them."""
    stored = scale.consume_messages * (FILTERED_TIMES if one_in > 1 else 1)
    for count in (stored // 5, stored):
        topic = side.topic()
        load = {"mode": "batch", "batch": 32, "threads": 2, "size": BODY_BYTES, "marked": "true"}
        side.ask("load-send", topic=topic, count=count, **load)
        before = side.server.cpu_seconds()
        answer = side.ask(
            "load-consume", topic=topic, group=f"group-{topic}", count=count // one_in, **options
        )
        cpu = side.server.cpu_seconds() - before
        if not answer["exact"]:
            raise Untrustworthy(f"{side.name}: {answer['received']} of {count // one_in} messages consumed")
    return {"per_second": one_in * answer["per_second"], "cpu_us": cpu * 1e6 / count}


def _lateness(side: Side, scale: Scale, **options: int) -> Figures:
    """From the time at which each is due, at a thousand a second."""
    topic = side.topic()
    answer = side.ask(
        "load-latency",
        topic=topic,
        group=f"group-{topic}",
        queues=QUEUES,
        rate=DUE_PER_SECOND,
        warm=scale.warm_seconds,
        seconds=scale.latency_seconds,
        size=BODY_BYTES,
        **options,
    )
    if answer["received"] != answer["expected"]:
        raise Untrustworthy(f"{side.name}: {answer['received']} of {answer['expected']} messages arrived")
    return {**latencies(answer), "too_soon": answer["too_soon"]}
