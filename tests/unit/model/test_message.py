"""Property text, tag expressions, Java's hash."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bolide.model.errors import MessageIllegal
from bolide.model.java_hash import java_hash
from bolide.model.message import format_properties
from bolide.model.pairs import parse_properties
from bolide.model.topic import Subscription, TopicConfig

TEXT = st.text(min_size=1, max_size=8).filter(lambda text: not set(text) & {"\x01", "\x02"})


@given(st.dictionaries(TEXT, TEXT, max_size=5))
def test_properties_survive_the_round_trip(properties: dict[str, str]) -> None:
    text = format_properties(properties)
    assert parse_properties(text) == properties
    assert parse_properties(text.removesuffix("\x02")) == properties


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("", {}),
        ("\x02\x02", {}),
        ("a\x01b", {"a": "b"}),
        ("a\x01\x02b\x01c\x02", {"b": "c"}),
        ("\x01b\x02", {}),
        ("ab\x02", {}),
        ("a\x01b\x01c\x02", {"a": "b\x01c"}),
        ("a\x01b\x02a\x01c\x02", {"a": "c"}),
    ],
)
def test_odd_property_text_reads_as_java_reads_it(text: str, pairs: dict[str, str]) -> None:
    assert parse_properties(text) == pairs


@pytest.mark.parametrize("bad", [{"a\x01": "b"}, {"a": "b\x02"}])
def test_separators_inside_a_pair_are_refused(bad: dict[str, str]) -> None:
    with pytest.raises(MessageIllegal, match="separator"):
        format_properties(bad)


@pytest.mark.parametrize(
    ("text", "code"),
    [("", 0), ("TagA", 2598919), ("Aa", 2112), ("BB", 2112), ("\U0001f600", 1772899), ("*", 42)],
)
def test_the_hash_is_java_s(text: str, code: int) -> None:
    assert java_hash(text) == code


@pytest.mark.parametrize(
    ("expression", "tags"),
    [
        (None, set()),
        ("", set()),
        ("*", set()),
        ("A", {"A"}),
        ("A || B", {"A", "B"}),
        (" A||B || ", {"A", "B"}),
    ],
)
def test_tag_expressions_are_split_and_trimmed(expression: str | None, tags: set[str]) -> None:
    subscription = Subscription.parse("T", expression)
    assert subscription.tags == tags
    assert subscription.takes_all == (not tags)
    assert subscription.codes == {java_hash(tag) for tag in tags}


def test_a_topic_has_as_many_queues_as_the_larger_of_its_numbers() -> None:
    assert TopicConfig("T", read_queues=4, write_queues=8).queues == 8
    assert TopicConfig("T", perm=2).writable
    assert not TopicConfig("T", perm=2).readable
    assert TopicConfig("T", perm=7).inherited
