"""The bottleneck of a benchmark, by its name: a rule over what was measured, and what to change to get further."""

from dataclasses import dataclass
from typing import NamedTuple

PACE_KEPT = 0.97
PROCESS_FULL = 0.85
"""Of one core: one process of Python does not get further than that."""
MACHINE_FULL = 0.95
BUSY_SHARE = 0.001
WINDOW_FULL = 0.3
"""Of the time: what is under way is as much as may be."""
QUEUED_MS = 50


@dataclass(frozen=True)
class Facts:
    """What was measured.

    Shares are from 0 to 1; `process_busy` is the busiest process's share of one core, `machine_busy` that of all cores
    of this machine; `queued_ms` is how long the oldest request waited in a broker that tells it.
    """

    seconds: float
    per_second: float
    asked_per_second: float | None = None
    process_busy: float = 0.0
    processes: int = 1
    machine_busy: float = 0.0
    cores: int = 1
    broker_is_here: bool = False
    syncs_before_answers: bool = False
    failed_share: float = 0.0
    busy_share: float = 0.0
    one_at_a_time: int | None = None
    """How many requests are under way at once where each waits for its answer; None where they do not wait."""
    answer_ms: float = 0.0
    under_way: int = 0
    window_full: float = 0.0
    queued_ms: int = 0
    is_sender: bool = True


class Bottleneck(NamedTuple):
    name: str
    text: str


def bottleneck(facts: Facts) -> Bottleneck:
    """What kept it from being faster, the most certain first."""
    if facts.per_second == 0:
        return Bottleneck("nothing", "errors: nothing was done" if facts.failed_share else "nothing yet")
    if facts.busy_share >= BUSY_SHARE:
        return Bottleneck(
            "busy-answers",
            f"flow control: the broker answered busy to {facts.busy_share:.1%} of the messages",
        )
    if facts.asked_per_second is not None and facts.per_second >= PACE_KEPT * facts.asked_per_second:
        return Bottleneck("rate", f"the rate that you asked for ({facts.asked_per_second:,.0f} per second)")
    if facts.process_busy >= PROCESS_FULL:
        more = "each; more --processes may help" if facts.processes < facts.cores else "each"
        return Bottleneck(
            "client-processor", f"this client's processor ({facts.process_busy:.0%} of one core {more})"
        )
    if facts.machine_busy >= MACHINE_FULL:
        whose = (
            "client, broker and whatever else runs here share"
            if facts.broker_is_here
            else "everybody here shares"
        )
        return Bottleneck(
            "machine-processors",
            f"the processors of this machine ({facts.machine_busy:.0%} of {facts.cores} cores, which {whose})",
        )
    return _of_the_other_side(facts)


def _of_the_other_side(facts: Facts) -> Bottleneck:
    if facts.syncs_before_answers and facts.is_sender:
        return Bottleneck(
            "disk-sync",
            "disk sync: the broker answers when its disk has it (flushDiskType=SYNC_FLUSH),"
            f" in {facts.answer_ms:.2f} ms",
        )
    if facts.queued_ms >= QUEUED_MS:
        return Bottleneck(
            "broker", f"the broker: requests wait {facts.queued_ms} ms there before they are looked at"
        )
    if facts.one_at_a_time is not None and facts.is_sender:
        most = facts.one_at_a_time / max(facts.answer_ms, 0.001) * 1000
        return Bottleneck(
            "answers",
            f"waiting for answers: {facts.answer_ms:.2f} ms x {facts.one_at_a_time} under way"
            f" = {most:,.0f} requests per second at most; more --threads may help",
        )
    if facts.window_full >= WINDOW_FULL:
        return Bottleneck(
            "broker",
            f"the broker or the network: {facts.under_way:,} messages are under way, each for"
            f" {facts.answer_ms:.0f} ms, while this client waits {facts.window_full:.0%} of the time",
        )
    if not facts.is_sender:
        return Bottleneck(
            "answers",
            f"waiting for answers, {facts.answer_ms:.1f} ms a poll: the broker or the network brings messages more"
            " slowly than this client takes them",
        )
    return Bottleneck(
        "unclear",
        f"none stands out: this client had {facts.process_busy:.0%} of one core, the machine {facts.machine_busy:.0%}",
    )
