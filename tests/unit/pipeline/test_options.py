"""Options of a Spark read: Kafka's names and meanings, and a clear word about everything else."""

import json

import pytest

from bolide.model.errors import ConfigError
from bolide.model.offsets import MessageQueue
from bolide.pipeline.options import EARLIEST, LATEST, ReadOptions, parse_options

NEEDED = {"nameserver": "127.0.0.1:9876", "subscribe": "orders"}


def parse(**given: str) -> ReadOptions:
    return parse_options(NEEDED | given)


def test_two_options_are_enough() -> None:
    options = parse()
    assert (options.nameserver, options.topics) == ("127.0.0.1:9876", ("orders",))
    assert (options.start.everywhere, options.end.everywhere) == (EARLIEST, LATEST)
    assert (options.fail_on_data_loss, options.min_partitions, options.tags) == (True, 1, "*")


def test_case_does_not_matter() -> None:
    options = parse_options({"NAMESERVER": "h:1", "Subscribe": "a", "failondataloss": "False"})
    assert (options.topics, options.fail_on_data_loss) == (("a",), False)


def test_several_topics_and_several_name_servers() -> None:
    options = parse_options({"nameserver": "a:1, b:2", "subscribe": "x, y ,x,"})
    assert (options.nameserver, options.topics) == ("a:1;b:2", ("x", "y"))


def test_offsets_by_queue() -> None:
    text = json.dumps({"orders": {"broker-a": {"0": 23, "1": -2}}})
    offsets = parse(startingOffsets=text).start.by_queue
    assert offsets == {
        MessageQueue("orders", "broker-a", 0): 23,
        MessageQueue("orders", "broker-a", 1): EARLIEST,
    }


def test_a_timestamp_wins_over_offsets() -> None:
    options = parse(
        startingTimestamp="1700000000000", startingOffsets="earliest", endingTimestamp="1700000000001"
    )
    assert options.start.timestamp_ms == 1_700_000_000_000
    assert options.end.timestamp_ms == 1_700_000_000_001


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (
            {"nameserver": ""},
            r'^the option nameserver is missing: .option\("nameserver", "127.0.0.1:9876"\)$',
        ),
        ({"subscribe": ""}, "^the option subscribe is missing"),
        ({"subscribe": ","}, "^subscribe: ',' names no topic"),
        ({"subscribe": "../etc"}, "^subscribe: the topic name '../etc' contains '.'"),
        ({"consumerGroup": "a b"}, "^consumerGroup: the group name 'a b' contains ' '"),
        ({"tags": "a" * 40_000}, "^tags: "),
        ({"tags": "a > 3"}, "^tags.*'a > 3' is not a tag.*SQL expressions are not supported yet"),
        ({"tags": "paid,open"}, r"^tags.*several tags are joined by \|\|"),
        ({"tags": "paid|open"}, r"^tags.*several tags are joined by \|\|"),
        ({"nameserver": "nowhere"}, "host:port"),
        ({"startingOfsets": "earliest"}, "did you mean startingOffsets"),
        ({"topic": "orders"}, "called subscribe here"),
        ({"kafka.bootstrap.servers": "h:1"}, "called nameserver here"),
        ({"paths": '["orders"]'}, "called subscribe here"),
        ({"maxOffsetsPerTrigger": "1"}, "about streams, which this source does not read yet"),
        ({"zzz": "1"}, "'zzz'; there are nameserver, subscribe"),
        ({"\x1b[2J": "1"}, r"there is no option '\\x1b\[2J'"),
        ({"startingOffsets": "latest"}, "nothing to read in a batch"),
        ({"endingOffsets": "earliest"}, "nothing to read"),
        ({"startingOffsets": "[]"}, "cannot be read"),
        ({"startingOffsets": "{"}, "cannot be read"),
        ({"startingOffsets": "[" * 100_000}, "cannot be read: .{200}…$"),
        ({"startingOffsets": '{"orders":{"b":{"+1":1}}}'}, "cannot be read"),
        ({"startingOffsets": '{"orders":{"b":{"99999999999":1}}}'}, "cannot be read"),
        ({"startingOffsets": '{"orders":{"b":{"0":1e400}}}'}, "queue': offset|has inf"),
        ({"startingOffsets": '{"orders":{"b":{"0":1.5}}}'}, "1.5"),
        ({"startingOffsets": '{"orders":{"b":{"0":-3}}}'}, "-3"),
        ({"startingOffsets": '{"orders":{"b":{"0":-1}}}'}, "nothing to read in a batch"),
        ({"endingOffsets": '{"orders":{"b":{"0":-2}}}'}, "nothing to read"),
        ({"startingOffsets": '{"other":{"b":{"0":1}}}'}, "subscribe does not"),
        (
            {
                "startingOffsets": '{"orders":{"b":{"0":9}}}',
                "endingOffsets": '{"orders":{"b":{"0":3}}}',
            },
            "before it starts",
        ),
        ({"startingTimestamp": "yesterday"}, "startingTimestamp is a number"),
        ({"startingTimestamp": "1700000000"}, "in milliseconds, and 1700000000 looks like seconds"),
        ({"endingTimestamp": "1700000000"}, "endingTimestamp is in milliseconds"),
        (
            {"startingTimestamp": "5", "endingTimestamp": "4"},
            r"startingTimestamp \(5\) is later than endingTimestamp \(4\)",
        ),
        ({"startingTimestamp": "1" + 400 * "0"}, "startingTimestamp is a number"),
        ({"startingTimestamp": "\u0661"}, "startingTimestamp is a number"),
        ({"failOnDataLoss": "maybe"}, "failOnDataLoss is true or false, not 'maybe'"),
        ({"badBodies": "ignore"}, "badBodies is deliver, skip or fail, not 'ignore'"),
        ({"minPartitions": "0"}, "minPartitions is a number from 1"),
        ({"maxBytesPerPull": "1e6"}, "maxBytesPerPull is a number"),
    ],
)
def test_what_makes_no_sense_is_said_clearly(given: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        parse_options(NEEDED | given)


def test_everything_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_options(
            {"subscrib": "orders", "minPartitions": "many", "startingOffsets": "latest", "tags": "paid"}
        )
    assert str(caught.value).splitlines() == [
        "5 things are wrong with the options:",
        "  there is no option 'subscrib': did you mean subscribe?",
        '  the option subscribe is missing: .option("subscribe", "topic")',
        "  startingOffsets=latest leaves nothing to read in a batch: say earliest or offsets",
        '  the option nameserver is missing: .option("nameserver", "127.0.0.1:9876")',
        "  minPartitions is a number from 1 to 100000, not 'many'",
    ]


def test_offsets_of_a_topic_are_not_blamed_when_subscribe_is_wrong() -> None:
    with pytest.raises(ConfigError) as caught:
        parse(subscribe="", startingOffsets='{"orders":{"b":{"0":1}}}')
    assert "subscribe does not" not in str(caught.value)
