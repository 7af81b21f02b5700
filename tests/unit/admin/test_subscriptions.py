"""Members that want different messages are found, and the difference is named."""

from bolide.admin.groups import GroupMembers
from bolide.admin.subscriptions import Difference, compare, differences
from bolide.model.topic import Subscription
from bolide.wire.bodies.connection import SubscriptionDifference
from bolide.wire.bodies.group import ConsumerData


def view(**topics: str) -> ConsumerData:
    wanted = (Subscription.parse(topic, expression) for topic, expression in topics.items())
    return ConsumerData("g", subscriptions=tuple(wanted))


def test_other_tags_and_a_missing_topic_are_named_with_who_wants_what() -> None:
    told = compare(
        {
            "one": {"orders": "a", "bills": "*"},
            "two": {"orders": "b", "bills": "*"},
            "three": {"orders": "a"},
        }
    )
    assert told == [
        Difference("bills", {"*": ("one", "two"), None: ("three",)}),
        Difference("orders", {"a": ("one", "three"), "b": ("two",)}),
    ]


def test_brokers_that_compare_members_are_believed() -> None:
    told = (
        SubscriptionDifference(("one", "two"), (("orders", "a"),)),
        SubscriptionDifference(("three",), (("orders", "b"),)),
        SubscriptionDifference(("unknown",), None),
    )
    members = GroupMembers((), {"broker-a": view(orders="b")}, told)
    assert differences(members) == [Difference("orders", {"a": ("one", "two"), "b": ("three",)})]


def test_brokers_that_have_different_subscriptions_show_it_too() -> None:
    same = GroupMembers((), {"a": view(orders="x || y"), "b": view(orders="y||x")})
    assert differences(same) == []
    other = GroupMembers((), {"a": view(orders="x"), "b": view(orders="y")})
    assert differences(other) == [Difference("orders", {"x": ("as a has it",), "y": ("as b has it",)})]
