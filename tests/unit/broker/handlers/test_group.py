"""Heartbeats, members, locks and the table of groups."""

from dataclasses import replace

import pytest

from bolide.broker.handlers import client
from bolide.broker.handlers.client import Clients
from bolide.broker.handlers.lock import Locks
from bolide.broker.notices import TOLD_PER_ROUND
from bolide.machines import locks
from bolide.model import java_json
from bolide.model.errors import (
    ConsumerNotOnline,
    GroupNotFound,
    InvalidRequest,
    PermissionDenied,
    RequestError,
    SubscriptionMalformed,
)
from bolide.model.json_pieces import PIECE_ENTRIES
from bolide.model.limits import HEARTBEAT_NEW_GROUPS_MAX, LOCK_QUEUES_MAX
from bolide.model.names import SYSTEM_GROUPS
from bolide.model.offsets import MessageQueue
from bolide.model.topic import GroupConfig, Subscription, TopicConfig
from bolide.store.tables import topics
from bolide.wire.bodies.connection import GroupConnections, decode_producer_connections
from bolide.wire.bodies.group import (
    ClientCheck,
    ConsumerData,
    HeartbeatData,
    MessageModel,
    decode_member_ids,
)
from bolide.wire.bodies.lock import LockRequest, decode_locked
from bolide.wire.command import Command
from tests.unit.broker.handlers.desk import Desk, QuietLink
from tests.unit.net.stage import eventually
from tests.unit.net.turns import Turns, counted_by_turn

Q0 = MessageQueue("orders", "broker-a", 0)


def beat(
    desk: Desk,
    by: str,
    group: str = "billing",
    model: MessageModel = MessageModel.CLUSTERING,
    topic: str = "orders",
) -> None:
    own = Subscription.parse(f"%RETRY%{group}", "*", 1)
    wanted = (Subscription.parse(topic, "A", 1), *((own,) if model is MessageModel.CLUSTERING else ()))
    consumer = ConsumerData(group, message_model=model, subscriptions=wanted)
    assert desk.ask(34, HeartbeatData(f"id-{by}", ("makers",), (consumer,)).encode(), by=by).code == 0
    desk.settle()


def members(desk: Desk, group: str = "billing") -> list[str]:
    return decode_member_ids(desk.ask(38, consumerGroup=group).body)


def lock(desk: Desk, client_id: str, *queues: MessageQueue) -> list[MessageQueue]:
    return decode_locked(desk.ask(41, LockRequest("billing", client_id, queues).encode()).body)


def test_a_consumers_heartbeat_creates_its_group_and_its_retry_topic(desk: Desk) -> None:
    """CM-01."""
    beat(desk, "a")
    assert members(desk) == ["id-a"]
    assert desk.groups.get("billing") == GroupConfig("billing")
    assert desk.topics.get("%RETRY%billing") == TopicConfig("%RETRY%billing", 1, 1)


def test_a_message_of_a_retry_topic_that_a_heartbeat_made_is_not_acknowledged_before_the_file_has_it(
    desk: Desk,
) -> None:
    """Or a kill would leave messages of a topic that nobody knows."""
    own = Subscription.parse("%RETRY%billing", "*", 1)

    async def act() -> None:
        heartbeat = HeartbeatData("id", (), (ConsumerData("billing", subscriptions=(own,)),))
        await desk.asked(34, heartbeat.encode())
        assert desk.state.new_topics.is_unwritten("%RETRY%billing")
        await desk.state.new_topics.known()
        await eventually(lambda: not desk.state.new_topics.is_unwritten("%RETRY%billing"))

    desk.run(act())


def test_a_group_that_does_not_want_its_retry_topic_gets_none(desk: Desk) -> None:
    """Consumers that broadcast, or pull by themselves: their failed messages go nowhere."""
    beat(desk, "a", model=MessageModel.BROADCASTING)
    assert members(desk) == ["id-a"]
    assert "%RETRY%billing" not in desk.topics


