"""Messages that come back: sent back by their consumer (36), or sent once more to the retry topic."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bolide.broker.app import Broker
from bolide.model.errors import TableFull
from bolide.model.offsets import MessageQueue
from bolide.model.topic import GroupConfig, TopicConfig
from bolide.record.decode import decode_messages
from bolide.record.stored import StoredMessage
from bolide.store.new_message import NewMessage
from bolide.wire.bodies.lock import LockRequest
from bolide.wire.command import Command
from bolide.wire.headers.retry import SendBack
from tests.unit.broker.handlers.desk import SetClock
from tests.unit.broker.stage import batch_of, properties_of, pull_request, send_request, serving
from tests.unit.net.stage import Wire

Act = Callable[[Broker, Wire], Awaitable[None]]
VERSION = 479
BORN = b"\x0a\x00\x00\x09\x00\x00\x10\x00"


def play(root: Path, act: Act, settings: Mapping[str, str] | None = None, **parts: Any) -> None:
    async def main() -> None:
        async with serving(root, settings, **parts) as (broker, wire):
            broker.state.topics.put(TopicConfig("orders", 4, 4))
            await act(broker, wire)

    asyncio.run(main())


def failed(broker: Broker, *, times: int = 0, **changes: Any) -> int:
    """A message that somebody could not consume; its place in the log."""
    message = NewMessage("orders", 2, b"body", b"", 7, 0, 1_600_000_000_000, BORN, times)
    pairs = properties_of(1, TAGS="red", KEYS="k1").encode()
    (stored,) = broker.state.store.append([message._replace(**{"properties": pairs, **changes})])
    return int(stored.log_offset)


def sent_back(offset: int, level: int = 0, *, version: int = VERSION, **changes: Any) -> Command:
    header = SendBack(offset, "billing", level, **changes)
    return Command(36, header.encode(), opaque=9, language="JAVA", version=version)


def sent_again(times: int, times_max: int | None = 16, **changes: Any) -> Command:
    """What a client sends when it cannot send back."""
    text = properties_of(3, RETRY_TOPIC="orders", ORIGIN_MESSAGE_ID="0A", **changes.pop("pairs", {}))
    request = send_request(
        topic="%RETRY%billing",
        properties=text,
        reconsume_times=times,
        max_reconsume_times=times_max,
        **changes,
    )
    return replace(request, version=VERSION)


def last(broker: Broker) -> StoredMessage:
    """What was stored last, wherever it waits, under the topic it is for."""
    record = broker.state.store.reader.read_at(broker.state.store.log.last_record)
    assert record is not None
    (message,) = decode_messages(record, "broker-a")
    if message.topic == "SCHEDULE_TOPIC_XXXX":
        own = message.properties
        return message.replaced(topic=own["REAL_TOPIC"], queue_id=int(own["REAL_QID"]))
    return message


async def lock(wire: Wire, code: int = 41) -> None:
    body = LockRequest("billing", "c", (MessageQueue("orders", "broker-a", 0),)).encode()
    assert (await wire.ask(Command(code, {}, body))).code == 0


def test_a_message_sent_back_goes_to_the_retry_topic_with_the_next_level(tmp_path: Path) -> None:
    """RY-01, RY-02."""

    async def act(broker: Broker, wire: Wire) -> None:
        offset = failed(broker)
        answer = await wire.ask(sent_back(offset))
        assert (answer.code, answer.opaque, answer.fields) == (0, 9, {})
        one = last(broker)
        assert (one.topic, one.body, one.flag, one.reconsume_times) == ("%RETRY%billing", b"body", 7, 1)
        assert (one.born_timestamp_ms, one.born_host) == (1_600_000_000_000, "10.0.0.9:4096")
        assert (one.tags, one.keys, one.message_id) == ("red", ("k1",), f"7F0000010000{1:020X}")
        pairs = one.properties
        assert (pairs["RETRY_TOPIC"], pairs["DELAY"], pairs["WAIT"]) == ("orders", "3", "false")
        first_id = pairs["ORIGIN_MESSAGE_ID"]
        assert first_id.endswith(f"{offset:016X}")
        again = failed(broker, topic="%RETRY%billing", queue_id=0, times=1, properties=_raw(broker))
        assert (await wire.ask(sent_back(again))).code == 0
        pairs = last(broker).properties
        assert (pairs["RETRY_TOPIC"], pairs["DELAY"]) == ("orders", "4")
        assert pairs["ORIGIN_MESSAGE_ID"] == first_id
        assert last(broker).reconsume_times == 2

    play(tmp_path, act)


def test_a_table_that_is_full_of_topics_has_room_for_those_of_failed_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of groups that there are: nobody fills that room with names alone."""
    monkeypatch.setattr("bolide.store.tables.topics.TOPICS_MAX", 64)

    async def act(broker: Broker, wire: Wire) -> None:
        for number in range(64):
            await wire.ask(send_request(topic=f"T{number}"))
        with pytest.raises(TableFull):
            broker.state.topics.put(TopicConfig("%RETRY%made-up"))
        assert len(broker.state.topics) == 60
        broker.state.groups.put(GroupConfig("billing", retry_max_times=1))
        offset = failed(broker)
        assert (await wire.ask(sent_back(offset))).code == 0
        assert (await wire.ask(sent_back(failed(broker, times=1)))).code == 0
        assert {"%RETRY%billing", "%DLQ%billing"} <= {config.name for config in broker.state.topics}

    play(tmp_path, act)


