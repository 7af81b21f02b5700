"""What waits too long for its turn is refused as busy, what nobody hears of is served; and other rules of pulls."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from bolide.broker.app import Broker
from bolide.broker.handlers.slow_consumers import SlowConsumers
from bolide.model.response_code import ResponseCode
from bolide.model.steps import at_once
from bolide.model.topic import GroupConfig
from bolide.wire.command import Command
from tests.unit.broker.stage import (
    GROUP,
    bodies_of,
    connect,
    fill,
    pull_request,
    send_request,
    serving,
)
from tests.unit.net.stage import Wire, eventually

Act = Callable[[Broker, Wire], Awaitable[None]]
ONE_WAY = 2
AS_BY_DEFAULT = {"waitTimeMillsInSendQueue": "200"}


def play(root: Path, act: Act, settings: Mapping[str, str] | None = None) -> None:
    async def main() -> None:
        async with serving(root, {**AS_BY_DEFAULT, **(settings or {})}) as (broker, wire):
            await act(broker, wire)

    asyncio.run(main())


async def after(broker: Broker, wire: Wire, waited_ms: int, *requests: Command) -> list[Command]:
    """Answers to requests that have waited so long, as `net/round.py` tells it."""
    (link,) = broker._server.links
    serve = link._serve

    def served_late() -> None:
        link.waited_ms = waited_ms
        serve()

    link._serve = served_late  # type: ignore[method-assign]
    wire.send(*requests)
    answers = [await wire.next() for request in requests if not request.is_one_way]
    link._serve = serve  # type: ignore[method-assign]
    return answers


async def joined(broker: Broker, *groups: str) -> Wire:
    """The connection of a member of these groups, which read the topic T."""
    wants = [{"topic": "T", "subString": "*"}]
    rows = [{"groupName": name, "subscriptionDataSet": wants} for name in groups]
    member = await connect(broker)
    member.send(Command(34, {}, json.dumps({"clientID": "c", "consumerDataSet": rows}).encode()))
    await eventually(lambda: broker.state.clients.group(groups[-1]) is not None)
    return member


def test_sends_that_have_waited_too_long_are_refused_as_busy_and_stored_by_nobody(tmp_path: Path) -> None:
    """PR-07: SYSTEM_BUSY after 200 ms; plain sends are stored all the same, which costs less than a refusal."""

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 1)
        end = broker.state.store.log.end
        odd = [send_request(sys_flag=8), send_request(properties="TAGS\x01A\x02")]
        late = await after(broker, wire, 201, *odd)
        assert {answer.code for answer in late} == {ResponseCode.SYSTEM_BUSY}
        assert all((answer.remark or "").startswith("[TIMEOUT_CLEAN_QUEUE]broker busy") for answer in late)
        assert "period in queue: 201ms" in (late[0].remark or "")
        assert broker.state.store.log.end == end
        served = await after(broker, wire, 200, *odd) + await after(broker, wire, 201, send_request())
        assert {answer.code for answer in served} == {0}

    play(tmp_path, act)


def test_pulls_have_more_patience_and_planned_ones_are_refused_too(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 1)
        await wire.ask(pull_request())
        (served,) = await after(broker, wire, 5000, pull_request())
        assert bodies_of(served) == [b"x"]
        (late,) = await after(broker, wire, 5001, pull_request())
        assert late.code == ResponseCode.SYSTEM_BUSY

    play(tmp_path, act)


def test_one_way_sends_are_stored_however_late(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 1)
        odd = send_request(b"late", flag=ONE_WAY, sys_flag=8)
        (pulled,) = await after(broker, wire, 1000, odd, pull_request())
        assert bodies_of(pulled) == [b"x", b"late"]

    play(tmp_path, act)


def test_without_fast_failure_everybody_is_served(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        (answer,) = await after(broker, wire, 60_000, send_request(sys_flag=8))
        assert answer.code == 0

    play(tmp_path, act, {"brokerFastFailureEnable": "false"})


@pytest.mark.parametrize(("setting", "next_offset"), [("false", "3"), ("true", "0")])
def test_beyond_the_end_of_a_young_queue_the_old_rule_goes_to_its_beginning(
    tmp_path: Path, setting: str, next_offset: str
) -> None:
    """RD-02: by a switch, as up to 4.9.3; planned pulls too."""

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 3)
        for offset in (7, 0, 7):
            answer = await wire.ask(pull_request(offset))
        assert answer.code == ResponseCode.PULL_OFFSET_MOVED
        assert answer.fields["nextBeginOffset"] == next_offset

    play(tmp_path, act, {"overflowToFirstOffset": setting})


@pytest.mark.parametrize(
    ("slave_read", "ratio", "suggested"), [("true", "0", "7"), ("true", "100", "3"), ("false", "0", "0")]
)
def test_who_is_further_behind_than_memory_is_sent_to_another_broker(
    tmp_path: Path, slave_read: str, ratio: str, suggested: str
) -> None:
    """RD-06: with `slaveReadEnable`, by what the group says for slow and for usual reading."""

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 3)
        broker.state.groups.put(
            replace(GroupConfig(GROUP), broker_id=3, which_broker_when_consume_slowly=7), ""
        )
        for _ in range(3):
            answer = await wire.ask(pull_request())
        assert answer.fields["suggestWhichBrokerId"] == suggested
        at_end = await wire.ask(pull_request(3))
        assert at_end.fields["suggestWhichBrokerId"] == ("3" if slave_read == "true" else "0")

    play(tmp_path, act, {"slaveReadEnable": slave_read, "accessMessageInMemoryMaxRatio": ratio})


def test_a_group_that_is_too_far_behind_may_not_consume_where_the_settings_say_so(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 3, body=b"x" * 1000)
        members = await joined(broker, "slow", "quick")
        await wire.ask(pull_request(0, group="slow"))
        await wire.ask(pull_request(2, group="quick"))
        part = broker.part(SlowConsumers)
        at_once(part.look())
        assert (await wire.ask(pull_request(0, group="slow"))).code == 0
        broker.state.settings.change({"disableConsumeIfConsumerReadSlowly": "true"})
        at_once(part.look())
        answer = await wire.ask(pull_request(0, group="slow"))
        assert answer.code == ResponseCode.NO_PERMISSION
        assert (await wire.ask(pull_request(2, group="quick"))).code == 0
        members.close()

    play(tmp_path, act, {"consumerFallbehindThreshold": "2000"})


@pytest.mark.parametrize("is_deleted", [False, True], ids=["changed", "deleted"])
def test_a_group_that_somebody_changes_while_it_is_looked_at_keeps_the_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_deleted: bool
) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        groups, reader = broker.state.groups, broker.state.store.reader
        await fill(wire, 3, body=b"x" * 1000)
        members = await joined(broker, "slow")
        await wire.ask(pull_request(0, group="slow"))
        behind = reader.bytes_behind

        def meanwhile(topic: str, queue_id: int, offset: int) -> int:
            if is_deleted:
                groups.delete("slow")
            else:
                groups.put(replace(groups.require("slow"), retry_max_times=7))
            return behind(topic, queue_id, offset)

        monkeypatch.setattr(reader, "bytes_behind", meanwhile)
        at_once(broker.part(SlowConsumers).look())
        group = groups.get("slow")
        assert (group is None) == is_deleted
        if group is not None:
            assert (group.retry_max_times, group.consume_enable) == (7, False)
        members.close()

    settings = {"consumerFallbehindThreshold": "2000", "disableConsumeIfConsumerReadSlowly": "true"}
    play(tmp_path, act, settings)


def test_the_template_of_new_topics_has_as_many_queues_as_the_settings_say(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        template = broker.state.topics.get("TBW102")
        assert template is not None
        assert template.write_queues == 3
        await wire.ask(send_request(topic="new"))
        made = broker.state.topics.get("new")
        assert made is not None
        assert made.write_queues == 3

    play(tmp_path, act, {"defaultTopicQueueNums": "3"})


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_there_is_a_topic_for_traces_where_the_settings_say_so(tmp_path: Path, enabled: str) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        assert (broker.state.topics.get("traces") is not None) == (enabled == "true")

    play(tmp_path, act, {"traceTopicEnable": enabled, "msgTraceTopicName": "traces"})
