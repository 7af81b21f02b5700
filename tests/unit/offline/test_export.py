"""Messages of a stopped store: all that consumers would get, in the order of the log."""

import struct
from pathlib import Path

import pytest

from bolide.offline.export import Export, Selection
from bolide.offline.files import StoreFiles
from bolide.record.decode import each_message
from bolide.store.disk_os import OsDisk
from tests.unit.offline.damaged import MESSAGES, original, queue_file, root, segment, write_at
from tests.unit.offline.test_verify import record_at
from tests.unit.store.stage import killed, message, opened, put, put_many

__all__ = ["original", "root"]  # fixtures


def exported(root: Path, selection: Selection | None = None) -> list[bytes]:
    store = StoreFiles(OsDisk(), str(root))
    export = Export(store, selection or Selection())
    found = [message.body for block in export.blocks() for message in each_message(block, "b")]
    store.close()
    assert export.messages == len(found)
    return found


def numbered(*numbers: int) -> list[bytes]:
    return [b"body of message %05d" % number for number in numbers]


def test_everything_comes_in_the_order_of_the_log(root: Path) -> None:
    assert exported(root) == numbered(*range(MESSAGES))


def test_a_topic_and_a_queue_can_be_chosen(root: Path) -> None:
    assert exported(root, Selection(topic="orders")) == numbered(*range(0, MESSAGES, 2))
    assert exported(root, Selection("payments", 1)) == numbered(*range(3, MESSAGES, 4))
    assert exported(root, Selection("nothing")) == []


def test_a_time_can_be_chosen(root: Path) -> None:
    """Message n was stored n + 1 seconds after the start."""
    start = 1_700_000_000_000
    chosen = Selection(since_ms=start + 31_000, until_ms=start + 35_000)
    assert exported(root, chosen) == numbered(30, 31, 32, 33)


def test_messages_whose_entry_was_not_written_are_there(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 3)
    store.append([message(body=b"late")])
    killed(store)
    assert exported(tmp_path)[-1] == b"late"


def test_messages_whose_entry_is_damaged_are_there(root: Path) -> None:
    write_at(queue_file(root), 40, struct.pack(">qiq", 1, 2, 3))
    write_at(queue_file(root), 80, bytes(20))
    assert exported(root) == numbered(*range(MESSAGES))


def test_a_damaged_message_is_left_out(root: Path) -> None:
    path, at, _ = record_at(root, 5)
    write_at(path, at + 90, b"!")
    assert exported(root) == numbered(*(n for n in range(MESSAGES) if n != 5))


def test_deleted_topics_are_not_brought_back(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put(store, *(message("T", b"old %d" % number) for number in range(5)))
    store.delete_topic("T")
    put(store, message("T", b"new"))
    store.close()
    assert exported(tmp_path) == [b"new"]


@pytest.mark.parametrize("topic", [None, "orders"])
def test_what_retention_took_is_not_missed(root: Path, topic: str | None) -> None:
    segment(root, 0).unlink()
    found = exported(root, Selection(topic))
    assert found
    assert found[-1] in numbered(MESSAGES - 1, MESSAGES - 2)
