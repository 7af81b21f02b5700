"""Subscriptions: which tags an expression names."""

import pytest

from bolide.model.errors import SubscriptionMalformed
from bolide.model.java_hash import java_hash
from bolide.model.limits import EXPRESSION_LENGTH_MAX
from bolide.model.topic import Subscription


@pytest.mark.parametrize("expression", [None, "", "*", " * ", "||"])
def test_nothing_and_a_star_take_all(expression: str | None) -> None:
    assert Subscription.parse("T", expression).takes_all


def test_tags_are_separated_by_two_bars() -> None:
    found = Subscription.parse("T", " A ||B||", 7)
    assert (found.expression, found.version) == ("A || B", 7)
    assert found.tags == {"A", "B"}
    assert found.codes == {java_hash("A"), java_hash("B")}


def test_an_expression_that_would_take_long_to_hash_is_refused() -> None:
    Subscription.parse("T", "a" * EXPRESSION_LENGTH_MAX)
    with pytest.raises(SubscriptionMalformed):
        Subscription.parse("T", "a" * (EXPRESSION_LENGTH_MAX + 1))