def test_groups_that_cannot_be_are_one_line_in_the_log_however_often_they_come(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    bad = tuple(ConsumerData(f"no/{number}") for number in range(64))
    for port in range(20):
        desk.ask(34, HeartbeatData("id", (), bad).encode(), by=f"10.6.6.6:{port}")
    desk.ask(34, HeartbeatData("id", (), bad[:1]).encode(), by="10.0.0.1:5000")
    said = [line for line in caplog.messages if "does not join" in line]
    assert [line.partition(" does")[0] for line in said] == ["10.6.6.6:0", "10.0.0.1:5000"]
    assert "19 lines" in said[1]


def test_a_connection_makes_so_many_retry_topics_and_no_more(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "RETRY_TOPICS_PER_CONNECTION_MAX", 3)
    before = len(desk.topics)
    for number in range(9):
        beat(desk, "a", f"g{number}")
        beat(desk, "a", f"g{number}")
    assert len(desk.topics) == before + 3
    assert members(desk, "g8") == ["id-a"]  # it is a member like any other
    beat(desk, "b", "g8")
    assert "%RETRY%g8" in desk.topics
    desk.lose("a")
    beat(desk, "a", "g7")
    assert "%RETRY%g7" in desk.topics


def test_a_full_table_of_topics_keeps_nobody_from_consuming(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topics, "TOPICS_MAX", 1)
    beat(desk, "a")
    assert members(desk) == ["id-a"]
    assert "%RETRY%billing" not in desk.topics


def test_a_second_member_is_announced_to_both(desk: Desk) -> None:
    """CM-03."""
    beat(desk, "a")
    beat(desk, "b")
    assert desk.link("a").notices == ["billing", "billing"]
    assert desk.link("b").notices == ["billing"]


def test_a_heartbeat_of_a_closed_connection_registers_nothing(desk: Desk) -> None:
    desk.link("a").is_open = False
    beat(desk, "a")
    assert desk.clients.group("billing") is None
    assert "billing" not in desk.groups


def test_groups_that_may_not_be_created_stay_out_and_the_others_come_in(desk: Desk) -> None:
    desk.change(autoCreateSubscriptionGroup="false")
    desk.groups.put(GroupConfig("known"))
    consumers = tuple(ConsumerData(name) for name in ("unknown", "known", "bad name"))
    assert desk.ask(34, HeartbeatData("c", (), consumers).encode()).code == 0
    assert members(desk, "known") == ["c"]
    assert desk.clients.group("unknown") is None
    assert "bad name" not in desk.groups


def test_a_group_of_ordered_topics_has_an_ordered_retry_topic(desk: Desk) -> None:
    desk.topics.put(TopicConfig("steps", order=True))
    beat(desk, "a", topic="steps")
    retry = desk.topics.get("%RETRY%billing")
    assert retry is not None
    assert retry.order


def test_a_client_that_leaves_is_announced(desk: Desk) -> None:
    beat(desk, "a")
    beat(desk, "b")
    assert desk.ask(35, by="a", clientID="id-a", consumerGroup="billing", producerGroup="makers").code == 0
    assert members(desk) == ["id-b"]
    desk.settle()
    assert desk.link("b").notices == ["billing", "billing"]


def test_a_closed_connection_does_the_same_without_a_word(desk: Desk) -> None:
    beat(desk, "a")
    beat(desk, "b")
    desk.lose("a")
    assert members(desk) == ["id-b"]
    desk.settle()
    assert desk.link("b").notices == ["billing", "billing"]
    with pytest.raises(ConsumerNotOnline):
        desk.ask(203, consumerGroup="nobody")


def test_a_lock_outlives_its_owners_connection_and_ends_with_its_time(desk: Desk) -> None:
    """OR-01: The owner trusts its lock for 30 s: freed at once, two members would work on one ordered queue."""
    desk.topic("orders")
    beat(desk, "a")
    beat(desk, "b")
    assert lock(desk, "id-a", Q0) == [Q0]
    desk.lose("a")
    assert lock(desk, "id-b", Q0) == []
    desk.ask(35, by="a", clientID="id-a", consumerGroup="billing")
    desk.clock.ms += 60_000
    desk.part(Locks).expire()
    assert lock(desk, "id-b", Q0) == []
    desk.clock.ms += 1
    assert lock(desk, "id-b", Q0) == [Q0]


def test_a_silent_client_is_closed_and_the_others_hear_of_it(desk: Desk) -> None:
    beat(desk, "a")
    desk.clock.ms += 100_000
    beat(desk, "b")
    desk.clock.ms += 21_000
    desk.part(Clients).expire()
    assert members(desk) == ["id-b"]
    assert not desk.link("a").is_open
    desk.settle()
    assert desk.link("b").notices == ["billing", "billing"]


def test_a_member_that_does_not_read_gets_no_more_notices(desk: Desk) -> None:
    """They would pile up in memory, as many as others can make by joining and leaving."""
    beat(desk, "a")
    desk.link("a").is_congested = True
    beat(desk, "b")
    assert (desk.link("a").notices, desk.link("b").notices) == (["billing"], ["billing"])
    desk.link("a").is_congested = False
    beat(desk, "c")
    assert desk.link("a").notices == ["billing", "billing"]


def test_a_group_can_be_told_to_get_no_notices(desk: Desk) -> None:
    desk.ask(200, b'{"groupName":"billing","notifyConsumerIdsChangedEnable":false}')
    beat(desk, "a")
    assert desk.link("a").notices == []


def test_a_group_that_never_comes_to_rest_costs_no_more_notices_than_rounds(desk: Desk) -> None:
    """Members join and leave all the time; everybody hears of the last change, and of few of the others."""
    for number in range(100):
        beat(desk, f"{number}")
    before = sum(len(link.notices) for link in desk.links.values())

    async def main() -> int:
        for number in range(200):
            data = HeartbeatData(f"other {number}", (), (ConsumerData("billing"),))
            await desk.asked(34, data.encode(), by="0")
        return sum(len(link.notices) for link in desk.links.values()) - before

    assert desk.run(main()) < 200 * 100 / 10
    last = {name: len(link.notices) for name, link in desk.links.items()}
    desk.settle()
    assert all(len(link.notices) > last[name] for name, link in desk.links.items())


def test_a_round_of_notices_is_bounded(desk: Desk) -> None:
    async def main() -> Turns:
        with counted_by_turn(QuietLink, "notify") as told:
            for group in range(40):
                data = HeartbeatData("c", (), (ConsumerData(f"g{group}"), ConsumerData(f"h{group}")))
                await desk.asked(34, data.encode(), by=f"{group}")
        return told

    assert desk.run(main()).most <= TOLD_PER_ROUND
    desk.settle()
    assert sum(len(link.notices) for link in desk.links.values()) == 80


def test_a_client_is_of_a_language_that_is_known_and_of_no_other(desk: Desk) -> None:
    request = Command(34, {}, HeartbeatData("c", ("makers",)).encode(), language="x" * 10_000)
    desk.run(desk._ask(desk.link("a"), request))
    (found,) = decode_producer_connections(desk.ask(204, producerGroup="makers").body)
    assert found.language == "OTHER"


def test_a_heartbeat_brings_some_new_groups_into_being_and_the_next_one_more(desk: Desk) -> None:
    count = 2 * HEARTBEAT_NEW_GROUPS_MAX + 1
    body = HeartbeatData("c", (), tuple(ConsumerData(f"g{number}") for number in range(count))).encode()
    before = len(desk.groups)
    for made in (HEARTBEAT_NEW_GROUPS_MAX, 2 * HEARTBEAT_NEW_GROUPS_MAX, count, count):
        desk.ask(34, body)
        assert len(desk.groups) - before == made
        assert members(desk, f"g{made - 1}") == ["c"]
    desk.settle()


def test_nobody_is_taken_out_of_a_group_but_by_its_own_connection(desk: Desk) -> None:
    beat(desk, "a")
    desk.ask(35, by="b", clientID="id-a", consumerGroup="billing", producerGroup="makers")
    assert members(desk) == ["id-a"]
    assert desk.ask(204, producerGroup="makers").code == 0


def test_the_connections_of_a_large_group_are_written_a_slice_per_turn(desk: Desk) -> None:
    for number in range(3 * PIECE_ENTRIES):
        data = HeartbeatData(f"c{number}", ("makers",), (ConsumerData("billing"),))
        desk.ask(34, data.encode(), by=f"{number}")

    async def main(code: int) -> tuple[int, Turns]:
        with counted_by_turn(client, "_connection") as described:
            answer = await desk.asked(code, consumerGroup="billing", producerGroup="makers")
        return len(java_json.loads(answer.body)["connectionSet"]), described

    for code in (203, 204):
        shown, described = desk.run(main(code))
        assert shown == described.total == 3 * PIECE_ENTRIES
        assert described.most <= PIECE_ENTRIES
    desk.settle()


def test_nobody_is_an_error_when_members_are_asked_for(desk: Desk) -> None:
    with pytest.raises(RequestError, match="no consumer"):
        desk.ask(38, consumerGroup="billing")


def test_connections_show_who_consumes_what(desk: Desk) -> None:
    beat(desk, "10.0.0.7:50432")
    shown = GroupConnections.decode("billing", desk.ask(203, consumerGroup="billing").body)
    (found,) = shown.connections
    assert (found.client_id, found.address) == ("id-10.0.0.7:50432", "10.0.0.7:50432")
    assert (found.language, found.version) == ("JAVA", 493)
    assert [(one.topic, one.expression) for one in shown.group.subscriptions] == [
        ("orders", "A"),
        ("%RETRY%billing", "*"),
    ]
    assert decode_producer_connections(desk.ask(204, producerGroup="makers").body) == (found,)
    with pytest.raises(RequestError, match="no producer"):
        desk.ask(204, producerGroup="nobody")


def test_only_queues_that_exist_can_be_locked(desk: Desk) -> None:
    desk.topic("orders", 2)
    asked = [MessageQueue("orders", "broker-a", number) for number in (-1, 0, 1, 2)]
    asked.append(MessageQueue("nowhere", "broker-a", 0))
    assert lock(desk, "c", *asked) == asked[1:3]
    desk.ask(42, LockRequest("billing", "c", tuple(asked)).encode())
    assert lock(desk, "other", *asked) == asked[1:3]


def test_a_host_has_one_share_of_the_locks_whatever_its_connections(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "lock_bytes", lambda *_: 1)
    monkeypatch.setattr(locks, "LOCKS_BYTES_MAX", 6)
    desk.topic("orders", 4)

    def held(by: str) -> int:
        wanted = tuple(MessageQueue("orders", "broker-a", number) for number in range(4))
        return len(decode_locked(desk.ask(41, LockRequest(f"g{by[-1]}", "c", wanted).encode(), by=by).body))

    assert [held(by) for by in ("10.0.0.1:1", "10.0.0.1:2", "10.0.0.2:3")] == [2, 0, 1]


def test_a_lock_keeps_nothing_of_a_request_but_its_owner(desk: Desk) -> None:
    desk.topic("orders", 2)
    long_name = MessageQueue("orders", "b" * 100_000, 0)
    assert lock(desk, "c", long_name) == [long_name]
    assert lock(desk, "other", Q0) == []
    ((group, queue),) = desk.part(Locks).locks._locks
    assert (group, queue) == ("billing", ("orders", 0))


@pytest.mark.parametrize("count", [LOCK_QUEUES_MAX + 1, 250_000])
def test_a_lock_request_names_a_bounded_number_of_queues(desk: Desk, count: int) -> None:
    row = b'{"topic":"t"}'
    body = b'{"consumerGroup":"g","clientId":"c","mqSet":[' + b",".join([row] * count) + b"]}"
    with pytest.raises(InvalidRequest, match="allowed"):
        desk.ask(41, body)


def test_a_lock_request_names_a_group_and_a_client(desk: Desk) -> None:
    long_id = b'{"consumerGroup":"g","clientId":"' + b"c" * 256 + b'"}'
    for body in (b"{}", b'{"consumerGroup":"g"}', b'{"clientId":"c"}', long_id):
        with pytest.raises(InvalidRequest):
            desk.ask(41, body)


def test_a_consumer_learns_at_its_start_what_is_wrong_with_its_filter(desk: Desk) -> None:
    tag, sql = Subscription.parse("t", "A"), Subscription("t", "a > 3", expression_type="SQL92")
    for subscription in (tag, sql, None):
        assert desk.ask(46, ClientCheck("c", "g", subscription).encode()).code == 0
    with pytest.raises(SubscriptionMalformed, match="character 3"):
        desk.ask(46, ClientCheck("c", "g", replace(sql, expression="a ! 3")).encode())
    with pytest.raises(RequestError, match="CLASS"):
        desk.ask(46, ClientCheck("c", "g", replace(sql, expression_type="CLASS")).encode())
    desk.ask(25, b"enablePropertyFilter=false")
    with pytest.raises(RequestError, match="enablePropertyFilter"):
        desk.ask(46, ClientCheck("c", "g", sql).encode())
    assert desk.ask(46, ClientCheck("c", "g", tag).encode()).code == 0


# ---- the table of groups


def test_a_group_is_created_changed_shown_and_deleted(desk: Desk) -> None:
    desk.ask(200, b'{"groupName":"billing","retryMaxTimes":3,"attributes":{"+a":"1"}}')
    desk.ask(200, b'{"groupName":"billing","retryMaxTimes":4,"attributes":{"+b":"2","-a":""}}')
    shown = java_json.loads(desk.ask(352, group="billing").body)
    assert (shown["retryMaxTimes"], shown["attributes"]) == (4, {"b": "2"})
    table = java_json.loads(desk.ask(201).body)
    assert table["subscriptionGroupTable"]["billing"] == shown
    assert table["dataVersion"]["counter"] == 2
    desk.ask(207, groupName="billing")
    with pytest.raises(GroupNotFound):
        desk.ask(352, group="billing")
    assert desk.ask(207, groupName="billing").code == 0


@pytest.mark.parametrize("group", SYSTEM_GROUPS)
def test_a_group_of_the_brokers_own_is_not_deleted(desk: Desk, group: str) -> None:
    with pytest.raises(PermissionDenied, match="the broker's own"):
        desk.ask(207, groupName=group)


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"groupName":"a b"}',
        b'{"groupName":"g","retryQueueNums":-1}',
        b'{"groupName":"g","retryQueueNums":1000000}',
        b'{"groupName":"g","attributes":{"unsigned":"1"}}',
    ],
)
def test_an_impossible_group_is_refused(desk: Desk, body: bytes) -> None:
    with pytest.raises(InvalidRequest):
        desk.ask(200, body)


