"""Records that a real Apache RocketMQ 5.5.0 broker wrote: what they mean, and that our store takes them over."""

from pathlib import Path

import pytest

from bolide.record.codec import RecordHead, encode_record, inspect_record
from bolide.record.decode import decode_messages
from tests.unit.store.stage import bodies, message, opened, put, queue_bytes

GOLDEN = Path(__file__).parents[2] / "golden" / "records-5.5.0"
LOG = (GOLDEN / "commitlog").read_bytes()
QUEUE = (GOLDEN / "consumequeue").read_bytes()


def heads() -> list[RecordHead]:
    found, at = [], 0
    while at < len(LOG):
        head = inspect_record(LOG, at, len(LOG), True)
        assert isinstance(head, RecordHead)
        found.append(head)
        at += head.size
    return found


def test_the_original_s_records_decode() -> None:
    first, second, *batch = decode_messages(LOG, "broker-a")
    assert (first.topic, first.body, first.tags, first.flag, first.queue_id) == (
        "Golden",
        b"hello",
        "TagA",
        5,
        1,
    )
    assert first.message_id == "7F0000010000000000000000000000A1"
    assert first.born_timestamp_ms == 1_700_000_000_001
    assert first.store_host.startswith("127.0.0.1:")
    assert (second.body.decode(), second.tags, second.keys) == ("größer", "\U0001f600", ("k1", "k2"))
    assert len(second.message_id) == 56  # made by the broker, because the client had none
    assert [(one.body, one.queue_offset, one.flag) for one in batch] == [(b"one", 2, 0), (b"two", 3, 1)]
    assert "CLUSTER" in first.properties
    assert "CLUSTER" not in batch[0].properties  # nothing is added to the messages of a batch


def test_our_codec_writes_the_original_s_bytes() -> None:
    for head in heads():
        at = int(head.log_offset)
        record = LOG[at : at + head.size]
        assert record == encode_record(
            topic=head.topic,
            body=record[head.body_at :][: head.body_length],
            properties=record[head.properties_at :],
            queue_id=head.queue_id,
            flag=int.from_bytes(record[16:20], "big", signed=True),
            queue_offset=head.queue_offset,
            log_offset=head.log_offset,
            sys_flag=head.sys_flag,
            born_timestamp_ms=int.from_bytes(record[40:48], "big"),
            born_host=record[48:56],
            store_timestamp_ms=head.store_timestamp_ms,
            store_host=record[64:72],
            reconsume_times=int.from_bytes(record[72:76], "big"),
            prepared_offset=int.from_bytes(record[76:84], "big"),
        )


@pytest.mark.parametrize("abort", [True, False])
@pytest.mark.parametrize("with_queue", [True, False])
def test_our_store_goes_on_where_the_original_stopped(tmp_path: Path, with_queue: bool, abort: bool) -> None:
    """The rebuilt queue is the original's, byte for byte."""
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / f"{0:020d}").write_bytes(LOG.ljust(4096, b"\0"))
    if with_queue:
        (tmp_path / "consumequeue" / "Golden" / "1").mkdir(parents=True)
        (tmp_path / "consumequeue" / "Golden" / "1" / f"{0:020d}").write_bytes(QUEUE.ljust(200, b"\0"))
    if abort:
        (tmp_path / "abort").write_bytes(b"1")
    store = opened(tmp_path)
    (ours,) = put(store, message("Golden", b"ours", queue_id=1))
    assert (ours.log_offset, ours.queue_offset) == (len(LOG), 4)
    assert bodies(store, "Golden", 1) == [b"hello", "größer".encode(), b"one", b"two", b"ours"]
    assert queue_bytes(tmp_path, "Golden", 1)[: len(QUEUE)] == QUEUE
    store.close()