def _raw(broker: Broker) -> bytes:
    """The properties of what was stored last."""
    record = broker.state.store.reader.read_at(broker.state.store.log.last_record)
    assert record is not None
    return NewMessage.of_record(record).properties


@pytest.mark.parametrize(
    ("times", "level", "changes", "goes_to"),
    [
        (15, 0, {}, "18"),
        (16, 0, {}, None),
        (0, 5, {}, "5"),
        (0, -1, {}, None),
        (2, 0, {"max_reconsume_times": 2}, None),
        (2, 0, {"max_reconsume_times": 2, "version": 120}, "5"),
        (16, 0, {"max_reconsume_times": 20}, "18"),  # there is no higher one
        (0, 0, {"max_reconsume_times": 0}, None),
    ],
)
def test_the_limit_and_the_asked_level_decide(
    tmp_path: Path, times: int, level: int, changes: dict[str, int], goes_to: str | None
) -> None:
    """RY-02, RY-03."""

    async def act(broker: Broker, wire: Wire) -> None:
        offset = failed(broker, times=times)
        assert (await wire.ask(sent_back(offset, level, **changes))).code == 0
        one = last(broker)
        assert one.reconsume_times == times + 1
        if goes_to is None:
            assert (one.topic, one.queue_id, one.properties["DELAY"]) == ("%DLQ%billing", 0, "0")
        else:
            assert (one.topic, one.properties["DELAY"]) == ("%RETRY%billing", goes_to)

    play(tmp_path, act)


def test_a_message_that_counts_less_than_no_retry_comes_again_after_a_delay_and_counts_from_there(
    tmp_path: Path,
) -> None:
    """Such a record came again at once, two thousand million times."""

    async def act(broker: Broker, wire: Wire) -> None:
        assert (await wire.ask(sent_back(failed(broker, times=-(2**31))))).code == 0
        one = last(broker)
        assert (one.topic, one.properties["DELAY"], one.reconsume_times) == ("%RETRY%billing", "3", 1)
        assert (await wire.ask(sent_back(failed(broker, times=-1), max_reconsume_times=0))).code == 0
        assert (last(broker).topic, last(broker).reconsume_times) == ("%DLQ%billing", 1)

    play(tmp_path, act)


