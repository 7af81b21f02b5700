"""Pulling over a socket: statuses with their next offset, limits, filters, permissions (RD-01 to RD-09)."""

from pathlib import Path
from typing import Any

import pytest

from bolide.broker.app import Broker
from bolide.model.topic import GroupConfig, TopicConfig
from bolide.wire.command import COMPACT
from bolide.wire.headers.pull import PullFlag
from tests.unit.broker.stage import (
    ALL,
    bodies_of,
    fill,
    offsets_of,
    pull_request,
    send_request,
)
from tests.unit.broker.test_send import play
from tests.unit.net.stage import Wire


@pytest.mark.parametrize(
    ("offset", "code", "remark", "following"),
    [
        (0, 0, "FOUND", 10),
        (9, 0, "FOUND", 10),
        (10, 19, "OFFSET_OVERFLOW_ONE", 10),
        (11, 21, "OFFSET_OVERFLOW_BADLY", 10),
        (2**62, 21, "OFFSET_OVERFLOW_BADLY", 10),
    ],
)
def test_every_offset_gets_its_status_and_the_next_one(
    tmp_path: Path, offset: int, code: int, remark: str, following: int
) -> None:
    """RD-01."""

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 10)
        answer = await wire.ask(pull_request(offset))
        assert (answer.code, answer.remark) == (code, remark)
        assert offsets_of(answer) == (following, 0, 10)
        assert answer.fields["suggestWhichBrokerId"] == "0"

    play(tmp_path, act)


@pytest.mark.parametrize(("offset", "code"), [(0, 19), (3, 21)])
def test_an_empty_queue_has_nothing_new_at_zero_and_nothing_at_all_elsewhere(
    tmp_path: Path, offset: int, code: int
) -> None:
    """RD-01."""

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 1, queue_id=1)
        answer = await wire.ask(pull_request(offset))
        assert (answer.code, answer.remark) == (code, "NO_MESSAGE_IN_QUEUE")
        assert offsets_of(answer) == (0, 0, 0)

    play(tmp_path, act)


def test_an_offset_before_the_first_message_is_moved_to_it(tmp_path: Path) -> None:
    """RD-01, RD-07: the oldest segment has expired."""

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 10)
        broker.state.store.queues.get("T", 0).start = type(broker.state.store.queues.get("T", 0).start)(4)
        answer = await wire.ask(pull_request(2))
        assert (answer.code, answer.remark) == (21, "OFFSET_TOO_SMALL")
        assert offsets_of(answer) == (4, 4, 10)

    play(tmp_path, act)


def test_entries_whose_records_are_gone_are_passed_over(tmp_path: Path) -> None:
    """RD-07."""

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 150, body=bytes(500))
        first = broker.state.store.log._segments.pop(0)
        broker.state.store.log._bases.pop(0)
        offset = 0
        statuses = set()
        while offset < 150:
            answer = await wire.ask(pull_request(offset))
            statuses.add((answer.code, answer.remark))
            assert offsets_of(answer)[0] > offset
            offset = offsets_of(answer)[0]
        assert (20, "MESSAGE_WAS_REMOVING") in statuses
        assert (0, "FOUND") in statuses
        broker.state.store.log._segments.insert(0, first)
        broker.state.store.log._bases.insert(0, first.base)

    play(tmp_path, act, {"mappedFileSizeCommitLog": "32768"})


def test_a_pull_brings_at_most_32_messages_and_256_kib(tmp_path: Path) -> None:
    """RD-04, recent messages."""

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 50)
        assert len(bodies_of(await wire.ask(pull_request(0, count=100)))) == 32
        assert len(bodies_of(await wire.ask(pull_request(0, count=5)))) == 5
        await fill(wire, 20, body=bytes(60_000), queue_id=1)
        answer = await wire.ask(pull_request(0, queue_id=1))
        assert len(bodies_of(answer)) == 4
        assert len(answer.body) <= 256 * 1024
        small = await wire.ask(pull_request(0, queue_id=1, max_msg_bytes=100))
        assert len(bodies_of(small)) == 1  # the first is always brought

    play(tmp_path, act)


def test_old_messages_come_in_smaller_portions(tmp_path: Path) -> None:
    """RD-04: with no memory to read from everything counts as old."""

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 50)
        assert len(bodies_of(await wire.ask(pull_request(0)))) == 8
        await fill(wire, 5, body=bytes(60_000), queue_id=1)
        assert len(bodies_of(await wire.ask(pull_request(0, queue_id=1)))) == 1

    play(tmp_path, act, {"accessMessageInMemoryMaxRatio": "0"})


def test_a_message_larger_than_the_limit_is_still_delivered(tmp_path: Path) -> None:
    """RD-04."""

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 2, body=bytes(500_000))
        answer = await wire.ask(pull_request(0))
        assert [len(body) for body in bodies_of(answer)] == [500_000]
        assert offsets_of(answer)[0] == 1

    play(tmp_path, act)


def test_tags_choose_by_their_hash_and_the_rest_is_passed_over(tmp_path: Path) -> None:
    """FI-01."""

    async def act(broker: Broker, wire: Wire) -> None:
        for number in range(30):
            body = b"%d" % number
            assert (await wire.ask(send_request(body, tag=("A", "B", "C")[number % 3]))).code == 0
        for tags, wanted in (("A", {0}), ("A || C", {0, 2}), ("*", {0, 1, 2}), ("", {0, 1, 2})):
            answer = await wire.ask(pull_request(0, tags=tags))
            assert bodies_of(answer) == [b"%d" % n for n in range(30) if n % 3 in wanted]
        answer = await wire.ask(pull_request(0, tags="Nobody"))
        assert (answer.code, answer.remark, offsets_of(answer)[0]) == (20, "NO_MATCHED_MESSAGE", 30)
        assert answer.body == b""

    play(tmp_path, act)


