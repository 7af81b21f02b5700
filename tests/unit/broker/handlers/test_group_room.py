"""The table of groups when somebody fills it: others have room, and what nobody would miss makes room."""

import pytest

from bolide.broker.handlers import group as handlers
from bolide.broker.handlers.group import Groups
from bolide.model import java_json
from bolide.model.errors import GroupNotFound, TableFull
from bolide.model.offsets import GroupOffset
from bolide.model.topic import GroupConfig, Subscription
from bolide.store.tables import groups, offsets
from bolide.wire.bodies.group import ConsumerData, HeartbeatData
from bolide.wire.headers.pull import PullFlag
from tests.unit.broker.handlers.desk import Desk
from tests.unit.net.stage import eventually, next_turn
from tests.unit.net.turns import Turns, counted_by_turn

STRANGER, HONEST = "10.6.6.6", "10.0.0.1:5000"


@pytest.fixture(autouse=True)
def room_for_64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "GROUPS_MAX", 64)
    monkeypatch.setattr(handlers, "LOOKED_AT_PER_TURN", 5)


def create(desk: Desk, name: str, by: str = HONEST, **members: object) -> None:
    desk.ask(200, java_json.dumps({"groupName": name, **members}), by=by)


def beat(desk: Desk, name: str, by: str) -> None:
    wanted = (Subscription.parse("orders", "*", 1), Subscription.parse(f"%RETRY%{name}", "*", 1))
    consumer = ConsumerData(name, subscriptions=wanted)
    desk.ask(34, HeartbeatData(f"id-{by}", (), (consumer,)).encode(), by=by)


def pull(desk: Desk, name: str, by: str) -> None:
    desk.write("orders", 0)
    desk.ask(
        11, by=by, consumerGroup=name, topic="orders", queueId=0, queueOffset=0, maxMsgNums=1,
        sysFlag=int(PullFlag.SUBSCRIPTION), commitOffset=0, suspendTimeoutMillis=0, subscription="*", subVersion=0,
    )  # fmt: skip


def look(desk: Desk, times: int = 2) -> None:
    part = desk.part(Groups)

    async def look_once() -> None:
        part.forget_unused()
        await eventually(lambda: not part._looking.is_going)

    for _ in range(times):
        desk.run(look_once())


WAYS = {"created": create, "members": beat, "read by": pull}


def fill(desk: Desk, way: str, count: int = 100) -> int:
    """A stranger does it again and again, each time over another connection; how many groups that makes."""
    before = len(desk.groups)
    for number in range(count):
        try:
            WAYS[way](desk, f"bad-{number}", f"{STRANGER}:{number}")
        except TableFull:
            pass
    return len(desk.groups) - before


@pytest.mark.parametrize("way", WAYS)
def test_one_host_does_not_fill_the_table_for_others(desk: Desk, way: str) -> None:
    """A hundred thousand requests from one host, and no honest group could be made any more, restarts included."""
    desk.topic("orders")
    assert fill(desk, way) == 20
    for number in range(10):
        WAYS[way](desk, f"honest-{number}", HONEST)
    assert "honest-9" in desk.groups


def test_a_host_that_is_full_still_changes_and_deletes_what_it_has(desk: Desk) -> None:
    fill(desk, "created")
    create(desk, "bad-1", f"{STRANGER}:1", consumeEnable=False)
    desk.ask(207, by=f"{STRANGER}:1", groupName="bad-2", cleanOffset=True)
    create(desk, "bad-2", f"{STRANGER}:2")
    with pytest.raises(TableFull, match="others"):
        create(desk, "bad-99", f"{STRANGER}:2")


@pytest.mark.parametrize("way", WAYS)
def test_a_crowded_table_forgets_what_nobody_would_miss(desk: Desk, way: str) -> None:
    desk.topic("orders")
    built_in, topics = {group.name for group in desk.groups}, len(desk.topics)
    fill(desk, way)
    for number in range(100):
        desk.lose(f"{STRANGER}:{number}")
    look(desk)
    assert {group.name for group in desk.groups} == built_in
    assert len(desk.topics) == topics
    assert fill(desk, way) == 20


