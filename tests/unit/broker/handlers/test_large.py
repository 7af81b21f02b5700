"""Answers that grow with topics, groups and queues: what one turn of the event loop does for them does not grow."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from bolide.broker.handlers import offset, topic
from bolide.model import java_json
from bolide.model.json_pieces import PIECE_ENTRIES
from bolide.store.tables import offsets
from bolide.wire.bodies.offset import decode_consume_stats
from bolide.wire.bodies.topic import decode_topic_stats
from bolide.wire.command import Command
from tests.unit.broker.handlers.desk import Desk
from tests.unit.net.stage import next_turn
from tests.unit.net.turns import Turns, counted_by_turn

MANY = 3 * PIECE_ENTRIES


@pytest.fixture
def busy(desk: Desk) -> Desk:
    """One group that reads many topics, and one topic that many groups read and that has many queues."""
    desk.topic("wide", MANY)
    for number in range(MANY):
        desk.topic(f"t{number}", 1)
        desk.offsets.commit("reader", f"t{number}", 0, 1, 1)
        desk.offsets.commit(f"g{number}", "wide", 0, 1, 1)
    return desk


def ask_counting(
    desk: Desk, owner: Any, name: str, code: int, weigh: Callable[..., int] | None = None, **fields: Any
) -> tuple[Command, Turns]:
    """The answer, and how often a function was called in each turn for it."""

    async def main() -> tuple[Command, Turns]:
        with counted_by_turn(owner, name, weigh) as turns:
            return await desk.asked(code, **fields), turns

    return desk.run(main())


def in_an_answer(value: Any, newline: str = "") -> int:
    """Answers are compact.  The files of the tables, which may be written in the same turn, are not."""
    return newline == ""


def test_the_bounds_of_many_queues_are_looked_up_a_slice_per_turn(busy: Desk) -> None:
    answer, looks = ask_counting(busy, topic, "_bounds_of", 202, topic="wide")
    assert len(decode_topic_stats(answer.body)) == looks.total == MANY
    assert looks.most <= PIECE_ENTRIES


def test_the_progress_in_many_topics_is_looked_up_a_slice_per_turn(busy: Desk) -> None:
    answer, looks = ask_counting(busy, offset, "_progress", 208, consumerGroup="reader")
    assert len(decode_consume_stats(answer.body)) == looks.total == MANY
    assert looks.most <= PIECE_ENTRIES


def test_the_rates_of_many_topics_are_added_up_a_slice_per_turn(busy: Desk) -> None:
    statistics = busy.state.statistics
    answer, rates = ask_counting(busy, statistics, "rate_of_group", 208, consumerGroup="reader")
    assert answer.body.endswith(b'"consumeTps":0.0}')
    assert rates.total == MANY
    assert rates.most <= PIECE_ENTRIES


@pytest.mark.parametrize(
    ("code", "fields", "member"),
    [(300, {"topic": "wide"}, "groupList"), (343, {"group": "reader"}, "topicList")],
)
def test_long_lists_are_written_a_slice_per_turn(
    busy: Desk, code: int, fields: dict[str, Any], member: str
) -> None:
    answer, texts = ask_counting(busy, java_json, "text_of", code, in_an_answer, **fields)
    assert len(java_json.loads(answer.body)[member]) == MANY
    assert texts.total >= MANY
    assert texts.most <= PIECE_ENTRIES


def test_the_offsets_of_a_group_are_forgotten_a_slice_per_turn(
    busy: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offsets, "DROPPED_PER_STEP", PIECE_ENTRIES)
    _, dropped = ask_counting(busy, offsets, "_bytes_of", 207, groupName="reader", cleanOffset=True)
    assert dropped.total >= MANY
    assert dropped.most <= 2 * PIECE_ENTRIES  # of both tables
    assert list(busy.offsets.topics_of("reader")) == []


def test_a_topic_deleted_while_the_answer_is_made_is_left_out_of_it(busy: Desk) -> None:
    async def main() -> Command:
        answer = asyncio.create_task(busy.asked(208, consumerGroup="reader"))
        await next_turn()
        await next_turn()
        busy.topics.delete(f"t{MANY - 1}")
        return await answer

    assert len(decode_consume_stats(busy.run(main()).body)) == MANY - 1
