"""What clients of all languages are held to alike, as functions of a stage; the tests of each call them."""

from collections.abc import Callable

from tests.interop import ledger
from tests.interop.stage import BareStage, Stage
from tests.peers.clients import Consumer, wait_received
from tests.peers.server import Together
from tests.peers.waiting import PATIENCE_SECONDS, wait_until
from tests.peers.witness import Conversation, Fields

COUNT = 200
COLOURS = ["red", "green", "blue", "black"]
DELAYS_MS = [0, 1000, 2000]
LATER = {
    "messageDelayLevel": " ".join(["1s", "2s", *["1s"] * 16]),
    "transactionTimeOut": "1000",
    "transactionCheckInterval": "1000",
    "transactionOpBatchInterval": "100",  # the original would ask for what has ended, but is not noted yet
}
"""Settings of a broker where nothing waits longer than some seconds."""


def arrive_once_where_acknowledged(stage: Stage, **options: object) -> None:
    topic = stage.topic()
    sent = stage.produce(topic, COUNT, size=200, **options).finish().sent
    consumer = stage.consume(topic, stage.name("group"))
    consumer.wait_received(COUNT)
    ledger.assert_each_once((s.body for s in sent), consumer.bodies)
    ledger.assert_same_places(sent, consumer.received)
    ledger.assert_queues_have_no_holes(consumer.received)
    ledger.assert_intact(consumer.received)
    assert {s.status for s in sent} == {"SEND_OK"}