def test_dead_letters_have_one_queue_that_everybody_may_read(tmp_path: Path) -> None:
    """RY-03."""

    async def act(broker: Broker, wire: Wire) -> None:
        for _ in range(3):
            assert (await wire.ask(sent_back(failed(broker), -1))).code == 0
        topic = broker.state.topics.require("%DLQ%billing")
        assert (topic.read_queues, topic.write_queues, topic.perm) == (1, 1, 6)
        answer = await wire.ask(pull_request(topic="%DLQ%billing"))
        dead = decode_messages(answer.body, "broker-a")
        assert [(one.body, one.tags, one.reconsume_times) for one in dead] == [(b"body", "red", 1)] * 3

    play(tmp_path, act)


def test_the_groups_own_limit_and_queues_govern_its_retries(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        broker.state.groups.put(GroupConfig("billing", retry_max_times=1, retry_queues=3))
        seen = set()
        for _ in range(40):
            assert (await wire.ask(sent_back(failed(broker)))).code == 0
            seen.add(last(broker).queue_id)
        assert seen == {0, 1, 2}
        assert broker.state.topics.require("%RETRY%billing").queues == 3
        assert (await wire.ask(sent_back(failed(broker, times=1)))).code == 0
        assert last(broker).topic == "%DLQ%billing"
        broker.state.groups.put(GroupConfig("billing", retry_queues=8))
        for _ in range(20):  # a queue that nobody could read would be the end of the message
            assert (await wire.ask(sent_back(failed(broker)))).code == 0
            assert last(broker).queue_id < 3

    play(tmp_path, act)


def test_a_group_without_retry_queues_drops_what_fails(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        broker.state.groups.put(GroupConfig("billing", retry_queues=0))
        offset = failed(broker)
        assert (await wire.ask(sent_back(offset))).code == 0
        assert broker.state.store.log.last_record == offset
        assert "%RETRY%billing" not in broker.state.topics

    play(tmp_path, act)


@pytest.mark.parametrize("offset", [-1, 1, 10**9, 2**63 - 1])
def test_a_place_without_a_message_is_an_error_and_makes_no_topic(tmp_path: Path, offset: int) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        failed(broker)
        answer = await wire.ask(sent_back(offset))
        assert answer.code == 1
        assert f"position {offset} " in (answer.remark or "")
        assert "%RETRY%billing" not in broker.state.topics

    play(tmp_path, act)


@pytest.mark.parametrize("topic", ["SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "rmq_sys_wheel_timer"])
def test_what_still_waits_cannot_be_fetched_by_sending_it_back(tmp_path: Path, topic: str) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        offset = failed(broker, topic=topic)
        assert (await wire.ask(sent_back(offset, -1))).code == 29
        assert broker.state.store.log.last_record == offset

    play(tmp_path, act)


def test_who_may_not_send_back_hears_why_and_nothing_is_stored(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        offset = failed(broker)

        async def refused(code: int, word: str, **changes: Any) -> None:
            answer = await wire.ask(sent_back(offset, **changes))
            assert (answer.code, word in (answer.remark or "")) == (code, True), answer.remark
            assert broker.state.store.log.last_record == offset

        broker.state.settings.change({"autoCreateSubscriptionGroup": "false"})
        await refused(26, "billing")
        broker.state.groups.put(GroupConfig("billing"))
        broker.state.settings.change({"brokerPermission": "4"})
        await refused(16, "takes no messages")
        broker.state.settings.change({"brokerPermission": "6"})
        broker.state.topics.put(TopicConfig("%RETRY%billing", 1, 1, perm=4))
        await refused(16, "%RETRY%billing")
        request = Command(36, {"group": "billing", "delayLevel": "0"})
        assert (await wire.ask(request)).code == 29

    play(tmp_path, act)


def test_what_made_a_message_wait_before_does_not_make_it_wait_again(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        pairs = properties_of(1, DELAY="18", TIMER_DELIVER_MS="99999999999999", TRAN_MSG="true").encode()
        assert (await wire.ask(sent_back(failed(broker, properties=pairs), 2))).code == 0
        left = last(broker).properties
        assert left["DELAY"] == "2"
        assert {"TIMER_DELIVER_MS", "TRAN_MSG"}.isdisjoint(left)

    play(tmp_path, act)


def test_a_dead_letter_tells_when_and_where_each_attempt_failed(tmp_path: Path) -> None:
    clock = SetClock()

    async def act(broker: Broker, wire: Wire) -> None:
        assert (await wire.ask(sent_back(failed(broker)))).code == 0
        clock.ms += 10_500
        again = failed(broker, topic="%RETRY%billing", queue_id=0, times=1, properties=_raw(broker))
        assert (await wire.ask(sent_back(again, max_reconsume_times=1))).code == 0
        host = "{}:{}".format(*wire.writer.get_extra_info("sockname"))
        assert last(broker).topic == "%DLQ%billing"
        assert last(broker).properties["BOLIDE_ATTEMPTS"] == (
            f"2023-11-14T22:13:20.000Z {host} 3; 2023-11-14T22:13:30.500Z {host} dead"
        )

    play(tmp_path, act, clock=clock)


def test_the_history_gives_way_to_the_applications_own_properties(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        def with_filler(size: int) -> bytes:
            pairs = properties_of(1, filler="x").encode()
            return pairs.replace(b"filler\x01x", b"filler\x01" + b"x" * (size - len(pairs) + 1))

        assert (await wire.ask(sent_back(failed(broker, properties=with_filler(32_300)), -1))).code == 0
        assert "BOLIDE_ATTEMPTS" not in last(broker).properties
        assert last(broker).properties["RETRY_TOPIC"] == "orders"
        assert len(last(broker).properties["filler"]) > 32_000

    play(tmp_path, act)


@pytest.mark.parametrize(
    ("times", "times_max", "topic"),
    [(0, 16, "%RETRY%billing"), (2, 2, "%RETRY%billing"), (3, 2, "%DLQ%billing"), (17, None, "%DLQ%billing")],
)
def test_a_client_that_cannot_send_back_sends_to_the_retry_topic_itself(
    tmp_path: Path, times: int, times_max: int | None, topic: str
) -> None:
    """RY-05."""

    async def act(broker: Broker, wire: Wire) -> None:
        answer = await wire.ask(sent_again(times, times_max))
        assert (answer.code, answer.fields["queueId"]) == (0, "0")
        one = last(broker)
        assert (one.topic, one.reconsume_times) == (topic, times)
        assert (one.properties["RETRY_TOPIC"], one.properties["ORIGIN_MESSAGE_ID"]) == ("orders", "0A")
        assert ("BOLIDE_ATTEMPTS" in one.properties) == (times > 0)
        if topic == "%DLQ%billing":
            assert broker.state.topics.require(topic).queues == 1
            assert one.properties["DELAY"] == "0"

    play(tmp_path, act)


@pytest.mark.parametrize("sys_flag", [0, 4])
@pytest.mark.parametrize(
    ("times", "delay", "topic"),
    [(1, "3", "%RETRY%billing"), (1, "0", "%RETRY%billing"), (3, "3", "%DLQ%billing")],
)
def test_what_made_a_message_wait_before_is_over_when_its_client_sends_it_itself(
    tmp_path: Path, sys_flag: int, times: int, delay: str, topic: str
) -> None:
    """Clients before 4.6.1 leave in it that it was a half message.  Nobody would commit it."""

    async def act(broker: Broker, wire: Wire) -> None:
        was = {"TRAN_MSG": "true", "PGROUP": "makers", "TIMER_DELAY_SEC": "60", "DELAY": delay}
        assert (await wire.ask(sent_again(times, 2, pairs=was, sys_flag=sys_flag))).code == 0
        one = last(broker)
        assert (one.topic, one.sys_flag, one.properties["PGROUP"]) == (topic, 0, "makers")
        assert one.properties["DELAY"] == (delay if topic == "%RETRY%billing" else "0")
        assert {"TRAN_MSG", "TIMER_DELAY_SEC"}.isdisjoint(one.properties)

    play(tmp_path, act)


def test_what_an_ordered_group_gives_up_is_dead_while_any_of_its_locks_lives(tmp_path: Path) -> None:
    """OR-05, and the original's rule since 5.0: its own retries are over when it sends a message."""
    clock = SetClock()

    async def act(broker: Broker, wire: Wire) -> None:
        await lock(wire)
        clock.ms += 60_000
        assert (await wire.ask(sent_again(1, 16, pairs={"DELAY": "3"}))).code == 0
        assert (last(broker).topic, last(broker).properties["DELAY"]) == ("%DLQ%billing", "0")
        clock.ms += 1
        assert (await wire.ask(sent_again(1))).code == 0
        assert last(broker).topic == "%RETRY%billing"
        await lock(wire)
        await lock(wire, 42)
        assert (await wire.ask(sent_again(1))).code == 0
        assert last(broker).topic == "%RETRY%billing"

    play(tmp_path, act, clock=clock)


def test_what_somebody_sends_anew_to_an_ordered_group_is_no_dead_letter(tmp_path: Path) -> None:
    """A replay of dead letters while members hold locks; Apache 5.x makes a dead letter of it."""

    async def act(broker: Broker, wire: Wire) -> None:
        await lock(wire)
        assert (await wire.ask(sent_again(0, None))).code == 0
        assert last(broker).topic == "%RETRY%billing"
        assert (await wire.ask(sent_again(0, 0))).code == 0
        assert last(broker).topic == "%DLQ%billing", "what a member of 4.9 gives up at once"

    play(tmp_path, act)


def test_a_retry_topic_takes_no_batches_and_no_messages_of_unknown_groups(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        batch = send_request(batch_of(b"a", b"b"), topic="%RETRY%billing", batch=True, code=320)
        assert (await wire.ask(batch)).code == 13
        broker.state.settings.change({"autoCreateSubscriptionGroup": "false"})
        broker.state.groups.delete("billing")
        assert (await wire.ask(sent_again(1))).code == 26

    play(tmp_path, act)


def test_a_message_sent_back_is_told_of_when_it_is_synced(tmp_path: Path) -> None:
    """The consumer goes on behind the message then: what it was told of may not be lost with the power."""

    async def act(broker: Broker, wire: Wire) -> None:
        for level in (0, -1, 0, -1):  # new topics and known ones
            assert (await wire.ask(sent_back(failed(broker), level))).code == 0
            assert broker.state.store.marks.durable > broker.state.store.log.last_record

    play(tmp_path, act, {"flushDiskType": "SYNC_FLUSH"})


@pytest.mark.parametrize("name", ["RETRY_TOPIC", "BOLIDE_ATTEMPTS", "own"])
def test_a_property_with_a_separator_in_its_value_keeps_no_message_from_coming_again(
    tmp_path: Path, name: str
) -> None:
    """Its producer wrote it; the group would stay before that message for ever."""

    async def act(broker: Broker, wire: Wire) -> None:
        pairs = properties_of(1).encode() + f"{name}\x01a\x01b\x02".encode()
        offset = failed(broker, properties=pairs)
        assert (await wire.ask(sent_back(offset))).code == 0
        assert last(broker).topic == "%RETRY%billing"
        request = sent_again(1, pairs={"DELAY": "3"})
        request = replace(
            request, fields={**request.fields, "i": request.fields["i"] + f"{name}\x01a\x01b\x02"}
        )
        assert (await wire.ask(request)).code == 0
        assert last(broker).topic == "%RETRY%billing"

    play(tmp_path, act)
