"""How far groups are behind: now, as the brokers say, and before, as a history says that every report adds to.

Brokers keep where a group is and not where it was, so there is no lag over time but what somebody has written down.
The history is a file with a line of JSON for each group, topic and report.  It is only ever added to; lines that
cannot be read are passed over and counted.
"""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bolide.admin.groups import group_configs
from bolide.admin.many import of_each
from bolide.admin.progress import TopicLag, group_lag
from bolide.model.limits.spark import STATS_HISTORY_BYTES_MAX
from bolide.model.names import retry_topic
from bolide.model.numbers import is_int64
from bolide.pipeline.access import ClusterAccess
from bolide.pipeline.stats.figures import LagFigures, LagSample, QueueLagFigures


async def lag_now(
    cluster: ClusterAccess, groups: Sequence[str], topics: Sequence[str]
) -> tuple[list[LagFigures], int]:
    """Groups in these topics and in what they have to retry, and when that was; `GroupNotFound` for an unknown one."""
    async with cluster.admin() as servers:
        for group in groups:
            await group_configs(servers, group)
        found = await of_each(groups, lambda group: group_lag(servers, group))
        now_ms = servers.clock.now_ms()
    return [
        _figures(lag, now_ms)
        for lags in found
        for lag in lags
        if lag.topic in topics or lag.topic == retry_topic(lag.group)
    ], now_ms


def _figures(lag: TopicLag, now_ms: int) -> LagFigures:
    queues = [
        QueueLagFigures(
            one.queue.broker_name,
            one.queue.queue_id,
            one.offset,
            one.end,
            one.behind,
            one.waits_ms(now_ms),
        )
        for one in lag.queues
    ]
    return LagFigures(lag.group, lag.topic, lag.behind, lag.waits_ms(now_ms), queues)


def add_to_history(file: Path, lags: Iterable[LagFigures], now_ms: int) -> None:
    """In one write, so that two reports at once do not mix their lines."""
    samples = [LagSample(now_ms, lag.group, lag.topic, lag.behind, lag.waits_ms) for lag in lags]
    lines = "".join(json.dumps(asdict(sample)) + "\n" for sample in samples)
    with file.open("ab", buffering=0) as history:
        if history.tell() and not _ends_a_line(file):
            lines = "\n" + lines  # behind a line that was broken off
        history.write(lines.encode())


def read_history(file: Path, groups: Sequence[str], topics: Sequence[str]) -> tuple[list[LagSample], int]:
    """The samples of these groups in these topics by time, and how many lines could not be read."""
    samples: list[LagSample] = []
    unread = 0
    wanted = {(group, topic) for group in groups for topic in (*topics, retry_topic(group))}
    for line in _last_lines(file):
        sample = _sample(line)
        if sample is None:
            unread += 1
        elif (sample.group, sample.topic) in wanted:
            samples.append(sample)
    return sorted(samples, key=lambda sample: sample.at_ms), unread


def _last_lines(file: Path) -> list[bytes]:
    with file.open("rb") as history:
        size = history.seek(0, os.SEEK_END)
        begin = max(0, size - STATS_HISTORY_BYTES_MAX)
        history.seek(begin)
        lines = history.read(STATS_HISTORY_BYTES_MAX).splitlines()
    return [line for line in lines[1 if begin else 0 :] if line.strip()]


def _ends_a_line(file: Path) -> bool:
    with file.open("rb") as history:
        history.seek(-1, os.SEEK_END)
        return history.read(1) == b"\n"


def _sample(line: bytes) -> LagSample | None:
    try:
        told: Any = json.loads(line)
        at_ms, group, topic, behind, waits_ms = (told[name] for name in LagSample.__slots__)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not isinstance(group, str) or not isinstance(topic, str):
        return None
    if not all(is_int64(number) and number >= 0 for number in (at_ms, behind, waits_ms)):
        return None
    return LagSample(at_ms, group, topic, behind, waits_ms)
