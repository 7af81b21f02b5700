"""Questions of operators that are passed on to consumers, over the connections that the consumers have made."""

import gc
from pathlib import Path

import pytest

from bolide.broker.app import Broker
from bolide.broker.handlers import relay
from bolide.machines import questions
from bolide.model import java_json
from bolide.model.limits import MEMBER_OFFSETS_BYTES_MAX, RELAYS_OF_ONE_MAX
from bolide.model.offsets import MessageQueue
from bolide.model.response_code import ResponseCode
from bolide.model.topic import Subscription
from bolide.wire.bodies import admin as bodies
from bolide.wire.bodies.admin import group_offsets_pieces
from bolide.wire.bodies.group import ConsumerData, HeartbeatData
from bolide.wire.bodies.queue import queue_as_key
from bolide.wire.command import Command
from tests.unit.broker.stage import connect, send_request
from tests.unit.broker.test_send import play
from tests.unit.net.stage import Wire, eventually, next_turn
from tests.unit.net.turns import counted_by_turn


async def join(broker: Broker, client_id: str, topic: str = "T") -> Wire:
    """A consumer of the group `readers`."""
    wire = await connect(broker)
    consumer = ConsumerData("readers", subscriptions=(Subscription(topic, "*"),))
    wire.send(Command(34, {}, HeartbeatData(client_id, consumers=(consumer,)).encode(), opaque=1))
    assert (await next_of(wire, 0)).opaque == 1
    return wire


async def next_of(wire: Wire, code: int) -> Command:
    """The next command of this code; others are notices."""
    while (command := await wire.next()).code != code:
        pass
    return command


def running_info(client_id: str = "one", group: str = "readers", opaque: int = 5) -> Command:
    fields = {"consumerGroup": group, "clientId": client_id, "jstackEnable": "true"}
    return Command(307, fields, opaque=opaque)


def test_a_consumer_s_own_answer_reaches_who_asked(tmp_path: Path) -> None:
    """AD-05"""

    async def act(broker: Broker, admin: Wire) -> None:
        consumer = await join(broker, "one")
        admin.send(running_info())
        asked = await next_of(consumer, 307)
        assert asked.fields["jstackEnable"] == "true"
        assert not asked.is_one_way
        consumer.send(asked.answer(body=b'{"jstack":"..."}', remark="fine"))
        answer = await admin.next()
        assert (answer.opaque, answer.code, answer.body) == (5, 0, b'{"jstack":"..."}')
        assert answer.remark == "fine"

    play(tmp_path, act)


def test_a_consumer_s_error_is_passed_on_too(tmp_path: Path) -> None:

    async def act(broker: Broker, admin: Wire) -> None:
        consumer = await join(broker, "one")
        admin.send(running_info())
        asked = await next_of(consumer, 307)
        consumer.send(asked.answer(1, remark="not me"))
        answer = await admin.next()
        assert (answer.code, answer.remark) == (1, "not me")

    play(tmp_path, act)


def test_who_is_not_there_cannot_be_asked(tmp_path: Path) -> None:

    async def act(broker: Broker, admin: Wire) -> None:
        answer = await admin.ask(running_info())
        assert answer.code == ResponseCode.CONSUMER_NOT_ONLINE
        await join(broker, "one")
        answer = await admin.ask(running_info("two"))
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert "'two'" in (answer.remark or "")

    play(tmp_path, act)


