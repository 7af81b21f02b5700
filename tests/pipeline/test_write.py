"""`DataFrame.write.format("rocketmq")` in a real Spark, on a real server."""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from bolide import PullConsumer
from bolide.model.java_hash import java_hash
from bolide.model.limits import SPARK_WRITE_FRAME_ROWS_MAX
from bolide.record.stored import StoredMessage
from bolide.testing import EmbeddedServer
from tests.peers.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.needs("java")


def write(frame: DataFrame, nameserver: str, **options: str) -> None:
    frame.write.format("rocketmq").mode("append").options(nameserver=nameserver, **options).save()


def stored(nameserver: str, topic: str) -> list[StoredMessage]:
    """All messages of a topic, queue by queue."""
    with PullConsumer(nameserver) as consumer:
        return [message for queue in consumer.queues(topic) for message in _of(consumer, queue)]


def _of(consumer: PullConsumer, queue: object) -> Iterator[StoredMessage]:
    offset = 0
    while messages := (result := consumer.pull(queue, offset)).messages:  # type: ignore[arg-type]
        yield from messages
        offset = result.next_offset


def bodies(messages: Iterable[StoredMessage]) -> Counter[bytes]:
    return Counter(message.body for message in messages)


def test_every_row_is_a_message_with_its_columns(spark: SparkSession, server: EmbeddedServer) -> None:
    rows = [
        Row(
            body=f"b{at}",
            tags="paid" if at % 2 else None,
            keys=[f"k{at}", "all"],
            properties={"city": "Köln"},
        )
        for at in range(5000)
    ]
    frame = spark.createDataFrame(
        rows, "body string, tags string, keys array<string>, properties map<string,string>"
    )
    write(frame.repartition(3), server.nameserver, topic="w-columns")
    found = stored(server.nameserver, "w-columns")
    assert bodies(found) == Counter(b"b%d" % at for at in range(5000))
    one = next(message for message in found if message.body == b"b7")
    assert (one.tags, one.keys, one.properties["city"]) == ("paid", ("k7", "all"), "Köln")
    assert next(message for message in found if message.body == b"b8").tags is None
    assert len({message.message_id for message in found}) == 5000


