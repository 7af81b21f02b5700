"""Options of a read of store files: what they say, and what is said when they are wrong."""

import pytest

from bolide.model.errors import ConfigError
from bolide.pipeline.store_options import StoreOptions, parse_store_options


def test_a_path_is_enough() -> None:
    assert parse_store_options({"path": "/data/store"}) == StoreOptions("/data/store")


def test_everything_can_be_said() -> None:
    found = parse_store_options(
        {
            "path": "/data/store",
            "topic": "orders, payments",
            "includesystemtopics": "true",
            "startingTimestamp": "1700000000000",
            "endingTimestamp": "1700000000001",
            "tags": "a || b",
            "keys": "k1,k2",
            "columns": "body, tags",
            "badBodies": "skip",
            "failOnDataLoss": "false",
            "brokerName": "broker-a",
            "minPartitions": "7",
            "maxBytesPerPartition": "1048576",
        }
    )
    assert found == StoreOptions(
        "/data/store",
        topics=("orders", "payments"),
        includes_system_topics=True,
        since_ms=1_700_000_000_000,
        until_ms=1_700_000_000_001,
        tags=frozenset({"a", "b"}),
        keys=frozenset({"k1", "k2"}),
        columns=("body", "tags"),
        bad_bodies="skip",
        fail_on_data_loss=False,
        broker_name="broker-a",
        min_partitions=7,
        part_bytes_max=1_048_576,
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "the option path is missing"),
        ({"nameserver": "h:1"}, "the option nameserver is for"),
        ({"storePath": "/x"}, "it is called path here"),
        ({"subscribePattern": "("}, "is no regular expression"),
        ({"topic": "SCHEDULE_TOPIC_XXXX"}, "say includeSystemTopics=true"),
        ({"startingTimestamp": "1700000000"}, "looks like seconds"),
        ({"startingTimestamp": "2000000000000", "endingTimestamp": "1900000000000"}, "is later than"),
        ({"columns": " , "}, "columns names no column"),
        ({"maxBytesPerPartition": "1"}, "maxBytesPerPartition is a number from"),
        ({"brokerName": "b" * 2000}, "is longer than"),
        ({"topic": "a", "subscribePattern": "b"}, "contradict each other"),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_store_options(given)
