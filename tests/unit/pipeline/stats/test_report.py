"""What a report has, decided without Spark."""

import pytest

from bolide.model.limits.spark import STATS_TOPICS_MAX
from bolide.pipeline.access import ClusterAccess
from bolide.pipeline.options import parse_options
from bolide.pipeline.stats.figures import skew, verdict
from bolide.pipeline.stats.measure import FLAG, QUEUE, Sum
from bolide.pipeline.stats.report import chosen_topics
from bolide.pipeline.stats.sources import COLUMNS, ClusterSource, Span, StoreSource
from bolide.pipeline.store_options import parse_store_options


def in_queue(topic: str, messages: int) -> Sum:
    return Sum(topic, QUEUE, "broker-a", 0, messages, 0, None, None)


def test_named_topics_are_shown_in_their_order_with_or_without_messages() -> None:
    rows = [in_queue("b", 5), in_queue("a", 1), Sum("c", FLAG, "packed", None, 9, 0, None, None)]
    assert chosen_topics(rows, ["z", "a", "b"]) == (["z", "a", "b"], [])


def test_without_names_the_topics_that_are_there_come_the_largest_first() -> None:
    rows = [in_queue("small", 1), in_queue("large", 3), in_queue("large", 3), in_queue("", 100)]
    assert chosen_topics(rows, []) == (["large", "small"], [])


def test_of_too_many_topics_the_smallest_are_left_out_and_the_report_says_so() -> None:
    rows = [in_queue(f"t{number:03d}", number) for number in range(STATS_TOPICS_MAX + 7)]
    topics, (note,) = chosen_topics(rows, [])
    assert len(topics) == STATS_TOPICS_MAX
    assert (topics[0], topics[-1]) == ("t106", "t007")
    assert note.startswith("7 topics with fewer messages are left out")


@pytest.mark.parametrize("span", [Span(), Span(1_700_000_000_000), Span(until_ms=1_700_000_000_000)])
def test_sources_ask_spark_with_options_that_it_takes(span: Span) -> None:
    """One pass: no more columns than are needed, and what is deleted meanwhile does not end it."""
    of_brokers = parse_options(
        ClusterSource(ClusterAccess("127.0.0.1:9876"), ["a", "%RETRY%g"]).options(span)
    )
    of_store = parse_store_options(
        {"path": "/s", **StoreSource("/s", ["a", "SCHEDULE_TOPIC_XXXX"]).options(span)}
    )
    of_all = parse_store_options({"path": "/s", **StoreSource("/s").options(span)})
    assert of_brokers.topics.names == ("a", "%RETRY%g")
    assert of_store.topics == ("a", "SCHEDULE_TOPIC_XXXX")
    assert (of_all.topics, of_all.includes_system_topics) == ((), False)
    for options in (of_brokers, of_store, of_all):
        assert options.columns == COLUMNS
        assert not options.fail_on_data_loss
    assert of_brokers.start.timestamp_ms == span.since_ms
    assert of_brokers.end.timestamp_ms == span.until_ms


def test_queues_without_messages_make_a_topic_skewed() -> None:
    assert skew([100, 0, 0, 0]) == 4
    assert verdict([100, 0, 0, 0]) == "skewed"
    assert verdict([100, 60, 40, 0]) == "uneven"
    assert verdict([100, 100, 100, 100]) == "even"
    assert verdict([3, 0, 0, 0]) == "too few to tell"
