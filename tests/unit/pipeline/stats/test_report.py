"""What a report has, decided without Spark."""

from bolide.model.limits.spark import STATS_TOPICS_MAX
from bolide.pipeline.stats.figures import skew, verdict
from bolide.pipeline.stats.measure import FLAG, QUEUE, Sum
from bolide.pipeline.stats.report import chosen_topics
from bolide.pipeline.stats.sources import Span


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


def test_bounds_of_time_become_options_of_the_source() -> None:
    assert Span().options() == {}
    assert Span(5, 7).options() == {"startingTimestamp": "5", "endingTimestamp": "7"}


def test_queues_without_messages_make_a_topic_skewed() -> None:
    assert skew([100, 0, 0, 0]) == 4
    assert verdict([100, 0, 0, 0]) == "skewed"
    assert verdict([100, 60, 40, 0]) == "uneven"
    assert verdict([100, 100, 100, 100]) == "even"
    assert verdict([3, 0, 0, 0]) == "too few to tell"
