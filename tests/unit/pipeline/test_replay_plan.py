"""A replay's slices have every message once, and its folder tells how far it has come."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from bolide import Message, aio
from bolide.admin.connection import AdminConnection
from bolide.admin.topics import create_topic, delete_topic, list_topics
from bolide.model.errors import ConfigError
from bolide.model.offsets import MessageQueue
from bolide.model.topic import TopicConfig
from bolide.pipeline.access import ClusterAccess
from bolide.pipeline.declared.checkpoint import AlreadyRunning
from bolide.pipeline.errors import QueueRecreated
from bolide.pipeline.places import Mark
from bolide.pipeline.ranges import QueueRange
from bolide.pipeline.replay.folder import Done, ReplayFolder
from bolide.pipeline.replay.plan import (
    Asked,
    Replay,
    Selection,
    decode_replay,
    encode_replay,
    moments_of,
    slices_of_ranges,
)
from bolide.pipeline.replay.run import ReplayFailed, Target, run
from bolide.pipeline.replay.source import check_same, plan_topics
from bolide.testing import EmbeddedServer

RANGES = tuple(
    QueueRange(MessageQueue("orders", "broker-a", queue), begin, end)
    for queue, begin, end in ((0, 17, 1017), (1, 5, 6), (2, 0, 333))
)
ASKED = Asked("copy", ("orders",), selection=Selection(from_ms=5, tags=("a", "b"), where="true"), rate=7)
MARKS = (Mark(1_700_000_000_000, 77), None, Mark(1_700_000_000_001, 0))
REPLAY = Replay("r1", "replay-r1-00", ASKED, 1_700_000_000_000, 1334, 10, tasks=2, ranges=RANGES, marks=MARKS)


def test_slices_have_every_offset_of_every_queue_once_and_in_order() -> None:
    offsets: dict[MessageQueue, list[int]] = {}
    for number in range(REPLAY.slices):
        for one in REPLAY.ranges_of(number, number + 1):
            offsets.setdefault(one.queue, []).extend(range(one.begin, one.end))
    assert offsets == {one.queue: list(range(one.begin, one.end)) for one in RANGES}
    assert REPLAY.ranges_of(0, REPLAY.slices) == list(RANGES)


def test_of_many_short_queues_every_slice_has_some() -> None:
    queues = (MessageQueue("orders", "broker-a", number) for number in range(1000))
    short = replace(REPLAY, ranges=tuple(QueueRange(queue, 3, 4) for queue in queues))
    counts = [sum(one.length for one in short.ranges_of(at, at + 1)) for at in range(short.slices)]
    assert (sum(counts), set(counts)) == (1000, {100})
    assert [number for number in range(10) if replace(REPLAY, ranges=RANGES[1:2]).is_empty(number)] == [
        *range(9)
    ]


@pytest.mark.parametrize(
    ("messages", "rate", "slices"), [(1, None, 1), (250_000, None, 3), (250_000, 10, 834)]
)
def test_a_slice_is_half_a_minute_of_a_rate_or_a_hundred_thousand(
    messages: int, rate: int | None, slices: int
) -> None:
    assert slices_of_ranges(messages, rate) == slices


def test_an_archive_is_cut_between_minutes_and_none_is_left_out() -> None:
    counts = {minute * 60_000: 40_000 for minute in (5, 6, 7, 90)}
    assert moments_of(counts, 60_000, None) == [300_000, 420_000, 5_460_000]
    assert moments_of({}, 60_000, None) == []


def test_a_replay_is_the_same_after_its_file() -> None:
    assert decode_replay(encode_replay(REPLAY), "f") == REPLAY
    of_archive = replace(
        REPLAY, ranges=(), marks=(), moments_ms=(1, 2, 3), asked=replace(ASKED, archive="/a")
    )
    assert decode_replay(encode_replay(of_archive), "f") == of_archive


def test_a_plan_that_was_written_without_marks_is_read() -> None:
    tree = json.loads(encode_replay(REPLAY))
    del tree["marks"]
    assert decode_replay(json.dumps(tree), "f") == replace(REPLAY, marks=())


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"kind": "bolide replay", "version": 1}', "{" * 5000])
def test_a_file_that_is_no_replay_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^x.json cannot be read as a replay"):
        decode_replay(text, "x.json")


def test_another_question_under_the_same_id_is_noticed_and_a_rate_may_change() -> None:
    assert not ASKED.differs(replace(ASKED, rate=100))
    later = replace(ASKED, selection=replace(ASKED.selection, from_ms=6), words={"from": "2h"})
    assert not later.differs(replace(ASKED, words={"from": "2h"}))  # the same words on another day
    assert ASKED.differs(replace(ASKED, to="x", keep_order=True)) == ["--to", "--keep-order"]


def test_a_folder_keeps_what_is_done_and_lets_one_in_at_a_time(tmp_path: Path) -> None:
    folder = ReplayFolder.of("r1", str(tmp_path))
    assert (folder.replay(), folder.done()) == (None, Done())
    with folder.held():
        folder.keep(REPLAY)
        folder.note(Done().plus(10, 0).plus(3, 4))
        with pytest.raises(AlreadyRunning), folder.held():
            pass
    assert (folder.replay(), folder.done()) == (REPLAY, Done(2, 13, 4))
    (tmp_path / "r1" / "done.json").write_text("{")
    with pytest.raises(ConfigError, match="nobody knows what was sent"):
        folder.done()


@pytest.mark.parametrize("text", ["", "..", "a/b", "a b", "x" * 81])
def test_an_id_is_a_plain_name(text: str) -> None:
    with pytest.raises(ConfigError, match="is no id"):
        ReplayFolder.of(text)


def test_a_replay_that_another_run_began_meanwhile_is_not_mixed_with_this_one(tmp_path: Path) -> None:
    """Both found nothing under the id, and planned; the other one was killed after some slices."""
    folder = ReplayFolder.of("r1", str(tmp_path))
    folder.keep(REPLAY)
    folder.note(Done().plus(10, 0))
    mine = replace(REPLAY, writer="replay-r1-01", slices=7)
    with pytest.raises(ReplayFailed, match="begun by another run meanwhile"):
        run(mine, folder, cast(SparkSession, None), Target(ClusterAccess("127.0.0.1:1")))
    assert (folder.replay(), folder.done()) == (REPLAY, Done(1, 10, 0))


async def send_anew(nameserver: str, topic: str, count: int) -> None:
    """Into the topic, made again if it is there."""
    async with AdminConnection(nameserver) as servers:
        if topic in await list_topics(servers):
            await delete_topic(servers, topic)
        await create_topic(servers, TopicConfig(topic, 1, 1))
    async with aio.Producer(nameserver, group="tests") as producer:
        for number in range(count):
            await producer.send(Message(topic, b"%d" % number))


@pytest.mark.parametrize("count", [3, 10], ids=["shorter", "longer"])
def test_a_replay_whose_topic_was_made_anew_sends_nothing_of_the_new_one(
    bolide_module_server: EmbeddedServer, tmp_path: Path, count: int
) -> None:
    """Its offsets mean other messages then, also those that lie within both."""
    server, topic = bolide_module_server, f"anew-{count}"
    asyncio.run(send_anew(server.nameserver, topic, 5))
    cluster = ClusterAccess(server.nameserver)
    planned = plan_topics(cluster, Asked("copy", (topic,)), "r1", "replay-r1", 0)
    check_same(cluster, planned)
    asyncio.run(send_anew(server.nameserver, topic, count))
    folder = ReplayFolder.of("r1", str(tmp_path))
    folder.keep(planned)
    with pytest.raises(
        QueueRecreated, match=r"is not the queue that the replay was planned for.* another --id"
    ):
        run(planned, folder, cast(SparkSession, None), Target(cluster))
    check_same(cluster, planned, skip_expired=True)
    assert folder.done() == Done()


def test_the_same_replay_of_another_cluster_is_another_one() -> None:
    assert replace(ASKED, nameserver="a:9876").differs(replace(ASKED, nameserver="b:9876")) == [
        "--nameserver"
    ]


def test_a_replay_is_kept_on_this_machine() -> None:
    with pytest.raises(ConfigError, match="a folder of this machine"):
        ReplayFolder.of("r1", "s3://bucket/replays")
