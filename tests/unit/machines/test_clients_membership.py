"""Who is in a group: joining, leaving, expiring, and who hears of it."""

from bolide.machines.clients import LIFETIME_MS, ClientTable, Disconnect, Effects, NotifyGroup
from bolide.model.topic import Subscription
from bolide.wire.bodies.group import ConsumerData, HeartbeatData, MessageModel

T = Subscription("t", version=1)
U = Subscription("u", version=1)


def beat(
    table: ClientTable[str],
    connection: str,
    client_id: str,
    *groups: str,
    now_ms: int = 0,
    subscriptions: tuple[Subscription, ...] = (T,),
    model: MessageModel = MessageModel.CLUSTERING,
    producers: tuple[str, ...] = (),
    without_sub: bool = False,
) -> Effects[str]:
    consumers = tuple(
        ConsumerData(group, message_model=model, subscriptions=subscriptions) for group in groups
    )
    data = HeartbeatData(client_id, producers, consumers, without_sub)
    return table.heartbeat(connection, data, now_ms, language="JAVA", version=493)


def test_everybody_hears_of_a_new_member_also_the_new_one() -> None:
    table: ClientTable[str] = ClientTable()
    assert beat(table, "A", "a", "g") == [NotifyGroup("g", ("A",))]
    assert beat(table, "B", "b", "g") == [NotifyGroup("g", ("A", "B"))]
    assert table.member_ids("g") == ["a", "b"]


def test_a_repeated_heartbeat_is_no_news() -> None:
    table: ClientTable[str] = ClientTable()
    beat(table, "A", "a", "g")
    assert beat(table, "A", "a", "g", now_ms=30_000) == []


def test_a_closed_connection_leaves_all_its_groups_at_once() -> None:
    """CM-02."""
    table: ClientTable[str] = ClientTable()
    beat(table, "A", "a", "g", "h", producers=("p",))
    beat(table, "B", "b", "g")
    assert table.connection_lost("A") == [
        NotifyGroup("g", ("B",)),
    ]
    assert table.member_ids("g") == ["b"]
    assert table.group("h") is None
    assert table.producers("p") == []
    assert table.connection_lost("A") == []


def test_a_client_that_says_goodbye_leaves_one_group_and_stays_in_the_others() -> None:
    table: ClientTable[str] = ClientTable()
    beat(table, "A", "a", "g", "h", producers=("p",))
    beat(table, "B", "b", "g")
    assert table.unregister("A", consumer_group="g") == [NotifyGroup("g", ("B",))]
    assert table.unregister("A", consumer_group="g") == []
    assert table.unregister("A", producer_group="p") == []
    assert table.producers("p") == []
    assert table.member_ids("h") == ["a"]


def test_a_silent_client_is_forgotten_after_two_minutes_and_the_others_hear_of_it() -> None:
    """CM-02."""
    table: ClientTable[str] = ClientTable()
    beat(table, "A", "a", "g", now_ms=0, producers=("p",))
    beat(table, "B", "b", "g", now_ms=100_000)
    assert table.expire(LIFETIME_MS) == []
    assert table.expire(LIFETIME_MS + 1) == [
        NotifyGroup("g", ("B",)),
        Disconnect("A"),
    ]
    assert table.producers("p") == []


def test_of_several_that_expire_together_none_is_told_and_the_rest_once() -> None:
    table: ClientTable[str] = ClientTable()
    beat(table, "A", "a", "g")
    beat(table, "B", "b", "g")
    beat(table, "C", "c", "g", now_ms=100_000)
    effects = table.expire(LIFETIME_MS + 1)
    assert [effect for effect in effects if isinstance(effect, NotifyGroup)] == [NotifyGroup("g", ("C",))]


def test_a_heartbeat_keeps_a_client_alive() -> None:
    table: ClientTable[str] = ClientTable()
    for now_ms in range(0, 600_000, 30_000):
        beat(table, "A", "a", "g", now_ms=now_ms, producers=("p",))
        assert table.expire(now_ms) == []


def test_a_connection_with_a_living_group_is_not_closed_for_a_silent_one() -> None:
    table: ClientTable[str] = ClientTable()
    beat(table, "A", "a", "g", "h")
    beat(table, "A", "a", "h", now_ms=100_000)
    assert table.expire(LIFETIME_MS + 1) == []


