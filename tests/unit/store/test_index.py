"""Messages by key: what index files hold, and what is found in them.  Numbers in brackets are of the check-list."""

from pathlib import Path

import pytest

from bolide.model.limits import INDEXED_WORDS_MAX
from bolide.model.message import SysFlag
from bolide.model.steps import at_once
from bolide.store import index_keys
from bolide.store.index_file import IndexSizes
from bolide.store.index_layout import index_key, key_hash, tag_key
from tests.unit.store.index_stage import (
    ALWAYS,
    SIZES,
    Entry,
    caught_up,
    entries_of,
    files,
    found,
    header_of,
    index_of,
    keyed,
    opened_with_index,
    put_keyed,
)
from tests.unit.store.stage import HeldClock, put

GOLDEN = Path(__file__).parents[2] / "golden" / "index-5.5.0"
GOLDEN_SIZES = IndexSizes(slots=100, entries=12)
NOW_MS = HeldClock().ms


def test_one_message_makes_an_entry_for_each_of_its_keys(tmp_path: Path) -> None:
    """[IX-01] Entry 0 is never used, and the number of entries in the header begins with 1."""
    store = opened_with_index(tmp_path)
    put(store, keyed(b"b", "U", "k1"))
    store.close()
    (path,) = files(tmp_path)
    assert header_of(path) == (NOW_MS, NOW_MS, 0, 0, 2, 3)
    assert entries_of(path) == [
        Entry(0, 0, 0, 0),
        Entry(key_hash("T#U"), 0, 0, 0),
        Entry(key_hash("T#k1"), 0, 0, 0),
    ]
    assert path.stat().st_size == 40 + 4 * SIZES.slots + 20 * SIZES.entries


def test_a_message_is_found_by_so_many_words_and_takes_no_more_room(tmp_path: Path) -> None:
    """Thousands of words made an index of four times their size.  Its tag and its id are found all the same."""
    store = opened_with_index(tmp_path, IndexSizes(10, 1000), segment_bytes=65536)
    words = " ".join(f"w{number}" for number in range(5000))
    put(store, keyed(b"b", "U", words, "A"), keyed(b"next", "N", "w0"))
    assert [found(store, word) for word in ("U", "w0", f"w{INDEXED_WORDS_MAX - 1}")] == [
        [b"b"],
        [b"b", b"next"],
        [b"b"],
    ]
    assert found(store, "A", tag=True) == [b"b"]
    assert found(store, f"w{INDEXED_WORDS_MAX}") == []
    store.close()
    (path,) = files(tmp_path)
    assert header_of(path)[-1] == 1 + (1 + INDEXED_WORDS_MAX + 1) + 2


def test_the_newest_messages_are_told_that_fit_an_answer_and_one_in_any_case(tmp_path: Path) -> None:
    store = opened_with_index(tmp_path)
    put_keyed(store, 4)
    each = int(store.log.end) // 4
    assert found(store, "all", size_bytes_max=2 * each) == [b"b2", b"b3"]
    assert found(store, "all", size_bytes_max=1) == [b"b3"]


def test_entries_of_one_slot_are_a_chain_from_the_newest_to_the_oldest(tmp_path: Path) -> None:
    """[IX-02]"""
    store = opened_with_index(tmp_path, IndexSizes(slots=1, entries=50))
    put(store, keyed(b"one", "U1"), keyed(b"two", "U2"), keyed(b"three", "U3"))
    assert [found(store, key) for key in ("U1", "U2", "U3")] == [[b"one"], [b"two"], [b"three"]]
    store.close()
    (path,) = files(tmp_path)
    assert [entry.older for entry in entries_of(path, IndexSizes(1, 50))] == [0, 0, 1, 2]
    assert path.read_bytes()[40:44] == b"\0\0\0\3"
    assert header_of(path).slots_used == 1