def oneway_messages_arrive_once(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consume(topic, stage.name("group"))
    production = stage.produce(topic, COUNT, mode="oneway").finish()
    consumer.wait_received(COUNT)
    production.stop()
    ledger.assert_each_once([f"{production.name}-{i:06d}" for i in range(COUNT)], consumer.bodies)
    ledger.assert_queues_have_no_holes(consumer.received)


def a_batch_becomes_neighbours_in_one_queue(stage: Stage) -> None:
    topic = stage.topic()
    sent = stage.produce(topic, COUNT, mode="batch", batch=32, tags="a", keys=True).finish().sent
    consumer = stage.consume(topic, stage.name("group"))
    consumer.wait_received(COUNT)
    ledger.assert_each_once((s.body for s in sent), consumer.bodies)
    ledger.assert_same_places(sent, consumer.received)
    ledger.assert_queues_have_no_holes(consumer.received)
    assert {(m.tags, m.keys) for m in consumer.received} == {("a", f"key-{b}") for b in consumer.bodies}


def properties_and_large_bodies_arrive_unchanged(stage: Stage) -> None:
    topic, size = stage.topic(), 100_000
    production = stage.produce(topic, 8, size=size, tags=["red", "green"], keys=True).finish()
    consumer = stage.consume(topic, stage.name("group"))
    consumer.wait_received(8)
    ledger.assert_intact(consumer.received)
    assert {(m.body, m.size, m.tags, m.keys) for m in consumer.received} == {
        (s.body, size, ("red", "green")[ledger.number(s.body) % 2], f"key-{s.body}") for s in production.sent
    }
    events = stage.witness.events(consumer.name, "message")
    assert {event["witness"] for event in events} == {production.name}


def orders_stay_in_one_queue(
    stage: Stage, placed: Callable[[int], bool] = lambda order: True, **options: object
) -> None:
    """`placed` says which orders the client gives a queue of their own."""
    topic, orders = stage.topic(), 10
    sent = stage.produce(topic, COUNT, mode="ordered", orders=orders).finish().sent
    consumer = stage.consume(topic, stage.name("group"), **options)
    consumer.wait_received(COUNT)
    ledger.assert_each_once((s.body for s in sent), consumer.bodies)
    ledger.assert_seen_in_send_order(consumer.received)
    assert len({s.queue for s in sent}) > 1
    for order in filter(placed, range(orders)):
        assert len({s.queue for s in sent if ledger.number(s.body) % orders == order}) == 1


def an_unknown_topic_is_created(stage: Stage) -> None:
    topic = stage.name("unknown")
    sent = stage.produce(topic, COUNT).finish().bodies
    wait_until(
        lambda: stage.route_numbers(topic), PATIENCE_SECONDS, "the name server does not know the topic"
    )
    assert stage.route_numbers(topic) == {(4, 4)}
    consumer = stage.consume(topic, stage.name("group"))
    consumer.wait_received(COUNT)
    ledger.assert_each_once(sent, consumer.bodies)


def members_share(stage: Stage) -> list[int]:
    """How many messages each has got."""
    topic, group = stage.topic(queues=6), stage.name("group")
    members = [stage.consume(topic, group) for _ in range(3)]
    wait_shares(topic, members, [2, 2, 2], 6)
    sent = stage.produce(topic, COUNT).finish().bodies
    wait_received(members, COUNT)
    ledger.assert_each_once(sent, [body for member in members for body in member.bodies])
    assert all(member.bodies for member in members)
    return [len(member.bodies) for member in members]


def in_broadcasting_everybody_gets_everything(stage: Stage) -> None:
    topic, group = stage.topic(), stage.name("group")
    members = [stage.consume(topic, group, model="broadcasting") for _ in range(2)]
    for member in members:
        member.wait_queues(topic, 4)
    sent = stage.produce(topic, COUNT).finish().bodies
    for member in members:
        member.wait_received(COUNT)
        ledger.assert_each_once(sent, member.bodies)
        member.stop()
    assert stage.committed(topic, group) == stage.committed(topic, stage.name("stranger"))


def only_wanted_messages_come(stage: Stage, **expression: object) -> None:
    """The expression wants red and blue."""
    topic = stage.topic()
    consumer = stage.consume(topic, stage.name("group"), **expression)
    sent = stage.produce(topic, COUNT, tags=COLOURS).finish().bodies
    wanted = [body for body in sent if ledger.number(body) % 4 in (0, 2)]
    consumer.wait_received(len(wanted))
    ledger.assert_each_once(wanted, consumer.bodies)
    assert {message.tags for message in consumer.received} == {"red", "blue"}


def two_groups_both_receive(stage: Stage) -> None:
    topic = stage.topic()
    consumers = [stage.consume(topic, stage.name("group")) for _ in range(2)]
    sent = stage.produce(topic, COUNT).finish().bodies
    for consumer in consumers:
        consumer.wait_received(COUNT)
        ledger.assert_each_once(sent, consumer.bodies)


def a_group_goes_on_where_it_stopped(stage: Stage, meanwhile: Callable[[], object] = lambda: None) -> None:
    topic, group = stage.topic(), stage.name("group")
    first = stage.consume(topic, group)
    before = stage.produce(topic, COUNT).finish().bodies
    first.wait_received(COUNT)
    first.stop()
    wait_committed(stage, topic, group, COUNT)
    meanwhile()
    after = stage.produce(topic, 50).finish().bodies
    second = stage.consume(topic, group)
    second.wait_received(50)
    ledger.assert_each_once(before, first.bodies)
    ledger.assert_each_once(after, second.bodies)


def wait_committed(stage: Stage, topic: str, group: str, total: int) -> None:
    """Until the broker keeps this many messages as consumed by the group."""
    wait_until(
        lambda: sum(stage.committed(topic, group)) == total,
        PATIENCE_SECONDS,
        lambda: f"committed {stage.committed(topic, group)}, not {total} together",
    )


def queues_move_when_members_join_and_leave(stage: Stage) -> None:
    topic, group = stage.topic(queues=8), stage.name("group")
    members = [stage.consume(topic, group)]
    wait_shares(topic, members, [8], 8)
    production = stage.produce(topic, rate=100)
    members.append(stage.consume(topic, group))
    wait_shares(topic, members, [4, 4], 8)
    members[0].stop()
    wait_shares(topic, members[1:], [8], 8)
    sent = production.stop().bodies
    wait_received(members, len(sent))
    ledger.assert_nothing_lost(sent, [body for member in members for body in member.bodies])


def wait_shares(topic: str, members: list[Consumer], shares: list[int], queues: int) -> None:
    """Until the members hold this many queues each, all of them different."""

    def settled() -> bool:
        held = [member.queues(topic) for member in members]
        return sorted(map(len, held)) == shares and len(set[object]().union(*held)) == queues

    wait_until(
        settled, PATIENCE_SECONDS, lambda: f"shares {[len(m.queues(topic)) for m in members]}, not {shares}"
    )


def a_namespace_is_part_of_the_names(stage: Stage) -> None:
    space, topic, group = stage.name("space"), stage.name("topic"), stage.name("group")
    stage.update_topic(f"{space}%{topic}", read=4, write=4)
    sent = stage.produce(topic, COUNT, namespace=space).finish().bodies
    consumer = stage.consume(topic, group, namespace=space)
    consumer.wait_received(COUNT)
    ledger.assert_each_once(sent, consumer.bodies)
    consumer.stop()
    wait_committed(stage, f"{space}%{topic}", f"{space}%{group}", COUNT)


def a_group_goes_on_after_a_restart_of_the_server(witness: Conversation, server: Together) -> None:
    stage = BareStage(witness, server.start())

    def restart() -> None:
        server.stop()
        server.start()

    try:
        a_group_goes_on_where_it_stopped(stage, restart)
    finally:
        stage.close()
        server.stop()


# ---- on a broker where nothing waits longer than some seconds (`later` in conftest.py)


def known_group(stage: Stage, topic: str) -> str:
    """A group that had a member before: its topic of retries is there when the next one starts.

    These clients look for new topics twice a minute only.
    """
    group = stage.name("group")
    first = stage.consume(topic, group)
    first.wait_queues(topic, 4)
    retries = f"%RETRY%{group}"  # comes with a heartbeat, and one that leaves early may never send it
    wait_until(lambda: stage.route_numbers(retries), PATIENCE_SECONDS, f"there is no {retries}")
    first.stop()
    return group


def a_failed_message_comes_again(stage: Stage) -> None:
    topic = stage.topic()
    group = known_group(stage, topic)
    consumer = stage.consume(topic, group, fails=2)
    sent = stage.produce(topic, 1, tags="red", keys=True).finish().bodies
    seen = wait_seen(stage, consumer, 3)
    assert [event["tries"] for event in seen] == [0, 1, 2]
    assert {(event["body"], event["topic"], event["tags"]) for event in seen} == {(sent[0], topic, "red")}
    assert [event["level"] for event in seen[1:]] == [3, 4]


def a_message_that_always_fails_is_a_dead_letter(stage: Stage) -> None:
    topic = stage.topic()
    group = known_group(stage, topic)
    consumer = stage.consume(topic, group, fails=99, reconsume=2)
    sent = stage.produce(topic, 1).finish().bodies
    graveyard = f"%DLQ%{group}"
    wait_until(lambda: stage.route_numbers(graveyard), PATIENCE_SECONDS, f"there is no {graveyard}")
    undertaker = stage.consume(graveyard, stage.name("undertaker"))
    undertaker.wait_received(1)
    assert undertaker.bodies == sent
    assert [event["tries"] for event in stage.witness.events(consumer.name, "message")] == [0, 1, 2]


def delayed_messages_are_never_early(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consume(topic, stage.name("group"))
    late = stage.produce(topic, 20, levels=[1, 2], tags="red", keys=True).finish()
    prompt = stage.produce(topic, 20).finish()
    seen = wait_seen(stage, consumer, 40)
    ledger.assert_each_once([*late.bodies, *prompt.bodies], consumer.bodies)
    assert all(event["waited"] >= DELAYS_MS[event["level"]] for event in seen)
    assert [sum(event["level"] == level for event in seen) for level in range(3)] == [20, 10, 10]
    queues = {one.body: one.queue for one in [*late.sent, *prompt.sent]}
    assert {message.body: message.queue for message in consumer.received} == queues


def wait_seen(stage: Stage, consumer: Consumer, count: int) -> list[Fields]:
    def seen() -> list[Fields]:
        return stage.witness.events(consumer.name, "message")

    wait_until(lambda: len(seen()) >= count, PATIENCE_SECONDS, lambda: f"saw {seen()}, not {count}")
    return seen()