def test_a_group_that_its_file_could_not_hold_is_refused(desk: Desk) -> None:
    """A request may be nested as deep as a file; in the file there are more levels around the group."""
    with pytest.raises(InvalidRequest, match="nested"):
        desk.ask(200, b'{"groupName":"deep","later":' + b"[" * 62 + b"]" * 62 + b"}")
    assert "deep" not in desk.groups


def test_offsets_go_with_their_group_only_when_asked(desk: Desk) -> None:
    for clean, left in ((False, 5), (True, None)):
        desk.groups.put(GroupConfig("billing"))
        desk.offsets.commit("billing", "orders", 0, 5, end=10_000)
        desk.ask(207, groupName="billing", cleanOffset=clean)
        assert desk.offsets.query("billing", "orders", 0) == left


def test_a_group_has_64_kib_whatever_they_are_made_of(desk: Desk) -> None:
    """Goal: megabytes of unknown members were kept, and every later heartbeat paid for them."""
    for body in (
        b'{"groupName":"large"}'.ljust(65_537),
        java_json.dumps({"groupName": "large", "later": "x" * 65_536}),
    ):
        with pytest.raises(InvalidRequest, match="bytes"):
            desk.ask(200, body)
    desk.ask(200, java_json.dumps({"groupName": "large", "attributes": {"+a": "x" * 40_000}}))
    with pytest.raises(InvalidRequest, match="attributes and unknown members"):
        desk.ask(200, java_json.dumps({"groupName": "large", "attributes": {"+b": "x" * 40_000}}))