def test_a_consumer_that_does_not_answer_costs_its_own_places_and_stays_connected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "PATIENCE_MS", 50)

    async def act(broker: Broker, admin: Wire) -> None:
        silent, lively = await join(broker, "silent"), await join(broker, "lively")
        for number in range(RELAYS_OF_ONE_MAX + 1):
            admin.send(running_info("silent", opaque=number))
        answer = await admin.next()
        assert (answer.opaque, answer.code) == (RELAYS_OF_ONE_MAX, ResponseCode.SYSTEM_BUSY)
        admin.send(running_info("lively", opaque=99))
        lively.send((await next_of(lively, 307)).answer())
        answers = {(answer := await admin.next()).opaque: answer.code for _ in range(RELAYS_OF_ONE_MAX + 1)}
        assert answers.pop(99) == 0
        assert set(answers.values()) == {ResponseCode.CONSUME_MSG_TIMEOUT}
        monkeypatch.setattr(relay, "PATIENCE_MS", 10_000)
        for _ in range(RELAYS_OF_ONE_MAX):
            await next_of(silent, 307)
        admin.send(running_info("silent", opaque=7))
        asked = await next_of(silent, 307)
        silent.send(asked.answer())
        assert (await admin.next()).code == 0, "its places are free again"

    play(tmp_path, act)


def test_a_consumer_that_leaves_is_no_longer_waited_for(tmp_path: Path) -> None:

    async def act(broker: Broker, admin: Wire) -> None:
        consumer = await join(broker, "one")
        admin.send(running_info())
        await next_of(consumer, 307)
        consumer.close()
        answer = await admin.next()
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert "lost" in (answer.remark or "")

    play(tmp_path, act)


def test_one_message_is_given_to_one_consumer(tmp_path: Path) -> None:
    """AD-05: with its record, and with flags that the original adds."""

    async def act(broker: Broker, admin: Wire) -> None:
        sent = await admin.ask(send_request(b"hello"))
        consumer = await join(broker, "one")
        fields = {"consumerGroup": "readers", "clientId": "one", "msgId": sent.fields["msgId"], "topic": "T"}
        more = {f"more{number}": "x" for number in range(100)}  # a consumer may not take as many
        admin.send(Command(309, {**more, **fields}, opaque=6))
        asked = await next_of(consumer, 309)
        assert b"hello" in asked.body
        assert len(asked.fields) < 10
        assert asked.fields["brokerName"] == broker.state.identity.name
        assert asked.fields["topicSysFlag"] == asked.fields["groupSysFlag"] == "0"
        consumer.send(asked.answer(body=b"{}"))
        assert (await admin.next()).body == b"{}"

    play(tmp_path, act)


@pytest.mark.parametrize(
    ("message_id", "code"),
    [
        (None, ResponseCode.INVALID_PARAMETER),
        ("", ResponseCode.INVALID_PARAMETER),
        ("nonsense", ResponseCode.INVALID_PARAMETER),
        ("7F00000100002A9F00000000000FFFFF", ResponseCode.QUERY_NOT_FOUND),
        ("7F00000100002A9FFFFFFFFFFFFFFFFF", ResponseCode.QUERY_NOT_FOUND),
    ],
)
def test_a_message_that_is_not_there_bothers_nobody(
    tmp_path: Path, message_id: str | None, code: ResponseCode
) -> None:

    async def act(broker: Broker, admin: Wire) -> None:
        await join(broker, "one")
        fields = {"consumerGroup": "readers", "clientId": "one"}
        if message_id is not None:
            fields["msgId"] = message_id
        assert (await admin.ask(Command(309, fields))).code == code

    play(tmp_path, act)


def test_every_member_tells_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """223 asks each by 221; who is silent, or answers nonsense, is left out."""
    monkeypatch.setattr(relay, "STATUS_MS", 200)

    async def act(broker: Broker, admin: Wire) -> None:
        members = {name: await join(broker, name) for name in ("one", "two", "mad", "silent")}
        admin.send(Command(223, {"topic": "T", "group": "readers"}, opaque=9))
        for at, name in enumerate(("one", "two")):
            asked = await next_of(members[name], 221)
            key = queue_as_key(MessageQueue("T", "b", at))
            members[name].send(asked.answer(body=java_json.dumps({"messageQueueTable": {key: 10 + at}})))
        members["mad"].send((await next_of(members["mad"], 221)).answer(body=b"nonsense"))
        answer = await admin.next()
        told = {"one": {MessageQueue("T", "b", 0): 10}, "two": {MessageQueue("T", "b", 1): 11}}
        assert answer.body == b"".join(group_offsets_pieces(told))
        assert answer.remark == "answered nonsense: mad; silent for 0 s: silent"

    play(tmp_path, act)