def test_what_others_did_in_a_retry_topic_that_nobody_would_miss_is_forgotten_a_slice_per_turn(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offsets, "DROPPED_PER_STEP", 4)
    topic, part = "%RETRY%idle", desk.part(Groups)
    beat(desk, "idle", "10.0.0.2:1")
    desk.lose("10.0.0.2:1")
    for number in range(40):
        desk.offsets.commit(f"g{number}", topic, 0, 0, 1)
    fill(desk, "created")
    look(desk, 1)

    async def look_again() -> Turns:
        with counted_by_turn(offsets, "_bytes_of", lambda key, queues: key.startswith(topic)) as dropped:
            part.forget_unused()
            await eventually(lambda: not part._looking.is_going and not list(desk.offsets.groups_of(topic)))
        return dropped

    dropped = desk.run(look_again())
    assert topic not in desk.topics
    assert dropped.total == 2 * 40  # of both tables
    assert dropped.most <= 2 * 4


def read_in_40_topics(desk: Desk, name: str) -> None:
    """A group that is forgotten at the next look."""
    create(desk, name)
    for number in range(40):
        desk.offsets.note_pull(name, f"t{number}", 0, GroupOffset(1))
    fill(desk, "created")
    look(desk, 1)


def test_where_a_group_that_nobody_would_miss_has_pulled_is_forgotten_a_slice_per_turn(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offsets, "DROPPED_PER_STEP", 4)
    part = desk.part(Groups)
    read_in_40_topics(desk, "idle")

    async def look_again() -> Turns:
        with counted_by_turn(offsets, "_bytes_of", lambda key, queues: key.endswith("@idle")) as dropped:
            part.forget_unused()
            await eventually(lambda: not part._looking.is_going)
        return dropped

    dropped = desk.run(look_again())
    assert "idle" not in desk.groups
    assert dropped.total == 2 * 40  # of both tables
    assert dropped.most <= 2 * 4


def test_a_group_that_commits_while_it_is_being_forgotten_stays_with_its_progress(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offsets, "DROPPED_PER_STEP", 4)
    part = desk.part(Groups)
    read_in_40_topics(desk, "idle")

    async def commit_meanwhile() -> None:
        part.forget_unused()
        while desk.offsets.last_pull("idle", "t0", 0) is not None:
            await next_turn()
        assert desk.offsets.last_pull("idle", "t39", 0) == 1
        desk.offsets.commit("idle", "t39", 0, 1, 1)
        await eventually(lambda: not part._looking.is_going)

    desk.run(commit_meanwhile())
    assert "idle" in desk.groups
    assert desk.offsets.query("idle", "t39", 0) == 1


def test_what_somebody_configured_consumes_or_committed_stays(desk: Desk) -> None:
    desk.topic("orders")
    create(desk, "configured", retryMaxTimes=3)
    beat(desk, "online", HONEST)
    create(desk, "committed")
    desk.ask(15, consumerGroup="committed", topic="orders", queueId=0, commitOffset=0)
    beat(desk, "failed", "10.0.0.2:1")
    desk.lose("10.0.0.2:1")
    desk.write("%RETRY%failed", 0)
    fill(desk, "created")
    look(desk)
    left = {group.name for group in desk.groups}
    assert {"configured", "online", "committed", "TOOLS_CONSUMER"} <= left
    assert not any(name.startswith("bad") for name in left)
    assert "%RETRY%failed" in desk.topics


def test_a_group_is_not_forgotten_at_the_first_look(desk: Desk) -> None:
    """Somebody may be between its pull and its first commit."""
    desk.topic("orders")
    fill(desk, "created")
    pull(desk, "young", HONEST)
    look(desk, 1)
    desk.ask(15, consumerGroup="young", topic="orders", queueId=0, commitOffset=1)
    look(desk, 1)
    assert "young" in desk.groups
    assert "bad-1" not in desk.groups


def test_a_table_with_room_forgets_nothing(desk: Desk) -> None:
    create(desk, "idle")
    look(desk, 5)
    assert desk.groups.get("idle") == GroupConfig("idle")


def test_where_groups_are_not_made_on_demand_all_stay(desk: Desk) -> None:
    desk.change(autoCreateSubscriptionGroup="false")
    fill(desk, "created")
    look(desk)
    assert "bad-1" in desk.groups
    with pytest.raises(GroupNotFound):
        pull(desk, "made-on-demand", HONEST)
