"""Lists of topics (18) and of groups (225): judged and made a few per turn, whatever others do in between."""

import asyncio
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

from bolide.broker.config_lists import PER_TURN
from bolide.broker.handlers import group as group_handlers
from bolide.broker.handlers import topic as topic_handlers
from bolide.model import java_json
from bolide.model.errors import InvalidRequest, TooBusy
from bolide.model.limits import CONFIG_LIST_MAX
from bolide.model.topic import GroupConfig, TopicConfig
from bolide.net.turns import next_turn
from bolide.wire.bodies import admin
from tests.unit.broker.handlers.desk import Desk
from tests.unit.net.turns import counted_by_turn

Entry = dict[str, Any]


class Topics:
    module, judging, decoding, code = topic_handlers, "alter_attributes", "topic_from_json", 18
    first, second = ("message.type", "FIFO"), ("cleanup.policy", "DELETE")

    @staticmethod
    def entry(name: str, **attributes: str) -> Entry:
        return {"topicName": name, "attributes": attributes}

    @staticmethod
    def body(*entries: Entry) -> bytes:
        return java_json.dumps({"topicConfigList": list(entries)})

    @staticmethod
    def make(desk: Desk, name: str, **attributes: str) -> None:
        desk.topics.put(TopicConfig(name, attributes=attributes))

    @staticmethod
    def find(desk: Desk, name: str) -> TopicConfig | None:
        return desk.topics.get(name)


class Groups:
    module, judging, decoding, code = group_handlers, "alter_attributes", "group_from_json", 225
    first, second = ("a", "1"), ("b", "2")

    @staticmethod
    def entry(name: str, **attributes: str) -> Entry:
        return {"groupName": name, "attributes": attributes}

    @staticmethod
    def body(*entries: Entry) -> bytes:
        return java_json.dumps({"groupConfigList": list(entries)})

    @staticmethod
    def make(desk: Desk, name: str, **attributes: str) -> None:
        desk.groups.put(GroupConfig(name, attributes=attributes))

    @staticmethod
    def find(desk: Desk, name: str) -> GroupConfig | None:
        return desk.groups.get(name)


Kind = type[Topics] | type[Groups]
KINDS = pytest.mark.parametrize("kind", [Topics, Groups])


def attributes(kind: Kind, desk: Desk, name: str) -> dict[str, str] | None:
    config = kind.find(desk, name)
    return None if config is None else dict(config.attributes)


def during(desk: Desk, kind: Kind, body: bytes, act: Callable[[], None]) -> None:
    """Ask for a list, and do something once its first entries are judged."""

    async def both() -> None:
        asked = asyncio.ensure_future(desk.asked(kind.code, body))
        await next_turn()
        await next_turn()
        assert not asked.done()
        act()
        await asked

    desk.run(both())


@KINDS
@pytest.mark.parametrize("looked_at", ["judging", "decoding"])
def test_a_list_is_judged_a_few_per_turn_before_anything_changes(
    desk: Desk, kind: Kind, looked_at: str
) -> None:
    entries = [kind.entry(f"n{number}") for number in range(CONFIG_LIST_MAX - 1)]
    owner: Any = kind.module if looked_at == "judging" else admin

    async def act() -> None:
        with counted_by_turn(owner, getattr(kind, looked_at)) as turns, pytest.raises(InvalidRequest):
            await desk.asked(kind.code, kind.body(*entries, kind.entry("bad name")))
        assert turns.most <= PER_TURN
        assert turns.total >= CONFIG_LIST_MAX - 1

    desk.run(act())
    assert kind.find(desk, "n0") is None


@KINDS
def test_what_others_change_while_a_list_is_judged_stays_changed(desk: Desk, kind: Kind) -> None:
    (first, one), (second, two) = kind.first, kind.second
    kind.make(desk, "n0")
    body = kind.body(*(kind.entry(f"n{number}", **{f"+{second}": two}) for number in range(2 * PER_TURN)))
    during(desk, kind, body, lambda: kind.make(desk, "n0", **{first: one}))
    assert attributes(kind, desk, "n0") == {first: one, second: two}
    assert attributes(kind, desk, "n1") == {second: two}


@KINDS
def test_a_change_that_fits_no_more_when_its_turn_comes_says_how_many_were_made(
    desk: Desk, kind: Kind
) -> None:
    first, one = kind.first
    kind.make(desk, "n1", **{first: one})
    others = (kind.entry(f"n{number}") for number in range(2, 2 * PER_TURN))
    body = kind.body(kind.entry("n0"), kind.entry("n1", **{f"-{first}": ""}), *others)
    with pytest.raises(InvalidRequest, match=f"the first 1 of {2 * PER_TURN} are made"):
        during(desk, kind, body, lambda: kind.make(desk, "n1"))
    assert kind.find(desk, "n0") is not None


@KINDS
def test_one_that_comes_twice_in_a_list_has_both_changes_and_a_mistake_of_the_second_makes_none(
    desk: Desk, kind: Kind
) -> None:
    (first, one), (second, two) = kind.first, kind.second
    both = (kind.entry("n", **{f"+{first}": one}), kind.entry("n", **{f"+{second}": two}))
    assert desk.ask(kind.code, kind.body(*both)).code == 0
    assert attributes(kind, desk, "n") == {first: one, second: two}
    twice = kind.entry("n", **{f"-{first}": ""})
    with pytest.raises(InvalidRequest, match="not set"):
        desk.ask(kind.code, kind.body(kind.entry("other"), twice, twice))
    assert attributes(kind, desk, "n") == {first: one, second: two}
    assert kind.find(desk, "other") is None


def test_a_topic_that_is_deleted_while_a_list_is_made_stops_it_with_how_many_are_made(desk: Desk) -> None:
    desk.topic("n1")
    desk.write("n1", 0)
    body = Topics.body(*(Topics.entry(f"n{number}") for number in range(2)))

    def deleted_behind_the_first(config: TopicConfig) -> object:
        if config.name == "n0":
            desk.state.remover.delete("n1")
            desk.topics.delete("n1")
        return mock.DEFAULT

    async def act() -> None:
        new_topics = desk.state.new_topics
        with mock.patch.object(new_topics, "put", wraps=new_topics.put, side_effect=deleted_behind_the_first):
            await desk.asked(18, body)

    with pytest.raises(TooBusy, match=r"still being deleted.*the first 1 of 2 are made"):
        desk.run(act())