def test_a_message_is_found_by_each_of_its_words_and_by_its_tag(tmp_path: Path) -> None:
    """[IX-03] Words are separated by single blanks; all of them together are no key."""
    store = opened_with_index(tmp_path)
    put(store, keyed(b"b", "U", " a  b\tc ", "red"), keyed(b"other", "V", "z", "blue"))
    for word, bodies in (("a", [b"b"]), ("b\tc", [b"b"]), ("b", []), ("a b", []), ("U", [b"b"]), ("red", [])):
        assert found(store, word) == bodies, word
    assert found(store, "red", tag=True) == [b"b"]
    assert found(store, "T#red") == [b"b"]  # as RocketMQ spells the key of a tag
    assert tag_key("T", "red") == index_key("T", "T#red")
    store.close()


def test_only_messages_stored_in_the_window_are_found(tmp_path: Path) -> None:
    """[IX-04] The index has whole seconds, the answer is exact to the millisecond."""
    clock = HeldClock()
    store = opened_with_index(tmp_path, clock=clock)
    for body, moment_ms in ((b"one", NOW_MS), (b"two", NOW_MS + 1_900), (b"three", NOW_MS + 5_200)):
        clock.ms = moment_ms
        put(store, keyed(body, body.decode(), "k"))
    for window, bodies in (
        ((0, NOW_MS - 1), []),
        ((0, NOW_MS), [b"one"]),
        ((NOW_MS + 1, NOW_MS + 1_899), []),
        ((NOW_MS + 1_900, NOW_MS + 1_900), [b"two"]),
        ((NOW_MS + 1_901, 2**62), [b"three"]),
        ((NOW_MS + 5_201, 2**62), []),
        ((2**63 - 1, -(2**63)), []),
    ):
        assert found(store, "k", window=window) == bodies, window
    store.close()
    (path,) = files(tmp_path)
    assert [entry.seconds for entry in entries_of(path)] == [0, 0, 0, 1, 1, 5, 5]


def test_keys_of_one_hash_are_found_together(tmp_path: Path) -> None:
    """[IX-05] Whoever asks compares the text."""
    store = opened_with_index(tmp_path)
    put(store, keyed(b"one", "U1", "Aa"), keyed(b"two", "U2", "BB"))
    assert found(store, "Aa") == found(store, "BB") == [b"one", b"two"]
    store.close()


def test_messages_of_another_topic_with_the_same_key_are_not_found(tmp_path: Path) -> None:
    store = opened_with_index(tmp_path)
    put(store, keyed(b"one", "U1", "k"), keyed(b"other", "U2", "k", topic="T2"))
    assert found(store, "k") == [b"one"]
    store.close()


def test_a_full_file_is_followed_by_a_new_one_and_still_searched(tmp_path: Path) -> None:
    """[IX-06] A file of n has n - 1 entries, even where that divides the keys of a message."""
    store = opened_with_index(tmp_path, IndexSizes(slots=10, entries=4))
    put_keyed(store, 4)
    assert [found(store, f"U{n}") for n in range(4)] == [[b"b0"], [b"b1"], [b"b2"], [b"b3"]]
    assert found(store, "all") == [b"b0", b"b1", b"b2", b"b3"]
    assert found(store, "all", count_max=3) == [b"b1", b"b2", b"b3"]
    store.close()
    assert [header_of(path).next_entry for path in files(tmp_path)] == [4, 4, 3]
    assert [len(path.name) for path in files(tmp_path)] == [17] * 3


def test_names_of_files_follow_each_other_when_the_clock_goes_back(tmp_path: Path) -> None:
    clock = HeldClock()
    store = opened_with_index(tmp_path, IndexSizes(slots=10, entries=3), clock=clock)
    for number in range(4):
        put_keyed(store, 1, first=number)
        clock.ms -= 3_600_000
        caught_up(store)
    store.close()
    ends = [header_of(path).end_offset for path in files(tmp_path)]
    assert len(ends) == 4
    assert ends == sorted(ends)


