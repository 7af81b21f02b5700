"""Blocks into batches: what a broker may answer, and what a task makes of it."""

from collections.abc import Iterator

import pytest

from bolide.model.message import SysFlag
from bolide.model.offsets import MessageQueue
from bolide.pipeline import task
from bolide.pipeline.errors import BadBody, DataLost
from bolide.pipeline.options import parse_options
from bolide.pipeline.plan import QueueRange
from bolide.pipeline.schema import arrow_schema, whole_schema
from tests.unit.pipeline.test_columns import record

QUEUE = MessageQueue("orders", "broker-a", 0)


def spoiled(offset: int) -> bytes:
    return record(queue_offset=offset, body=b"never packed", sys_flag=int(SysFlag.COMPRESSED))


def read(monkeypatch: pytest.MonkeyPatch, *blocks: bytes, **options: str) -> list[int]:
    """The offsets that come of these blocks."""

    def given(*_: object) -> Iterator[task.Block]:
        return ((block, 0, 100) for block in blocks)

    monkeypatch.setattr(task, "_blocks", given)
    parsed = parse_options({"nameserver": "h:1", "subscribe": "orders"} | options)
    batches = task.read_batches(parsed, QueueRange(QUEUE, 0, 100), arrow_schema(whole_schema()))
    return [row["queueOffset"] for batch in batches for row in batch.to_pylist()]


def test_a_body_that_does_not_unpack_holds_back_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(monkeypatch, record(queue_offset=1) + spoiled(2), record(queue_offset=3)) == [1, 2, 3]


def test_bad_bodies_that_are_left_out_are_counted_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    blocks = (record(queue_offset=1) + spoiled(2), spoiled(3) + record(queue_offset=4))
    assert read(monkeypatch, *blocks, badBodies="skip") == [1, 4]
    assert (
        "orders@broker-a:0 [0, 100): messages left out because their bodies do not unpack: 2" in caplog.text
    )


def test_bad_bodies_fail_when_the_user_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where lost data is no error: nothing is lost here."""
    with pytest.raises(BadBody, match=r"orders@broker-a:0: the message at offset 2: .*badBodies=deliver"):
        read(monkeypatch, spoiled(2), badBodies="fail", failOnDataLoss="false")


def test_bytes_that_are_no_record_are_lost_data(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What came before them is there, and what comes with the next answers."""
    blocks = (record(queue_offset=1) + b"\xff" * 200 + record(queue_offset=2), record(queue_offset=3))
    with pytest.raises(DataLost, match=r"orders@broker-a:0: the broker's answer .* cannot be read"):
        read(monkeypatch, *blocks)
    assert read(monkeypatch, *blocks, failOnDataLoss="false") == [1, 3]
    assert "cannot be read" in caplog.text