def test_a_client_on_a_new_connection_takes_its_old_place() -> None:
    """CM-04."""
    table: ClientTable[str] = ClientTable()
    beat(table, "A", "a", "g")
    assert beat(table, "A2", "a", "g") == [NotifyGroup("g", ("A2",))]
    assert table.member_ids("g") == ["a"]
    assert table.connection_lost("A") == [], "the old connection takes nothing with it"
    group = table.group("g")
    assert group is not None
    assert list(group.members) == ["A2"]


def test_another_client_on_the_same_connection_replaces_the_first() -> None:
    table: ClientTable[str] = ClientTable()
    beat(table, "A", "a", "g")
    assert beat(table, "A", "a2", "g") == [NotifyGroup("g", ("A",))]
    assert table.member_ids("g") == ["a2"]


def test_members_of_a_broadcasting_group_do_not_hear_of_each_other() -> None:
    table: ClientTable[str] = ClientTable()
    assert beat(table, "A", "a", "g", model=MessageModel.BROADCASTING) == []
    assert beat(table, "B", "b", "g", model=MessageModel.BROADCASTING) == []
    assert table.connection_lost("A") == []


def test_a_group_that_wants_no_notices_gets_none() -> None:
    table: ClientTable[str] = ClientTable(wants_notice=lambda group: group != "quiet")
    assert beat(table, "A", "a", "quiet") == []
    assert beat(table, "A", "a", "loud") == [NotifyGroup("loud", ("A",))]
    beat(table, "B", "b", "quiet")
    assert table.connection_lost("B") == []


def test_connections_are_described_as_their_heartbeats_were() -> None:
    table: ClientTable[str] = ClientTable()
    beat(table, "A", "a", "g", producers=("p",))
    (producer,) = table.producers("p")
    assert (producer.connection, producer.client_id, producer.language, producer.version) == (
        *("A", "a"),
        *("JAVA", 493),
    )
    group = table.group("g")
    assert group is not None
    assert [member.client_id for member in group.members.values()] == ["a"]


# ---- subscriptions


def test_a_new_topic_is_news_and_a_removed_one_too() -> None:
    table: ClientTable[str] = ClientTable()
    beat(table, "A", "a", "g", subscriptions=(T,))
    assert beat(table, "A", "a", "g", subscriptions=(T, U)) == [NotifyGroup("g", ("A",))]
    assert table.groups_of_topic("u") == ["g"]
    assert beat(table, "A", "a", "g", subscriptions=(U,)) == [NotifyGroup("g", ("A",))]
    assert table.subscription("g", "t") is None
    assert table.groups_of_topic("t") == []


def test_a_subscription_is_replaced_only_by_a_newer_one_and_that_is_no_news() -> None:
    table: ClientTable[str] = ClientTable()
    first = Subscription.parse("t", "A", 1_700_000_000_000)
    older = Subscription.parse("t", "B", 1_600_000_000_000)
    nanoseconds = Subscription.parse("t", "C", 1_700_000_000_000_000_000)
    beat(table, "A", "a", "g", subscriptions=(first,))
    assert beat(table, "A", "a", "g", subscriptions=(older,)) == []
    assert table.subscription("g", "t") == first
    assert beat(table, "A", "a", "g", subscriptions=(nanoseconds,)) == []
    assert table.subscription("g", "t") == nanoseconds


def test_the_last_heartbeat_wins_for_the_whole_group() -> None:
    """Members that subscribe differently fight, as in the original: a trap for users, kept on purpose."""
    table: ClientTable[str] = ClientTable()
    beat(table, "A", "a", "g", subscriptions=(T,))
    beat(table, "B", "b", "g", subscriptions=(U,))
    assert table.subscription("g", "t") is None
    assert table.subscription("g", "u") == U


def test_a_short_heartbeat_keeps_the_known_subscriptions() -> None:
    table: ClientTable[str] = ClientTable()
    beat(table, "A", "a", "g", subscriptions=(T, U))
    assert beat(table, "A", "a", "g", subscriptions=(), without_sub=True) == []
    assert table.subscription("g", "u") == U
    beat(table, "A", "a", "g", subscriptions=())
    assert table.subscription("g", "u") is None


def test_a_group_without_members_subscribes_to_nothing() -> None:
    table: ClientTable[str] = ClientTable()
    beat(table, "A", "a", "g")
    table.connection_lost("A")
    assert table.subscription("g", "t") is None
    assert table.groups_of_topic("t") == []
    assert table.member_ids("g") == []