def test_equal_hashes_match_because_the_client_looks_again(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await wire.ask(send_request(b"collides", tag="BB"))
        assert bodies_of(await wire.ask(pull_request(0, tags="Aa"))) == [b"collides"]

    play(tmp_path, act)


def test_one_pull_looks_at_800_entries_at_most(tmp_path: Path) -> None:
    """RD-05."""

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 2000, tag="A")
        await wire.ask(send_request(b"wanted", tag="B"))
        offset, pulls = 0, 0
        while True:
            answer = await wire.ask(pull_request(offset, tags="B"))
            pulls += 1
            if answer.code == 0:
                break
            assert answer.code == 20
            assert 0 < offsets_of(answer)[0] - offset <= 800
            offset = offsets_of(answer)[0]
        assert bodies_of(answer) == [b"wanted"]
        assert pulls <= 30

    play(tmp_path, act)


@pytest.mark.parametrize("count", [0, -1])
def test_a_pull_that_asks_for_no_message_gets_one(tmp_path: Path, count: int) -> None:
    """As the original: the Go client's polling asks for 0 where nobody sets its batch."""

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 3)
        answer = await wire.ask(pull_request(0, count=count))
        assert (answer.code, len(bodies_of(answer)), offsets_of(answer)[0]) == (0, 1, 1)

    play(tmp_path, act)


def test_a_pull_commits_the_offset_it_carries(tmp_path: Path) -> None:
    """RD-09; -1 is no progress."""

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 10)
        flags = int(PullFlag.SUBSCRIPTION | PullFlag.COMMIT_OFFSET)
        await wire.ask(pull_request(5, flags=flags, commit_offset=5, group="g"))
        assert broker.state.offsets.query("g", "T", 0) == 5
        await wire.ask(pull_request(5, flags=ALL, commit_offset=7, group="g"))
        assert broker.state.offsets.query("g", "T", 0) == 5
        await wire.ask(pull_request(5, flags=flags, commit_offset=-1, group="g"))
        assert broker.state.offsets.query("g", "T", 0) == 5

    play(tmp_path, act)


@pytest.mark.parametrize(
    ("changes", "code", "remark"),
    [
        ({"topic": "Unknown"}, 17, "does not exist"),
        ({"topic": "../x"}, 17, "does not exist"),
        ({"queue_id": 4}, 29, "4 read queues"),
        ({"queue_id": -1}, 29, "cannot be read"),
        ({"offset": -1}, 21, "OFFSET_TOO_SMALL"),
        ({"flags": 0}, 24, "TOOLS_CONSUMER"),
        ({"topic": "WriteOnly"}, 16, "may not be read"),
        ({"group": "Stopped"}, 16, "may not consume"),
        ({"expression_type": "SQL92", "tags": "a > 'x'"}, 23, "character 5"),
        ({"expression_type": "CLASS", "tags": "a > 1"}, 1, "CLASS"),
        ({"group": "bad group"}, 26, "bad group"),
        ({"tags": "a" * 40_000}, 23, "40000 characters"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_a_pull_that_may_not_be_is_refused_with_its_code_and_words(
    tmp_path: Path, changes: dict[str, Any], code: int, remark: str
) -> None:
    """TP-06 and the table of checks."""

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 1)
        broker.state.topics.put(TopicConfig("WriteOnly", 4, 4, perm=2))
        broker.state.groups.put(GroupConfig("Stopped", consume_enable=False))
        parts = dict(changes)
        answer = await wire.ask(pull_request(parts.pop("offset", 0), **parts))
        assert (answer.code, remark in (answer.remark or "")) == (code, True), answer
        assert (await wire.ask(pull_request(0))).code == 0

    play(tmp_path, act)


def test_a_broker_that_may_not_be_read_says_so(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 1)
        broker.state.settings.change({"brokerPermission": "2"})
        answer = await wire.ask(pull_request(0))
        assert answer.code == 16
        assert "may not be read now" in (answer.remark or "")

    play(tmp_path, act)


def test_queues_beyond_the_read_queues_hold_messages_that_nobody_gets_yet(tmp_path: Path) -> None:
    """TP-03."""

    async def act(broker: Broker, wire: Wire) -> None:
        broker.state.topics.put(TopicConfig("Wide", read_queues=4, write_queues=8))
        await fill(wire, 3, topic="Wide", queue_id=6)
        assert (await wire.ask(pull_request(0, topic="Wide", queue_id=6))).code == 29
        broker.state.topics.put(TopicConfig("Wide", read_queues=8, write_queues=8))
        assert len(bodies_of(await wire.ask(pull_request(0, topic="Wide", queue_id=6)))) == 3

    play(tmp_path, act)


@pytest.mark.parametrize("code", [11, 361])
@pytest.mark.parametrize("form", [0, COMPACT])
def test_lite_pulls_and_compact_pulls_are_pulls(tmp_path: Path, code: int, form: int) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 2)
        request = pull_request(0, code=code)
        request.form = form
        answer = await wire.ask(request)
        assert (answer.code, answer.form, len(bodies_of(answer))) == (0, form, 2)

    play(tmp_path, act)


def test_reading_crosses_the_borders_of_queue_files_and_segments(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 500, body=bytes(500))
        found = 0
        while found < 500:
            answer = await wire.ask(pull_request(found))
            assert answer.code == 0
            found = offsets_of(answer)[0]

    play(tmp_path, act, {"mappedFileSizeCommitLog": "65536", "mappedFileSizeConsumeQueue": "140"})