def state_of(queues: int, *, plain: bool = False) -> bytes:
    """How far a member is in so many queues, as Java writes it or in plain JSON."""
    keys = [queue_as_key(MessageQueue("T", "b", number)) for number in range(queues)]
    return java_json.dumps({"messageQueueTable": dict.fromkeys(map(str, keys) if plain else keys, 7)})


def test_a_member_that_tells_too_much_is_left_out_and_named(tmp_path: Path) -> None:
    """Nothing of it is read: reading is what costs."""

    async def act(broker: Broker, admin: Wire) -> None:
        brief, greedy = await join(broker, "brief"), await join(broker, "greedy")
        admin.send(Command(223, {"topic": "T", "group": "readers"}))
        too_much = state_of(MEMBER_OFFSETS_BYTES_MAX // 50, plain=True)
        assert len(too_much) > MEMBER_OFFSETS_BYTES_MAX
        with counted_by_turn(relay, "decode_member_offsets") as read:
            greedy.send((await next_of(greedy, 221)).answer(body=too_much))
            brief.send((await next_of(brief, 221)).answer(body=state_of(1)))
            answer = await admin.next()
        assert answer.body == b"".join(group_offsets_pieces({"brief": {MessageQueue("T", "b", 0): 7}}))
        assert (answer.code, answer.remark) == (0, "answered too much: greedy")
        assert read.total == 1

    play(tmp_path, act)


def test_nothing_is_kept_of_what_was_too_much_while_others_are_silent(tmp_path: Path) -> None:
    body = state_of(MEMBER_OFFSETS_BYTES_MAX // 40, plain=True)

    async def act(broker: Broker, admin: Wire) -> None:
        greedy, silent = await join(broker, "greedy"), await join(broker, "silent")
        admin.send(Command(223, {"topic": "T", "group": "readers"}))
        greedy.send((await next_of(greedy, 221)).answer(body=body))
        waiting = broker.part(relay.Relay)._questions
        await eventually(lambda: waiting.count == 1)
        await next_turn()
        kept = [one for one in gc.get_objects() if isinstance(one, Command) and one.body == body]
        assert not kept
        silent.close()
        assert (await admin.next()).remark == "answered too much: greedy; gone: silent"

    play(tmp_path, act)


def test_all_members_together_tell_no_more_than_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = state_of(100)
    monkeypatch.setattr(relay, "MEMBERS_OFFSETS_BYTES_MAX", 8 * len(body))  # three eighths are for one host

    async def act(broker: Broker, admin: Wire) -> None:
        members = [await join(broker, f"m{number}") for number in range(12)]
        for _ in range(2):  # what was kept for the first question is given back
            admin.send(Command(223, {"topic": "T", "group": "readers"}))
            for member in members:
                member.send((await next_of(member, 221)).answer(body=body))
            answer = await admin.next()
            assert len(java_json.loads(answer.body, dialect_length_max=None)["consumerTable"]) == 3
            assert "and 1 more" in (answer.remark or "")

    play(tmp_path, act)


def test_what_members_tell_is_read_a_slice_per_turn_however_many_answer(tmp_path: Path) -> None:

    async def act(broker: Broker, admin: Wire) -> None:
        members = [await join(broker, f"m{number}") for number in range(8)]
        admin.send(Command(223, {"topic": "T", "group": "readers"}))
        body, asked = state_of(300), [await next_of(member, 221) for member in members]
        with counted_by_turn(bodies, "queue_from_key") as read:
            for member, question in zip(members, asked, strict=True):
                member.send(question.answer(body=body))
            answer = await admin.next()
        assert len(java_json.loads(answer.body, dialect_length_max=None)["consumerTable"]) == 8
        assert read.total == 8 * 300
        assert read.most <= bodies.QUEUES_PER_STEP

    play(tmp_path, act)


@pytest.mark.parametrize("code", [307, 309])
def test_an_answer_that_is_too_long_is_not_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(relay, "RELAY_ANSWER_BYTES_MAX", 1000)

    async def act(broker: Broker, admin: Wire) -> None:
        sent = await admin.ask(send_request(b"hello"))
        consumer = await join(broker, "one")
        fields = {"consumerGroup": "readers", "clientId": "one", "msgId": sent.fields["msgId"]}
        for length, expected in ((1000, ResponseCode.SUCCESS), (1001, ResponseCode.SYSTEM_ERROR)):
            admin.send(Command(code, fields))
            consumer.send((await next_of(consumer, code)).answer(body=b"x" * length))
            answer = await admin.next()
            assert answer.code == expected
        assert "'one' has answered with 1001 bytes; 1000 are taken" in (answer.remark or "")

    play(tmp_path, act)


def test_one_who_asks_consumers_that_are_silent_leaves_room_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "RELAYS_OF_ASKER_MAX", 16)
    monkeypatch.setattr(questions, "RELAYS_MAX", 64)

    async def act(broker: Broker, admin: Wire) -> None:
        greedy, lively = await connect(broker), await join(broker, "lively")
        mute = [await join(broker, f"mute{at}") for at in range(4)]
        for at in range(len(mute)):
            greedy.send(*(running_info(f"mute{at}", opaque=8 * at + number) for number in range(8)))
        refused = [await greedy.next() for _ in range(16)]
        assert {answer.code for answer in refused} == {ResponseCode.SYSTEM_BUSY}
        admin.send(running_info("lively"))
        lively.send((await next_of(lively, 307)).answer())
        assert (await admin.next()).code == 0

    play(tmp_path, act)


def test_one_member_alone_can_be_asked_how_far_it_is(tmp_path: Path) -> None:

    async def act(broker: Broker, admin: Wire) -> None:
        one, _ = await join(broker, "one"), await join(broker, "two")
        admin.send(Command(223, {"topic": "T", "group": "readers", "clientAddr": "one"}))
        one.send((await next_of(one, 221)).answer(body=b"{}"))
        assert (await admin.next()).body == b"".join(group_offsets_pieces({"one": {}}))
        assert (await admin.ask(Command(223, {"topic": "T", "group": "nobody"}))).code == 206

    play(tmp_path, act)


def test_producers_are_listed_with_their_groups(tmp_path: Path) -> None:

    async def act(broker: Broker, admin: Wire) -> None:
        producer = await connect(broker)
        beat = HeartbeatData("maker", producers=("makers",)).encode()
        assert (await producer.ask(Command(34, {}, beat))).code == 0
        told = java_json.loads((await admin.ask(Command(328, {}))).body)["data"]
        ((client,),) = told.values()
        assert list(told) == ["makers"]
        assert client["clientId"] == "maker"
        assert client["remoteIP"].startswith("/127.0.0.1:")
        assert abs(client["lastUpdateTimestamp"] - broker.state.clock.now_ms()) < 60_000

    play(tmp_path, act)


def test_what_a_group_wants_of_a_topic_is_told(tmp_path: Path) -> None:

    async def act(broker: Broker, admin: Wire) -> None:
        await join(broker, "one")
        told = java_json.loads((await admin.ask(Command(345, {"group": "readers", "topic": "T"}))).body)
        assert told["subscriptionData"]["subString"] == "*"
        told = java_json.loads((await admin.ask(Command(345, {"group": "nobody", "topic": "T"}))).body)
        assert "subscriptionData" not in told

    play(tmp_path, act)


def test_a_request_that_nobody_serves_is_refused_with_the_reason(tmp_path: Path) -> None:

    async def act(broker: Broker, admin: Wire) -> None:
        answer = await admin.ask(Command(200050, {}))
        assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
        assert "POP_MESSAGE" in (answer.remark or "")
        assert "no POP consumption" in (answer.remark or "")

    play(tmp_path, act)
