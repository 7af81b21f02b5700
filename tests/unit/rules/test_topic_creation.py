"""Which topics come into being by being used, and what they are like."""

import pytest

from bolide.model.errors import InvalidRequest, TopicNotFound
from bolide.model.limits import TOPIC_QUEUES_MAX
from bolide.model.topic import TopicConfig
from bolide.rules.topic_creation import topic_for_retry, topic_for_send

DEFAULT = TopicConfig("TBW102", 8, 8, perm=7)
LENDING = TopicConfig("Template", 4, 4, perm=15)
NOT_LENDING = TopicConfig("BenchmarkTest", 4, 4, perm=6)


def test_a_send_creates_a_topic_from_the_template() -> None:
    assert topic_for_send("orders", DEFAULT, 4, auto_create=True) == TopicConfig("orders", 4, 4, 6)


@pytest.mark.parametrize(("asked", "got"), [(4, 4), (100, 8), (0, 1), (-5, 1)])
def test_a_created_topic_has_at_most_the_queues_of_its_template(asked: int, got: int) -> None:
    assert topic_for_send("orders", DEFAULT, asked, auto_create=True).queues == got


@pytest.mark.parametrize("template", [DEFAULT, NOT_LENDING, None])
def test_a_topic_that_may_not_be_created_is_not_found(template: TopicConfig | None) -> None:
    """Automatic creation is off, the template does not lend, or there is none."""
    with pytest.raises(TopicNotFound):
        topic_for_send("orders", template, 4, auto_create=False)


def test_with_automatic_creation_off_only_the_default_template_lends_nothing() -> None:
    assert topic_for_send("orders", LENDING, 4, auto_create=False).queues == 4


def test_a_topic_inherits_permission_bits_that_we_do_not_know() -> None:
    assert topic_for_send("orders", LENDING, 4, auto_create=True).perm == 14


def test_a_retry_topic_is_created_in_any_case() -> None:
    assert topic_for_send("%RETRY%g", DEFAULT, 4, auto_create=False).queues == 1
    assert topic_for_send("%RETRY%g", None, 4, auto_create=False).queues == 1


@pytest.mark.parametrize("name", ["", " ", "a/b", "../up", "a" * 128, "tab\t"])
def test_a_hostile_name_never_becomes_a_topic(name: str) -> None:
    with pytest.raises(InvalidRequest):
        topic_for_send(name, DEFAULT, 4, auto_create=True)


def test_the_retry_topic_follows_its_group() -> None:
    made = topic_for_retry("g", None, 3, unit_mode=True)
    assert made == TopicConfig("%RETRY%g", 3, 3, sys_flag=2)
    assert topic_for_retry("g", made, 1) is made
    assert topic_for_retry("g", made, 1, order=True) == TopicConfig("%RETRY%g", 3, 3, sys_flag=2, order=True)


@pytest.mark.parametrize(("asked", "got"), [(-1, 1), (0, 1), (TOPIC_QUEUES_MAX + 1, TOPIC_QUEUES_MAX)])
def test_a_retry_topic_has_a_possible_number_of_queues(asked: int, got: int) -> None:
    assert topic_for_retry("g", None, asked).queues == got
