"""What a producer can do to a Spark read of its topic: its messages cost nobody theirs.

The read is planned and done as Spark's driver and tasks do it, without a Spark around it.
"""

import asyncio
import zlib
from typing import Any

from bolide.model.limits.spark import SPARK_BATCH_BYTES_MAX
from bolide.pipeline.options import parse_options
from bolide.pipeline.plan import plan_read
from bolide.pipeline.schema import arrow_schema, whole_schema
from bolide.pipeline.task import read_batches
from tests.peers import frames
from tests.peers.server import Together
from tests.peers.waiting import PATIENCE_SECONDS, wait_until

PACKED = {"f": "1"}  # sysFlag: the body is packed
BOMB_BYTES = 32 * 1024 * 1024


def send(server: Together, topic: str, body: bytes, **fields: str) -> None:
    with frames.Connection(server.broker) as connection:
        answer = connection.ask(frames.SEND_MESSAGE_V2, frames.send_fields(topic, queues=1) | fields, body)
        assert answer.code == frames.SUCCESS, answer


def read(server: Together, topic: str, **options: str) -> list[Any]:
    """All batches of the topic."""
    wait_until(lambda: has_route(server, topic), PATIENCE_SECONDS, "the name server does not know the topic")
    parsed = parse_options({"nameserver": server.nameserver, "subscribe": topic} | options)
    ranges = asyncio.run(plan_read(parsed))
    schema = arrow_schema(whole_schema())
    return [batch for one in ranges for batch in read_batches(parsed, one, schema)]


def has_route(server: Together, topic: str) -> bool:
    with frames.Connection(server.nameserver) as connection:
        return connection.ask(frames.GET_ROUTE, {"topic": topic}).code == frames.SUCCESS


def rows(batches: list[Any]) -> list[tuple[bytes, str | None]]:
    return [(row["body"], row["bodyError"]) for batch in batches for row in batch.to_pylist()]


def test_one_body_that_does_not_unpack_stops_nobody(server: Together) -> None:
    bodies = [b"before", b"never packed", b"after"]
    for body in bodies:
        send(server, "spoiled", body, **(PACKED if body == b"never packed" else {}))
    found = rows(read(server, "spoiled"))
    assert [body for body, _ in found] == bodies
    assert [error is None for _, error in found] == [True, False, True]
    assert [body for body, _ in rows(read(server, "spoiled", badBodies="skip"))] == [b"before", b"after"]


def test_properties_that_are_no_properties_stop_nobody(server: Together) -> None:
    for properties in (
        "\x01\x02\x01\x01\x02",
        "TAGS",
        "TAGS\x01",
        "KEYS\x01" + " " * 500 + "\x02",
        "\ufffd" * 300,
    ):
        send(server, "odd", b"x", i=properties)
    assert len(rows(read(server, "odd"))) == 5


def test_bombs_come_a_few_at_a_time(server: Together) -> None:
    """Six bodies of 32 kB that are 192 MiB unpacked: no batch has more than one bomb above its bound."""
    bomb = zlib.compress(bytes(BOMB_BYTES), 9)
    assert len(bomb) < 40_000
    for _ in range(6):
        send(server, "bombs", bomb, **PACKED)
    sizes = [(batch.num_rows, batch.nbytes) for batch in read(server, "bombs")]
    assert [count for count, _ in sizes] == [1] * 6
    assert max(size for _, size in sizes) <= SPARK_BATCH_BYTES_MAX + BOMB_BYTES
