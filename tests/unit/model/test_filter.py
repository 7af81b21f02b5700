"""A filter is a value."""

from bolide.model.filter import EVERYTHING, Filter
from bolide.model.java_hash import java_hash
from bolide.model.topic import Subscription
from tests.unit.filters import containing


def test_filters_are_equal_when_they_want_the_same() -> None:
    assert Filter() == EVERYTHING
    assert Filter(frozenset({1, 2})) == Filter(frozenset({2, 1})) != Filter(frozenset({1}))
    assert containing(b"a") == containing(b"a") != containing(b"b")
    assert containing(b"a", frozenset({1})) not in (containing(b"a"), Filter(frozenset({1})))
    assert len({Filter(frozenset({1})), Filter(frozenset({1})), containing(b"a"), containing(b"a")}) == 2


def test_the_filter_of_a_tag_expression_wants_its_tags() -> None:
    assert Subscription.parse("T", "*").filter == EVERYTHING
    assert Subscription.parse("T", None).filter == EVERYTHING
    assert Subscription.parse("T", "B || A").filter == Filter(frozenset({java_hash("A"), java_hash("B")}))


def test_an_expression_of_another_kind_is_not_read_as_tags() -> None:
    subscription = Subscription.parse("T", "a > 1 || b", 7, "SQL92")
    assert (subscription.expression, subscription.expression_type) == ("a > 1 || b", "SQL92")
    assert (subscription.tags, subscription.codes, subscription.version) == (frozenset(), frozenset(), 7)
