"""Options of a Spark read: Kafka's names and meanings, and a clear word about everything else."""

import json

import pytest

from bolide.model.credentials import Credentials
from bolide.model.errors import ConfigError
from bolide.model.offsets import MessageQueue
from bolide.net.tls import Tls
from bolide.pipeline.access import ClusterAccess
from bolide.pipeline.bounds import EARLIEST, LATEST
from bolide.pipeline.option_table import Use
from bolide.pipeline.options import Admission, ReadOptions, check_options, parse_options

NEEDED = {"nameserver": "127.0.0.1:9876", "subscribe": "orders"}


def parse(**given: str) -> ReadOptions:
    return parse_options(NEEDED | given)


def test_two_options_are_enough() -> None:
    options = parse()
    assert (options.cluster.nameserver, options.topics.names) == ("127.0.0.1:9876", ("orders",))
    assert (options.start.everywhere, options.end.everywhere) == (EARLIEST, LATEST)
    assert (options.fail_on_data_loss, options.cutting.partitions_min, options.wanted.tags) == (True, 1, "*")
    assert not options.commits


def test_case_does_not_matter() -> None:
    options = parse_options({"NAMESERVER": "h:1", "Subscribe": "a", "failondataloss": "False"})
    assert (options.topics.names, options.fail_on_data_loss) == (("a",), False)


def test_several_topics_and_several_name_servers() -> None:
    options = parse_options({"nameserver": "a:1, b:2", "subscribe": "x, y ,x,"})
    assert (options.cluster.nameserver, options.topics.names) == ("a:1;b:2", ("x", "y"))


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
        ({"tags": "a > 3"}, "^tags.*'a > 3' is not a tag.*if it is an SQL expression, give it as sql"),
        ({"tags": "paid,open"}, r"^tags.*several tags are joined by \|\|"),
        ({"tags": "paid|open"}, r"^tags.*several tags are joined by \|\|"),
        ({"nameserver": "nowhere"}, "host:port"),
        ({"startingOfsets": "earliest"}, "did you mean startingOffsets"),
        ({"topics": "orders"}, "called subscribe here"),
        ({"topic": "orders"}, "^subscribe and topic contradict each other: give one of them$"),
        ({"subscribePattern": "o.*"}, "^subscribe and subscribePattern contradict"),
        ({"subscribe": "", "subscribePattern": "("}, "is no regular expression"),
        ({"subscribe": "", "assign": "[]"}, "assign is .* this cannot be read"),
        ({"subscribe": "", "assign": '{"orders": ["0"]}'}, "assign is .* this cannot be read"),
        ({"subscribe": "", "assign": '{"orders": []}'}, "names no queue"),
        ({"subscribe": "", "dlqOf": "a b"}, "^dlqOf: the group name 'a b'"),
        ({"subscribe": "", "retryOf": ","}, "^retryOf: ',' names no group"),
        ({"kafka.bootstrap.servers": "h:1"}, "called nameserver here"),
        ({"paths": '["orders"]'}, "called subscribe here"),
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger is a number from 1"),
        (
            {"maxOffsetsPerTrigger": "1", "minOffsetsPerTrigger": "2"},
            r"\(2\) is more than maxOffsetsPerTrigger",
        ),
        ({"maxTriggerDelay": "5m"}, "maxTriggerDelay goes with minOffsetsPerTrigger"),
        ({"minOffsetsPerTrigger": "1", "maxTriggerDelay": "soon"}, "a time such as 500ms.*not 'soon'"),
        ({"tags": "a", "sql": "b = 1"}, "tags and sql contradict each other"),
        ({"sql": "b = "}, "^sql: "),
        ({"keys": "a b"}, "'a b' has a space"),
        ({"keys": ",".join(map(str, range(2000)))}, "keys names 2000 keys"),
        ({"includeHeaders": "true"}, "includeHeaders goes with schema=kafka"),
        ({"schema": "kafkaa"}, "schema is native or kafka, not 'kafkaa': did you mean kafka?"),
        ({"startingOffsetsByTimestampStrategy": "first"}, "Strategy is error or latest"),
        ({"startingOffsetsByTimestamp": '{"orders":{"b":{"0":1700000000}}}'}, "looks like seconds"),
        ({"startingOffsetsByTimestamp": '{"orders":{"b":{"0":-1}}}'}, "has -1"),
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
        ({"startingOffsets": '{"other":{"b":{"0":1}}}'}, "which is not read here"),
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
        "5 things are wrong:",
        "  there is no option 'subscrib': did you mean subscribe?",
        '  the option subscribe is missing: .option("subscribe", "topic"); topic, subscribePattern, assign, retryOf'
        " or dlqOf can take its place",
        "  startingOffsets=latest leaves nothing to read in a batch: say earliest or offsets",
        '  the option nameserver is missing: .option("nameserver", "127.0.0.1:9876")',
        "  minPartitions is a number from 1 to 100000, not 'many'",
    ]


def test_offsets_of_a_topic_are_not_blamed_when_subscribe_is_wrong() -> None:
    with pytest.raises(ConfigError) as caught:
        parse(subscribe="", startingOffsets='{"orders":{"b":{"0":1}}}')
    assert "not read here" not in str(caught.value)


