"""A message that is damaged on a broker's disk: the broker passes it over, and a read of its queue says so."""

import asyncio
from pathlib import Path

import pytest

from bolide import Message, Producer
from bolide.pipeline.errors import DataLost
from bolide.pipeline.options import parse_options
from bolide.pipeline.plan import plan_read
from bolide.pipeline.schema import arrow_schema, whole_schema
from bolide.pipeline.task import read_batches
from bolide.testing import EmbeddedServer

BODIES = [b"body %d" % number for number in range(5)]


def read(server: EmbeddedServer, **given: str) -> list[bytes]:
    options = parse_options({"nameserver": server.nameserver, "subscribe": "orders"} | given)
    (wanted,) = asyncio.run(plan_read(options))
    batches = read_batches(options, wanted, arrow_schema(whole_schema()))
    return [row["body"] for batch in batches for row in batch.to_pylist()]


def test_a_message_that_is_damaged_on_a_broker_s_disk_is_missing_and_its_offset_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with EmbeddedServer(data_dir=tmp_path, settings={"defaultTopicQueueNums": 1}) as server:
        with Producer(server.nameserver, group="shop") as producer:
            for body in BODIES:
                producer.send(Message("orders", body))
        assert read(server) == BODIES
        (log,) = (tmp_path / "commitlog").iterdir()
        with log.open("r+b") as file:
            place = file.read().index(b"body 2")
            file.seek(place)
            file.write(b"BODY")
        with pytest.raises(DataLost, match=r"orders@.*:0: the broker does not give the message at offset 2,"):
            read(server)
        assert read(server, failOnDataLoss="false") == [*BODIES[:2], *BODIES[3:]]
        assert "at offset 2," in caplog.text
