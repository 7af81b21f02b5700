"""Pulls that are repeated: answered by a plan, and never by one that is out of date."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from bolide.broker import pull_plans as plans_module
from bolide.broker.app import Broker
from bolide.broker.handlers.pull import Pulling
from bolide.model.offsets import GroupOffset
from bolide.model.topic import GroupConfig, TopicConfig
from bolide.store.queue_entry import ENTRY_BYTES
from bolide.store.reading import WINDOW_ENTRIES
from bolide.wire.command import Command
from bolide.wire.headers.pull import PullFlag
from tests.unit.broker.stage import (
    ALL,
    MAY_WAIT,
    bodies_of,
    connect,
    fill,
    offsets_of,
    pull_request,
    send_request,
)
from tests.unit.broker.test_send import play
from tests.unit.net.stage import Wire, eventually


def again(offset: int = 0, opaque: int = 1, **changes: Any) -> Command:
    """A pull in the form that plans know: every client sends the offset to commit, be it 0."""
    changes = {"commit_offset": 0, **changes}
    request = pull_request(offset, opaque, **changes)
    request.fields.setdefault("commitOffset", "0")
    return request


def has_plan(broker: Broker) -> bool:
    return len(broker.part(Pulling).plans) > 0


def test_a_repeated_pull_is_answered_like_the_first_one(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 90)
        first = await wire.ask(again(5, 1))
        assert has_plan(broker)
        second = await wire.ask(again(5, 1))
        assert first == second
        third = await wire.ask(again(40, 77))
        assert (third.opaque, offsets_of(third)) == (77, (72, 0, 90))

    play(tmp_path, act)


def test_a_pull_of_a_queue_without_messages_has_its_plan_once_there_are_some(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        broker.state.topics.put(TopicConfig("New", 4, 4))
        assert (await wire.ask(again(0, topic="New"))).code == 19
        assert not has_plan(broker)
        await fill(wire, 3, topic="New")
        for _ in range(2):
            assert len(bodies_of(await wire.ask(again(0, topic="New")))) == 3
        assert has_plan(broker)

    play(tmp_path, act)


def test_a_planned_pull_reads_on_over_segments_queue_files_and_new_messages(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 700, body=bytes(3000))
        assert len(broker.state.store.log.segments) > 2
        offset = 0
        while offset < 900:
            if offset == 700:
                await fill(wire, 200, body=b"new")
            answer = await wire.ask(again(offset))
            assert answer.code == 0
            messages = bodies_of(answer)
            assert messages == [bytes(3000) if offset < 700 else b"new"] * len(messages)
            assert offsets_of(answer)[0] == offset + len(messages)
            offset += len(messages)
        assert (await wire.ask(again(900))).remark == "OFFSET_OVERFLOW_ONE"

    play(tmp_path, act)


def test_a_planned_pull_commits_what_it_carries_but_never_beyond_the_end(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 10)
        flags = ALL | PullFlag.COMMIT_OFFSET
        for carried, stored in ((3, 3), (5, 5), (2, 2), (99, 10), (-1, 10)):
            await wire.ask(again(6, flags=flags, commit_offset=carried))
            assert broker.state.offsets.query("TOOLS_CONSUMER", "T", 0) == GroupOffset(stored)
            assert broker.state.offsets.last_pull("TOOLS_CONSUMER", "T", 0) == GroupOffset(6)
        await wire.ask(again(6, commit_offset=1))
        assert broker.state.offsets.query("TOOLS_CONSUMER", "T", 0) == GroupOffset(10)

    play(tmp_path, act)


def close_topic(broker: Broker) -> None:
    broker.state.topics.put(TopicConfig("T", 4, 4, perm=2))


def shrink_topic(broker: Broker) -> None:
    broker.state.topics.put(TopicConfig("T", 1, 4))


def close_group(broker: Broker) -> None:
    broker.state.groups.put(GroupConfig("TOOLS_CONSUMER", consume_enable=False))


@pytest.mark.parametrize(
    ("change", "code", "word"),
    [
        (close_topic, 16, "may not be read"),
        (shrink_topic, 29, "read queues"),
        (close_group, 16, "may not consume"),
    ],
)
def test_a_change_is_in_force_with_the_next_pull(
    tmp_path: Path, change: Callable[[Broker], None], code: int, word: str
) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 10, queue_id=2)
        for _ in range(2):
            assert (await wire.ask(again(0, queue_id=2))).code == 0
        change(broker)
        answer = await wire.ask(again(0, queue_id=2))
        assert answer.code == code
        assert word in (answer.remark or "")

    play(tmp_path, act)


def test_a_deleted_topic_gives_nothing_of_its_former_life(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 10, body=b"old")
        for _ in range(2):
            assert bodies_of(await wire.ask(again(3))) == [b"old"] * 7
        broker.state.topics.delete("T")
        broker.state.remover.delete("T")
        assert (await wire.ask(again(3))).code == 17
        await fill(wire, 5, body=b"new")
        assert bodies_of(await wire.ask(again(3))) == [b"new"] * 2

    play(tmp_path, act)


def test_a_new_subscription_is_in_force_with_the_next_pull(tmp_path: Path) -> None:
    """The heartbeat changes what the group wants; the pull itself stays the same."""

    async def act(broker: Broker, wire: Wire) -> None:
        other = await connect(broker)
        await fill(wire, 5, tag="A", body=b"a")
        await fill(wire, 5, tag="B", body=b"b")

        async def subscribe(tags: str, version: int) -> None:
            wire.send(heartbeat(tags, version))
            while not (await wire.next()).is_response:  # the group is told that it has changed
                pass

        await subscribe("A", 1)
        pulls = [again(0, flags=0, group="G", sub_version=1) for _ in range(2)]
        for pull in pulls:
            answer = await wire.ask(pull)
            assert answer.code == 0, answer
            assert bodies_of(answer) == [b"a"] * 5
        await subscribe("B", 2)
        for pull in pulls:
            assert bodies_of(await wire.ask(pull)) == [b"b"] * 5
        wire.writer.close()
        await wire.writer.wait_closed()
        answer = await other.ask(pulls[0])
        while answer.code == 0:  # until the broker has seen that the only member is gone
            answer = await other.ask(pulls[0])
        assert answer.code == 24

    play(tmp_path, act)


def heartbeat(tags: str, version: int) -> Command:
    codes = "[]" if tags == "*" else f"[{ord(tags)}]"
    subscription = (
        f'{{"classFilterMode":false,"codeSet":{codes},"expressionType":"TAG","subString":"{tags}",'
        f'"subVersion":{version},"tagsSet":["{tags}"],"topic":"T"}}'
    )
    consumer = (
        '{"consumeFromWhere":"CONSUME_FROM_FIRST_OFFSET","consumeType":"CONSUME_PASSIVELY","groupName":"G",'
        f'"messageModel":"CLUSTERING","subscriptionDataSet":[{subscription}],"unitMode":false}}'
    )
    body = f'{{"clientID":"c1","consumerDataSet":[{consumer}],"producerDataSet":[]}}'
    return Command(34, {}, body.encode(), opaque=9)


def test_a_record_that_is_not_where_its_entry_points_is_passed_over(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 10)
        answers = [await wire.ask(send_request(body)) for body in (b"damaged", b"sound")]
        assert answers[0].fields["queueOffset"] == "10"
        entry = broker.state.store.queues.get("T", 0).entry(10)
        assert entry is not None
        broker.state.store.log.current.file.write(
            entry[0] + 28, bytes(8)
        )  # the record's own place in the log
        for _ in range(2):
            assert bodies_of(await wire.ask(again(9))) == [b"x", b"sound"]
        assert (await wire.ask(again(10))).code == 0
        assert broker.state.store.reader.damaged == 3

    play(tmp_path, act)


def test_a_pull_of_unusual_length_is_answered_and_not_remembered(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 3)
        request = again(0)
        request.fields["anything"] = "x" * 4096
        for _ in range(3):
            assert len(bodies_of(await wire.ask(request))) == 3
        assert not has_plan(broker)

    play(tmp_path, act)


def test_what_plans_have_read_ahead_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: readers of many shapes, or of many messages at a time, cost no more memory than some of them."""
    monkeypatch.setattr(plans_module, "READING_MAX", 4)

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 2000)
        for number in range(30):
            request = again(number, bulk=number % 3 == 0)
            request.fields["anything"] = str(number)
            for _ in range(3):
                assert bodies_of(await wire.ask(request))
        assert len(broker.part(Pulling).plans) == 30
        assert 0 < broker.part(Pulling).plans.entries_bytes <= 4 * WINDOW_ENTRIES * ENTRY_BYTES

    play(tmp_path, act, {"mappedFileSizeConsumeQueue": "200000"})