def test_the_limits_of_triggers_are_read_for_streams_and_ignored_by_batches() -> None:
    given = NEEDED | {
        "maxOffsetsPerTrigger": "100",
        "minOffsetsPerTrigger": "10",
        "maxTriggerDelay": "2h",
        "maxBytesPerTrigger": "5000",
    }
    assert parse_options(given, Use.STREAM).admission == Admission(100, 10, 5000, 7_200_000)
    parse_options(given, Use.BATCH)


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"the option {name} is for batch reads \(spark.read\).* only"):
        parse_options(NEEDED | {name: "latest"}, Use.STREAM)


def test_a_stream_begins_at_the_end_and_may_say_so() -> None:
    assert parse_options(NEEDED, Use.STREAM).start.everywhere == LATEST
    assert parse_options(NEEDED | {"startingOffsets": "latest"}, Use.STREAM).start.everywhere == LATEST


def test_load_says_only_what_is_wrong_for_batches_and_for_streams() -> None:
    """Nobody knows yet which of them it will be."""
    check_options(NEEDED | {"startingOffsets": "latest"})
    check_options(NEEDED | {"endingOffsets": "latest"})
    with pytest.raises(ConfigError, match=r"^minPartitions is a number from 1 to 100000, not 'x'$"):
        check_options(NEEDED | {"startingOffsets": "latest", "minPartitions": "x"})


def test_queues_are_assigned_with_or_without_their_broker() -> None:
    text = json.dumps({"orders": {"broker-a": [0, 1]}, "bills": [2]})
    topics = parse_options({"nameserver": "h:1", "assign": text}).topics
    assert topics.names == ("bills", "orders")
    assert topics.has(MessageQueue("orders", "broker-a", 1))
    assert not topics.has(MessageQueue("orders", "broker-b", 1))
    assert topics.has(MessageQueue("bills", "broker-b", 2))
    assert topics.absent([MessageQueue("orders", "broker-a", 0), MessageQueue("bills", "x", 2)]) == [
        MessageQueue("orders", "broker-a", 1)
    ]


def test_groups_that_did_not_manage() -> None:
    given = {"nameserver": "h:1"}
    assert parse_options(given | {"retryOf": "shop"}).topics.names == ("%RETRY%shop",)
    assert parse_options(given | {"dlqOf": "shop, bank"}).topics.names == ("%DLQ%shop", "%DLQ%bank")


def test_a_pattern_means_whole_names_and_dead_letters_only_when_asked() -> None:
    there = ["orders", "orders-2", "my-orders", "%DLQ%orders"]
    given = {"nameserver": "h:1"}
    assert parse_options(given | {"subscribePattern": "orders.*"}).topics.matching(there) == [
        "orders",
        "orders-2",
    ]
    assert parse_options(given | {"subscribePattern": ".*"}).topics.matching(there) == sorted(there[:3])
    assert parse_options(given | {"subscribePattern": "%DLQ%.*"}).topics.matching(there) == ["%DLQ%orders"]


def test_kafka_s_form_of_offsets_leaves_the_broker_out() -> None:
    offsets = parse(startingOffsets='{"orders": {"0": 23, "1": -2}}').start.by_queue
    assert offsets is not None
    there = [MessageQueue("orders", "broker-a", at) for at in range(3)]
    assert [offsets.of(queue) for queue in there] == [23, -2, None]
    assert (offsets.unnamed(there), offsets.unknown(there), offsets.ambiguous(there)) == ([there[2]], [], [])
    twice = [there[0], MessageQueue("orders", "broker-b", 0)]
    assert offsets.ambiguous(twice) == twice


def test_a_time_for_all_wins_over_times_by_queue_and_these_over_offsets() -> None:
    by_queue = '{"orders":{"b":{"0":1700000000000}}}'
    queue = MessageQueue("orders", "b", 0)
    start = parse(startingOffsetsByTimestamp=by_queue, startingOffsets="earliest").start
    assert start.moment_of(queue) == 1_700_000_000_000
    start = parse(startingOffsetsByTimestamp=by_queue, startingTimestamp="1700000000001").start
    assert start.moment_of(queue) == 1_700_000_000_001


def test_an_account_and_authorities_are_taken_and_the_secret_is_not_shown() -> None:
    found = parse(accessKey="ops", secretKey="very secret", tlsCaFile="/etc/ca.pem")
    ops, nameserver = Credentials("ops", "very secret"), NEEDED["nameserver"]
    assert found.cluster == ClusterAccess(nameserver, ops, Tls(ca_file="/etc/ca.pem"))
    assert "very secret" not in repr(found)
    found = parse(accessKey="ops", secretKey="very secret", securityToken="short-lived")
    assert found.cluster.credentials == Credentials("ops", "very secret", "short-lived")
    assert "short-lived" not in repr(found)
    assert parse(tlsCertFile="/etc/me.pem", tlsKeyFile="/etc/me.key").cluster.tls == Tls(
        cert_file="/etc/me.pem", key_file="/etc/me.key"
    )
    assert parse(tls="true").cluster.tls == Tls()
    assert parse().cluster == ClusterAccess(nameserver)
    for wrong, told in (
        ({"accessKey": "ops"}, "go together"),
        ({"secretKey": "x"}, "go together"),
        ({"securityToken": "x"}, "securityToken is that of an account"),
        ({"tlsKeyFile": "/etc/me.key"}, "give tlsCertFile too"),
        ({"tls": "false", "tlsCaFile": "/etc/ca.pem"}, "tlsCaFile contradicts tls=false"),
        ({"tls": "false", "tlsCertFile": "/etc/me.pem"}, "tlsCertFile contradicts tls=false"),
    ):
        with pytest.raises(ConfigError, match=told):
            parse(**wrong)
