"""Members of one group that subscribe to different things are noticed."""

from bolide.machines.clients import ClientTable, Differs
from bolide.machines.variants import Variant, Variants
from bolide.model.limits import VARIANTS_BYTES_MAX
from bolide.model.topic import Subscription
from bolide.wire.bodies.group import ConsumerData, HeartbeatData

ALL = Subscription.parse("t", "*", 1)
SOME = Subscription.parse("t", "A || B", 2)
OTHER = Subscription.parse("u", "*", 1)
RETRY = Subscription.parse("%RETRY%g", "*", 1)
SQL = Subscription.parse("t", "a = 1", 1, "SQL92")


def test_members_that_want_the_same_are_one_variant() -> None:
    variants = Variants()
    assert not variants.heard("g", "a", (ALL, RETRY))
    assert not variants.heard("g", "b", (Subscription.parse("t", "*", 7),)), "neither version nor retry topic"
    assert len(variants.of("g")) == 1


def test_a_difference_is_told_once_and_shows_who_wants_what() -> None:
    variants = Variants()
    variants.heard("g", "a", (ALL,))
    variants.heard("g", "b", (ALL,))
    assert variants.heard("g", "c", (SOME, OTHER))
    assert not variants.heard("g", "c", (SOME, OTHER))
    assert variants.of("g") == [
        Variant((("t", "*"),), ("a", "b")),
        Variant((("t", "A || B"), ("u", "*")), ("c",)),
    ]


def test_a_kind_of_expression_is_a_difference_too() -> None:
    variants = Variants()
    variants.heard("g", "a", (Subscription.parse("t", "a = 1", 1),))
    assert variants.heard("g", "b", (SQL,))


def test_nothing_is_kept_of_members_that_have_left() -> None:
    variants = Variants()
    variants.heard("g", "a", (ALL,))
    variants.heard("g", "b", (SOME,))
    variants.left("g", "b")
    assert len(variants.of("g")) == 1
    variants.left("g", "a")
    assert variants.of("g") == []
    assert not variants._groups
    assert not variants._bytes


def test_wishes_that_there_is_no_room_for_are_not_kept_and_still_differ() -> None:
    variants = Variants()
    long = Subscription("t", "x" * (VARIANTS_BYTES_MAX // 4))
    variants.heard("g", "a", (ALL,))
    assert variants.heard("g", "b", (long,))
    assert variants.of("g")[1] == Variant(None, ("b",))


def test_the_table_of_clients_says_it_with_the_heartbeat_and_forgets_with_the_connection() -> None:
    """CM-05: different subscriptions in one group; the last one wins, and that they differ is told."""
    table: ClientTable[str] = ClientTable()

    def beat(connection: str, *subscriptions: Subscription) -> list[object]:
        data = HeartbeatData(connection, consumers=(ConsumerData("g", subscriptions=subscriptions),))
        return [one for one in table.heartbeat(connection, data, 0) if isinstance(one, Differs)]

    assert beat("A", ALL) == []
    assert beat("B", SOME) == [Differs("g", "B")]
    assert beat("B", SOME) == []
    assert table.subscription("g", "t") == SOME
    assert len(table.variants("g")) == 2
    table.connection_lost("A")
    assert table.variants("g") == []
