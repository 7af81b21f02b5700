"""Which subscriptions become filters."""

import pytest

from bolide.model.errors import RequestError, SubscriptionMalformed
from bolide.model.filter import EVERYTHING
from bolide.model.topic import Subscription
from bolide.rules.filters import filter_of


def test_tags_become_their_filter() -> None:
    tagged = Subscription.parse("T", "A || B")
    assert filter_of(tagged) == tagged.filter
    assert filter_of(Subscription.parse("T", "*")) == EVERYTHING


def test_an_sql_expression_becomes_a_filter_that_looks_at_records() -> None:
    wanted = filter_of(Subscription.parse("T", "a > 1", expression_type="SQL92"))
    assert wanted.codes is None
    assert wanted.examine is not None
    assert wanted == filter_of(Subscription.parse("T", "a > 1", expression_type="SQL92"))
    assert wanted != filter_of(Subscription.parse("T", "a > 2", expression_type="SQL92"))


def test_what_a_filter_takes_in_memory_grows_with_its_expression() -> None:
    short, long = (
        filter_of(Subscription("T", f"a IN ({texts})", expression_type="SQL92"))
        for texts in ("'x'", ", ".join(["'x'"] * 500))
    )
    assert 0 < short.examine_bytes < 1000
    assert long.examine_bytes > 50_000


def test_an_sql_expression_that_is_none_is_refused_with_the_place() -> None:
    with pytest.raises(SubscriptionMalformed, match="character 5"):
        filter_of(Subscription("T", "a > 'x'", expression_type="SQL92"))


def test_a_kind_of_expression_that_would_not_be_honoured_is_refused_by_its_name() -> None:
    with pytest.raises(RequestError, match=r"not by 'CLASS'$"):
        filter_of(Subscription.parse("T", "a > 1", expression_type="CLASS"))
    with pytest.raises(RequestError) as refused:
        filter_of(Subscription("T", expression_type="x" * 1000))
    assert len(str(refused.value)) < 100
