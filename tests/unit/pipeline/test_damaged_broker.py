"""A message that is damaged on a broker's disk: the broker passes it over, and a read of its queue says so."""

import asyncio
from pathlib import Path

import pytest

from bolide import Message, Producer
from bolide.net.clock import SystemClock
from bolide.pipeline import moments
from bolide.pipeline.errors import DataLost
from bolide.pipeline.options import parse_options
from bolide.pipeline.plan import plan_read
from bolide.pipeline.pushed import EVERYTHING, Pushed
from bolide.pipeline.schema import arrow_schema, whole_schema
from bolide.pipeline.task import read_batches
from bolide.record.layout import MAGIC_V1
from bolide.store import reading
from bolide.testing import EmbeddedServer

BODIES = [b"body %d" % number for number in range(5)]


def read(server: EmbeddedServer, pushed: Pushed = EVERYTHING, **given: str) -> list[bytes]:
    options = parse_options({"nameserver": server.nameserver, "subscribe": "orders"} | given)
    (wanted,) = asyncio.run(plan_read(options, pushed))
    batches = read_batches(options, wanted, arrow_schema(whole_schema()))
    return [row["body"] for batch in batches for row in batch.to_pylist()]


def overwrite(root: Path, body: bytes, *, head: bool = False) -> None:
    """Damage the body of a message, or its head: then nobody can tell when it was stored."""
    (log,) = (root / "commitlog").iterdir()
    with log.open("r+b") as file:
        data = file.read()
        place = data.index(body)
        file.seek(data.rindex(MAGIC_V1.to_bytes(4, "big"), 0, place) if head else place)
        file.write(b"BODY")


def test_a_message_that_is_damaged_on_a_broker_s_disk_is_missing_and_its_offset_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with EmbeddedServer(data_dir=tmp_path, settings={"defaultTopicQueueNums": 1}) as server:
        with Producer(server.nameserver, group="shop") as producer:
            for body in BODIES:
                producer.send(Message("orders", body))
        assert read(server) == BODIES
        overwrite(tmp_path, b"body 2")
        with pytest.raises(DataLost, match=r"orders@.*:0: the broker does not give the message at offset 2,"):
            read(server)
        assert read(server, failOnDataLoss="false") == [*BODIES[:2], *BODIES[3:]]
        assert "at offset 2," in caplog.text


def test_a_read_up_to_a_time_has_what_is_before_it_behind_damage_that_nobody_looks_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether an option says the time or a filter of Spark's."""
    monkeypatch.setattr(reading, "LOOKS_MAX", 1)
    monkeypatch.setattr(reading, "WINDOW_ENTRIES", 1)
    monkeypatch.setattr(moments, "LOOKS_MAX", 1)
    with EmbeddedServer(data_dir=tmp_path, settings={"defaultTopicQueueNums": 1}) as server:
        with Producer(server.nameserver, group="shop") as producer:
            for body in BODIES:
                producer.send(Message("orders", body))
        for body in BODIES[1:4]:
            overwrite(tmp_path, body, head=True)
        later_ms = SystemClock().now_ms() + 60_000
        up_to: list[tuple[Pushed, dict[str, str]]] = [
            (EVERYTHING, {"endingTimestamp": str(later_ms)}),
            (EVERYTHING, {"endingOffsetsByTimestamp": f'{{"orders": {{"0": {later_ms}}}}}'}),
            (Pushed(time_max_ms=later_ms), {}),
        ]
        for pushed, given in up_to:
            with pytest.raises(DataLost, match=r"at offset.* 1\b"):
                read(server, pushed, **given)
            assert read(server, pushed, failOnDataLoss="false", **given) == [BODIES[0], BODIES[4]]
