"""What a start makes of records whose number in their queue cannot be, and of names that no folder can have.

No checksum covers the numbers of a record that is not sealed.
"""

import shutil
from pathlib import Path

import pytest

from bolide.model.names import SCHEDULE_TOPIC
from bolide.record.layout import QUEUE_OFFSET_AT
from bolide.store import recover
from bolide.store.new_message import Appended
from bolide.store.queue_index import ConsumeQueue
from bolide.store.store import MessageStore
from tests.unit.store.stage import (
    SEGMENT_BYTES,
    bodies,
    killed,
    make_durable,
    message,
    opened,
    put,
    put_many,
)
from tests.unit.store.test_recover import damage, segment


def give_number(root: Path, log_offset: int, number: int, segments: int = 2**20) -> None:
    """`segments` of the usual size are in each."""
    at = log_offset % (segments * SEGMENT_BYTES)
    path = segment(root, (log_offset - at) // SEGMENT_BYTES)
    damage(path, at + QUEUE_OFFSET_AT, number.to_bytes(8, "big", signed=True))


@pytest.mark.parametrize("number", [1 << 40, 1 << 59, (1 << 63) - 1, -(1 << 40)])
@pytest.mark.parametrize("damaged", [0, 3])
def test_a_number_that_no_record_can_have_costs_that_record_and_no_other(
    tmp_path: Path, damaged: int, number: int
) -> None:
    """Also where the log begins with it, and there are no files to say what is right."""
    store = opened(tmp_path)
    appended = put_many(store, 20)
    killed(store)
    shutil.rmtree(tmp_path / "consumequeue")
    give_number(tmp_path, int(appended[damaged].log_offset), number)
    for stop in (killed, MessageStore.close, killed):
        store = opened(tmp_path)
        assert store.reader.queue_range("T", 0) == (0 if damaged else 1, 20)
        expected = [b"%05d" % one for one in range(20)]
        assert [body for body in bodies(store) if body != expected[damaged]] == (
            expected[:damaged] + expected[damaged + 1 :]
        )
        stop(store)
    store = opened(tmp_path)
    (behind,) = put(store, message(body=b"behind"))
    assert behind.queue_offset == 20
    assert bodies(store)[-1] == b"behind"
    store.close()


def flip(root: Path, appended: Appended, bit: int, segments: int = 2**20) -> int:
    """One bit of a record's number becomes 1; the number that it says now."""
    number = int(appended.queue_offset)
    assert not number & 1 << bit
    give_number(root, int(appended.log_offset), number | 1 << bit, segments)
    return number | 1 << bit


BIG = 256 * SEGMENT_BYTES
COUNT = 40


@pytest.mark.parametrize(
    ("damaged", "bit"),
    [(0, 0), (0, 4), (0, 11), (1, 4), (10, 0), (10, 2), (10, 4), (10, 11), (38, 0), (38, 11)],
)
@pytest.mark.parametrize("segments", [16, 256])
@pytest.mark.parametrize("files", ["lost", "kept", "older"])
def test_a_number_that_one_bit_makes_too_high_hides_no_message_behind_it(
    tmp_path: Path, damaged: int, bit: int, files: str, segments: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Wherever the walk begins: the log is long enough for such a number, so only the next record shows it."""
    store = opened(tmp_path, segment_bytes=segments * SEGMENT_BYTES)
    put(store, message("Other", bytes(50_000)), message("Other", bytes(50_000)))
    before = put_many(store, damaged if files == "older" else 0)
    if files == "older":
        make_durable(store)
    appended = before + put_many(store, COUNT - len(before))
    killed(store)
    if files == "lost":
        shutil.rmtree(tmp_path / "consumequeue")
    flip(tmp_path, appended[damaged], bit, segments)
    texts = [b"%05d" % number for number in range(len(before))]
    texts += [b"%05d" % number for number in range(COUNT - len(before))]
    for stop in (killed, MessageStore.close, killed):
        store = opened(tmp_path, segment_bytes=segments * SEGMENT_BYTES)
        found = bodies(store)
        assert found[damaged - COUNT + 1 :] == texts[damaged + 1 :]
        assert found[:damaged] == texts[:damaged]
        assert store.reader.queue_range("T", 0)[1] == COUNT
        stop(store)
    assert "from the whole log" not in caplog.text or files == "lost"
    store = opened(tmp_path, segment_bytes=segments * SEGMENT_BYTES)
    (behind,) = put(store, message(body=b"behind"))
    assert behind.queue_offset == COUNT
    assert bodies(store)[-1] == b"behind"
    store.close()


def test_a_queue_that_goes_on_behind_a_gap_does_so_with_all_its_messages(tmp_path: Path) -> None:
    """Numbers that are missing in the log, with a record behind them that nothing contradicts; also at the end."""
    store = opened(tmp_path, segment_bytes=BIG)
    put(store, message("Other", bytes(90_000)))
    appended = put_many(store, 20)
    delayed = put_many(store, 4, SCHEDULE_TOPIC, 2)
    killed(store)
    shutil.rmtree(tmp_path / "consumequeue")
    for number, one in enumerate(appended):
        give_number(tmp_path, int(one.log_offset), number + 100 * (number >= 10) + 100 * (number == 19))
    for number, one in enumerate(delayed):
        give_number(tmp_path, int(one.log_offset), 1000 + number)
    for _ in range(2):
        store = opened(tmp_path, segment_bytes=BIG)
        assert store.reader.queue_range("T", 0) == (0, 220)
        assert store.reader.queue_range(SCHEDULE_TOPIC, 2) == (1000, 1004)
        assert list(dict.fromkeys(bodies(store))) == [b"%05d" % one for one in range(20)]
        assert bodies(store, SCHEDULE_TOPIC, 2) == [b"%05d" % one for one in range(4)]
        killed(store)


@pytest.mark.parametrize("damaged", [(1,), (1, 2)])
@pytest.mark.parametrize("topic", ["T", SCHEDULE_TOPIC])
def test_what_stands_for_a_lost_message_is_the_entry_of_one_behind_it(
    tmp_path: Path, topic: str, damaged: tuple[int, ...]
) -> None:
    """Also when that is delayed: RocketMQ gives it out when the entry says, which is not at once."""
    store = opened(tmp_path, segment_bytes=BIG)
    put(store, message("Other", bytes(90_000)))
    delayed = message(topic, properties=b"DELAY\x011\x02TAGS\x01t\x02")
    appended = put(store, *[delayed] * 3)
    queue = store.queues.get(topic, 0)
    first, second, third = (queue.entry(number) for number in range(3))
    assert third is not None
    killed(store)
    shutil.rmtree(tmp_path / "consumequeue")
    for number in damaged:
        flip(tmp_path, appended[number], 4)
    expected = [first, third, third] if damaged == (1,) else [first, *[second] * 17, third]
    for _ in range(2):
        store = opened(tmp_path, segment_bytes=BIG)
        queue = store.queues.get(topic, 0)
        assert [queue.entry(number) for number in range(int(queue.end))] == expected
        found = expected[1]
        assert found is not None
        assert store.reader.entry_at(topic, 0, 1, found[0], found[1]) is None  # that one is not number 1
        killed(store)


def test_a_jump_at_the_end_of_a_queue_is_believed_and_one_that_was_deleted_is_not(tmp_path: Path) -> None:
    """Nothing is behind it that could be hidden; and a topic that was made again begins at 0."""
    store = opened(tmp_path, segment_bytes=BIG)
    put(store, message("Other", bytes(90_000)))
    appended = put_many(store, 3)
    (again,) = put_many(store, 1, "Again")
    store.delete_topic("Again")
    put_many(store, 1, "Again")
    killed(store)
    assert flip(tmp_path, appended[2], 8) == 258
    flip(tmp_path, again, 8)
    store = opened(tmp_path, segment_bytes=BIG)
    assert store.reader.queue_range("T", 0) == (0, 259)
    assert bodies(store)[-1] == b"00002"
    assert store.reader.queue_range("Again", 0) == (0, 1)
    killed(store)


def test_a_jump_whose_queue_begins_anew_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing behind it tells what it was.  In a queue that goes on, the next record that can tell does."""
    store = opened(tmp_path, segment_bytes=BIG)
    put(store, message("Other", bytes(90_000)))
    appended = put_many(store, 6)
    more = put_many(store, 6, "More")
    killed(store)
    shutil.rmtree(tmp_path / "consumequeue")
    assert flip(tmp_path, appended[3], 8) == 259
    give_number(tmp_path, int(appended[4].log_offset), 0)
    give_number(tmp_path, int(appended[5].log_offset), 1)
    assert flip(tmp_path, more[3], 8) == 259
    give_number(tmp_path, int(more[4].log_offset), 1)
    store = opened(tmp_path, segment_bytes=BIG)
    assert store.reader.queue_range("T", 0) == (0, 2)
    assert bodies(store) == [b"00004", b"00005"]
    assert caplog.text.count("wrong queue offset, 259") == 2
    assert store.reader.queue_range("More", 0) == (0, 6)
    killed(store)


@pytest.mark.parametrize("number", [12, 100, 139])
def test_a_number_that_is_too_low_hides_no_message_before_it_whatever_has_expired(
    tmp_path: Path, number: int
) -> None:
    """The first record behind the mark.  The message of this number has expired, is lost, or is there."""
    store = opened(tmp_path)
    before = put_many(store, 140)
    killed(store)
    shutil.rmtree(tmp_path / "consumequeue")
    flip(tmp_path, before[100], 4, segments=1)
    opened(tmp_path).close()
    for base in range(2):
        segment(tmp_path, base).unlink()
    first = next(number for number, one in enumerate(before) if one.log_offset >= 2 * SEGMENT_BYTES)
    assert 12 < first < 100
    store = opened(tmp_path)
    appended = put_many(store, 10)
    killed(store)
    give_number(tmp_path, int(appended[0].log_offset), number, segments=1)
    for _ in range(2):
        store = opened(tmp_path)
        assert store.reader.queue_range("T", 0) == (first, 150)
        expected = [*range(first, 100), *range(101, 140), *range(1, 10)]
        assert bodies(store) == [b"%05d" % one for one in expected]
        killed(store)


def test_what_fills_gaps_is_written_before_it_takes_much_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers grow faster than records do, as in batches that the original stores as one record."""
    count, step, most = 300, 4, 50
    record_bytes = 256
    store = opened(tmp_path, segment_bytes=256 * SEGMENT_BYTES)
    (first,) = put(store, message())
    body = bytes(record_bytes + len(b"body") - int(first.end))
    for _ in range(1, count):
        put(store, message(body=body))
    killed(store)
    shutil.rmtree(tmp_path / "consumequeue")
    for number in range(1, count):
        give_number(tmp_path, int(first.end) + (number - 1) * record_bytes, number * step)

    in_memory: list[int] = []
    write_behind = ConsumeQueue.write_behind

    def counted(queue: ConsumeQueue) -> None:
        in_memory.append(queue.tail.next_offset - queue.tail.start)
        write_behind(queue)

    monkeypatch.setattr(ConsumeQueue, "write_behind", counted)
    monkeypatch.setattr(recover, "ENTRIES_IN_MEMORY_MAX", most)
    store = opened(tmp_path, segment_bytes=256 * SEGMENT_BYTES)
    assert store.reader.queue_range("T", 0) == (0, (count - 1) * step + 1)
    assert max(in_memory) <= most
    store.close()


@pytest.mark.parametrize("length", [255, 256, 300])
def test_a_topic_in_the_log_that_is_too_long_for_a_folder_ends_it_as_one_that_is_no_name(
    tmp_path: Path, length: int
) -> None:
    store = opened(tmp_path)
    put(store, message())
    (long, behind) = (store.append([message("t" * length)])[0], store.append([message()])[0])
    killed(store)
    fits = length == 255
    for _ in range(2):
        store = opened(tmp_path)
        assert store.log.end == (behind.end if fits else long.log_offset)
        assert len(bodies(store)) == 1 + fits
        killed(store)