def test_plans_take_a_bounded_number_of_bytes_and_the_one_not_used_for_longest_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: whoever sends ever new shapes cannot take the plans of those who use theirs."""
    monkeypatch.setattr(plans_module, "PLANS_BYTES_MAX", 10_000)

    async def act(broker: Broker, wire: Wire) -> None:
        plans = broker.part(Pulling).plans
        await fill(wire, 3)
        honest = again(0, group="honest")
        for number in range(100):
            assert bodies_of(await wire.ask(honest))
            stranger = again(0)
            stranger.fields["anything"] = str(number)
            await wire.ask(stranger)
            assert plans.bytes_kept <= 10_000
        assert 1 < len(plans) < 6
        assert any(b"honest" in shape for shape in plans._plans)
        with mock.patch.object(plans_module, "PullPlan", side_effect=AssertionError("made again")):
            assert bodies_of(await wire.ask(honest))

    play(tmp_path, act)


def test_a_plan_counts_with_its_tags(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 3, tag="0")
        before = 0
        for tags in ("0", " || ".join(map(str, range(150)))):
            await wire.ask(again(0, tags=tags))
            size = broker.part(Pulling).plans.bytes_kept - before
            before = broker.part(Pulling).plans.bytes_kept
        assert size > 150 * plans_module.CODE_BYTES

    play(tmp_path, act)


def test_a_signed_pull_has_no_shape_that_comes_again_and_no_plan(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 3)
        request = again(0)
        request.fields |= {"AccessKey": "me", "Signature": "2jmj7l5rSw0yVb/vlWAYkK/YBwk="}
        for _ in range(2):
            assert len(bodies_of(await wire.ask(request))) == 3
        assert not has_plan(broker)

    play(tmp_path, act)


def test_what_others_do_with_their_topics_and_groups_leaves_a_plan_alone(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 3)
        wire.send(heartbeat("*", 1))
        while not (await wire.next()).is_response:
            pass
        pulls = [again(0), again(0, flags=0, group="G", sub_version=1)]
        for pull in pulls:
            assert bodies_of(await wire.ask(pull))
        broker.state.topics.put(TopicConfig("Other", 4, 4))
        broker.state.groups.put(GroupConfig("others"))
        other = await connect(broker)
        body = b'{"clientID":"c2","consumerDataSet":[{"groupName":"others"}]}'
        assert (await other.ask(Command(34, {}, body, opaque=1))) is not None
        with mock.patch.object(plans_module, "PullPlan", side_effect=AssertionError("made again")):
            for pull in pulls:
                assert bodies_of(await wire.ask(pull))

    play(tmp_path, act)


@pytest.mark.parametrize(
    ("changes", "code", "word"),
    [
        ({"offset": 3, "tags": "nobody"}, 20, "NO_MATCHED_MESSAGE"),
        ({"offset": 10}, 19, "OFFSET_OVERFLOW_ONE"),
        ({"offset": 99}, 21, "OFFSET_OVERFLOW_BADLY"),
    ],
)
def test_a_planned_pull_that_finds_nothing_is_read_once_and_answered_like_the_first_one(
    tmp_path: Path, changes: dict[str, Any], code: int, word: str
) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 10, tag="A")
        flags = ALL | PullFlag.COMMIT_OFFSET
        first = await wire.ask(again(**changes, flags=flags, commit_offset=1))
        assert (first.code, first.remark) == (code, word)
        assert has_plan(broker)
        missed = broker.state.traffic.missed
        reader = broker.state.store.reader
        with mock.patch.object(reader, "pull_at", wraps=reader.pull_at) as reads:
            assert await wire.ask(again(**changes, flags=flags, commit_offset=2)) == first
        assert reads.call_count == 1
        assert broker.state.traffic.missed == missed + 1
        assert broker.state.offsets.query("TOOLS_CONSUMER", "T", 0) == GroupOffset(2)
        assert broker.state.offsets.last_pull("TOOLS_CONSUMER", "T", 0) == GroupOffset(changes["offset"])

    play(tmp_path, act)


def test_a_planned_pull_at_the_end_waits_without_being_checked_again(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 10)
        assert bodies_of(await wire.ask(again(0, flags=MAY_WAIT)))
        with mock.patch.object(broker.state.dispatcher, "on_request", side_effect=AssertionError("checked")):
            wire.send(again(10, 7, flags=MAY_WAIT))
            await eventually(lambda: len(broker.part(Pulling).hold) == 1)
        await fill(await connect(broker), 1, body=b"new")
        answer = await wire.next()
        assert (answer.opaque, bodies_of(answer)) == (7, [b"new"])

    play(tmp_path, act)


def test_a_planned_pull_that_cannot_be_read_hears_why(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 10)
        assert bodies_of(await wire.ask(again(0)))
        with mock.patch.object(broker.state.store.reader, "pull_at", side_effect=OSError(5, "I/O error")):
            answer = await wire.ask(again(0))
        assert (answer.code, "I/O error" in (answer.remark or "")) == (1, True)
        assert bodies_of(await wire.ask(again(0)))

    play(tmp_path, act)


def test_a_group_that_begins_to_broadcast_where_it_may_not_is_refused_with_its_next_pull(
    tmp_path: Path,
) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 3)
        broker.state.groups.put(GroupConfig("G", consume_broadcast_enable=False))
        for model, code in (("CLUSTERING", 0), ("BROADCASTING", 16)):
            request = heartbeat("*", 1)
            request.body = request.body.replace(b"CLUSTERING", model.encode())
            wire.send(request)
            while not (await wire.next()).is_response:
                pass
            for _ in range(3):
                assert (await wire.ask(again(0, flags=0, group="G", sub_version=1))).code == code

    play(tmp_path, act)