def test_a_message_without_keys_and_one_rolled_back_have_no_entry(tmp_path: Path) -> None:
    """[IX-07] A prepared message has."""
    store = opened_with_index(tmp_path)
    put(
        store,
        keyed(b"nameless"),
        keyed(b"prepared", "P", sys_flag=SysFlag.PREPARED),
        keyed(b"rolled back", "R", sys_flag=SysFlag.ROLLBACK),
        keyed(b"committed", "C", sys_flag=SysFlag.COMMIT),
    )
    assert [found(store, word) for word in ("P", "R", "C")] == [[b"prepared"], [], [b"committed"]]
    assert header_of(files(tmp_path)[0]).next_entry == 3
    store.close()


def test_the_newest_messages_are_found_when_there_are_more_than_asked_for(tmp_path: Path) -> None:
    """[IX-09]"""
    store = opened_with_index(tmp_path, IndexSizes(slots=10, entries=300), segment_bytes=65536)
    put_keyed(store, 100)
    assert found(store, "all", count_max=64) == [b"b%d" % number for number in range(36, 100)]
    assert found(store, "all", count_max=0) == []
    store.close()


def test_files_are_byte_for_byte_those_of_rocketmq(tmp_path: Path) -> None:
    """Its log, indexed here, gives its index files: seconds, chains, the first entry of a second file."""
    log = (GOLDEN / "commitlog").read_bytes()
    segment = tmp_path / "commitlog" / f"{0:020d}"
    segment.parent.mkdir()
    segment.write_bytes(log.ljust(4096, b"\0"))
    (tmp_path / "abort").touch()
    store = opened_with_index(tmp_path, GOLDEN_SIZES)
    assert store.log.end == len(log)
    store.close()
    written = [path.read_bytes() for path in files(tmp_path)]
    assert written == [path.read_bytes() for path in sorted(GOLDEN.glob("2*"))]


def test_a_long_search_goes_in_steps_and_finds_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened_with_index(tmp_path, IndexSizes(slots=1, entries=50))
    put_keyed(store, 60)
    index, wanted = caught_up(store), key_hash(index_key("T", "all"))
    whole = index.find(wanted, 64, *ALWAYS)
    assert len(whole) == 60
    monkeypatch.setattr(index_keys, "STEPS_AT_ONCE", 7)
    search = index.finding(wanted, 64, *ALWAYS)
    for _ in range(2 * 60 // 7 - 2):  # of the entries of three files
        next(search)
    assert at_once(search) == whole
    assert index.find(wanted, 5, *ALWAYS) == whole[:5]
    store.close()


def test_a_search_ends_where_its_file_is_deleted_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_keys, "STEPS_AT_ONCE", 7)
    store = opened_with_index(tmp_path, IndexSizes(slots=1, entries=50))
    put_keyed(store, 60)
    index = caught_up(store)
    search = index.finding(key_hash(index_key("T", "none")), 64, *ALWAYS)
    for _ in range(8):  # some steps, into a file that is not the last one
        next(search)
    index.drop_before(2**62)
    with pytest.raises(StopIteration) as ended:
        next(search)
    assert ended.value.value == []
    store.close()


def test_files_of_rocketmq_are_searched_and_go_on(tmp_path: Path) -> None:
    """After its clean stop nothing is indexed again."""
    log = (GOLDEN / "commitlog").read_bytes()
    for name, data in [("commitlog/" + "0" * 20, log.ljust(4096, b"\0"))] + [
        (f"index/{path.name}", path.read_bytes()) for path in GOLDEN.glob("2*")
    ]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    store = opened_with_index(tmp_path, GOLDEN_SIZES)
    index = index_of(store)
    assert index.position == store.log.end == len(log)
    wanted = key_hash(index_key("observed", "Aa"))
    assert list(index.find(wanted, 64, 0, 2**62)) == [1012, 796, 570, 354]
    put(store, keyed(b"ours", "U", "Aa", topic="observed"))
    caught_up(store)
    assert list(index.find(wanted, 2, 0, 2**62)) == [len(log), 1012]
    store.close()
