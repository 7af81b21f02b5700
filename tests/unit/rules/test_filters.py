"""Which subscriptions become filters."""

import pytest

from bolide.model.errors import RequestError
from bolide.model.filter import EVERYTHING
from bolide.model.topic import Subscription
from bolide.rules.filters import filter_of


def test_tags_become_their_filter() -> None:
    tagged = Subscription.parse("T", "A || B")
    assert filter_of(tagged) == tagged.filter
    assert filter_of(Subscription.parse("T", "*")) == EVERYTHING


def test_a_kind_of_expression_that_would_not_be_honoured_is_refused_by_its_name() -> None:
    with pytest.raises(RequestError, match=r"not by SQL92$"):
        filter_of(Subscription.parse("T", "a > 1", expression_type="SQL92"))
    with pytest.raises(RequestError) as refused:
        filter_of(Subscription("T", expression_type="x" * 1000))
    assert len(str(refused.value)) < 100