def test_the_requests_of_a_task_go_to_the_queues_in_turn(spark: SparkSession, server: EmbeddedServer) -> None:
    """Each task begins at a queue of its own, by chance; so it takes one task with a request for each queue."""
    rows = 4 * SPARK_WRITE_FRAME_ROWS_MAX
    frame = spark.range(rows).coalesce(1).selectExpr("cast(id AS string) AS body")
    write(frame, server.nameserver, topic="w-turns")
    found = Counter(message.queue_id for message in stored(server.nameserver, "w-turns"))
    assert found == Counter(dict.fromkeys(range(4), rows // 4))


def test_a_topic_column_sends_rows_apart_and_value_is_body(
    spark: SparkSession, server: EmbeddedServer
) -> None:
    frame = spark.range(300).selectExpr(
        "cast(cast(id as string) as binary) as value", "concat('w-topic-', id % 3) as topic"
    )
    write(frame, server.nameserver)
    for rest in range(3):
        expected = Counter(str(at).encode() for at in range(300) if at % 3 == rest)
        assert bodies(stored(server.nameserver, f"w-topic-{rest}")) == expected


def test_a_sharding_key_chooses_the_queue_as_java_does_and_keeps_order(
    spark: SparkSession, server: EmbeddedServer
) -> None:
    frame = (
        spark.range(3000)
        .coalesce(1)
        .selectExpr("cast(id as string) as body", "concat('kunde-ö-', id % 7) as sharding_key")
    )
    write(frame, server.nameserver, topic="w-sharding")
    found = stored(server.nameserver, "w-sharding")
    assert len(found) == 3000
    for message in found:
        key = f"kunde-ö-{int(message.body) % 7}"
        assert message.queue_id == abs(java_hash(key)) % 4
        assert message.properties["__SHARDINGKEY"] == key
    for queue_id in {message.queue_id for message in found}:
        numbers = [int(message.body) for message in found if message.queue_id == queue_id]
        assert numbers == sorted(numbers)


def test_a_queue_id_is_obeyed(spark: SparkSession, server: EmbeddedServer) -> None:
    frame = spark.range(100).selectExpr("cast(id as string) as body", "cast(id % 4 as int) as queue_id")
    write(frame, server.nameserver, topic="w-queue")
    assert all(message.queue_id == int(message.body) % 4 for message in stored(server.nameserver, "w-queue"))


def test_delays_wait_and_arrive(spark: SparkSession, server: EmbeddedServer) -> None:
    moment = datetime.now(UTC) + timedelta(seconds=3)
    frame = spark.createDataFrame(
        [("now", None, None), ("zero", 0, None), ("level", 1, None), ("moment", None, moment)],
        "body string, delay_level int, deliver_at timestamp",
    )
    write(frame, server.nameserver, topic="w-delays")
    assert {b"now", b"zero"} <= set(bodies(stored(server.nameserver, "w-delays")))
    wait_until(
        lambda: len(stored(server.nameserver, "w-delays")) == 4,
        PATIENCE_SECONDS,
        "the delayed messages do not come",
    )
    found = {message.body: message for message in stored(server.nameserver, "w-delays")}
    assert found[b"moment"].store_timestamp_ms >= moment.timestamp() * 1000
    assert found[b"level"].store_timestamp_ms - found[b"level"].born_timestamp_ms >= 1000


def test_a_topic_read_can_be_written_to_another(spark: SparkSession, server: EmbeddedServer) -> None:
    """Properties that the broker or the client writes are made anew."""
    orders = spark.read.format("rocketmq").options(nameserver=server.nameserver, subscribe="orders").load()
    write(orders.select("body", "tags", "keys", "properties"), server.nameserver, topic="w-copy")
    copied = stored(server.nameserver, "w-copy")
    source = {row.body: row for row in orders.collect()}
    assert bodies(copied) == Counter(source.keys())
    one = next(message for message in copied if message.body == b"order 9")
    assert (one.tags, one.keys, one.properties["city"]) == ("paid", ("k9", "all"), "Köln")
    assert one.message_id != source[b"order 9"].msgId


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("if(id = 7, null, 'x') as body", "row 7: the column body is null"),
        ("if(id = 7, '', 'x') as body", "row 7: the column body has 0 bytes"),
        ("if(id = 7, repeat('x', 5000000), 'x') as body", "row 7: the column body has 5000000 bytes"),
        ("'x' as body, if(id = 8, 'a b', 'a') as tags", "row 8: the column tags is one word"),
        ("'x' as body, if(id = 3, 99, 0) as queue_id", "row 3: the column queue_id is 99; the topic has"),
        ("'x' as body, if(id = 3, 999, 0) as delay_level", "row 3: the column delay_level is 999"),
    ],
)
def test_a_bad_row_is_named_and_nothing_of_its_batch_is_sent(
    spark: SparkSession, server: EmbeddedServer, expression: str, said: str
) -> None:
    frame = spark.range(10).coalesce(1).selectExpr(*_expressions(expression))
    before = len(stored(server.nameserver, "orders"))
    with pytest.raises(PySparkException) as caught:
        write(frame, server.nameserver, topic="orders")
    assert said in str(caught.value)
    assert "Traceback" not in str(caught.value)
    assert len(stored(server.nameserver, "orders")) == before


def _expressions(text: str) -> list[str]:
    first, separator, second = text.partition(" as body, ")
    return [f"{first} as body", second] if separator else [text]


def test_wrong_options_and_columns_are_all_said_before_anything_is_sent(
    spark: SparkSession, server: EmbeddedServer
) -> None:
    frame = spark.range(1).selectExpr("'x' as body", "'t' as tagz", "1 as keys")
    with pytest.raises(AnalysisException) as caught:
        write(frame, server.nameserver, producerGroop="g")
    text = str(caught.value)
    assert "did you mean producerGroup?" in text
    assert "no column 'tagz' (did you mean tags?)" in text
    assert "the column keys is string or array<string>, not int" in text
    assert "nobody says where to write to" in text


def test_overwrite_is_refused(spark: SparkSession, server: EmbeddedServer) -> None:
    frame = spark.range(1).selectExpr("'x' as body")
    with pytest.raises(AnalysisException, match="cannot be overwritten"):
        frame.write.format("rocketmq").mode("overwrite").options(
            nameserver=server.nameserver, topic="orders"
        ).save()


def test_a_name_server_that_is_not_there_is_named_at_once(spark: SparkSession) -> None:
    frame = spark.range(1).selectExpr("'x' as body")
    with pytest.raises(PySparkException, match=r"127\.0\.0\.1:1\b"):
        write(frame, "127.0.0.1:1", topic="orders")
