"""One writer for each part of a batch, and the certainty that a part has never begun."""

import pytest

from bolide.machines import writers as module
from bolide.machines.writers import Writers
from bolide.model.limits import WRITERS_MAX


def test_who_begins_a_part_takes_it_over() -> None:
    writers: Writers[str] = Writers()
    assert writers.take(("q", 0), "t", "a") is None
    assert writers.take(("q", 0), "t", "a") is None
    assert writers.take(("q", 1), "t", "a") is None
    assert writers.take(("q", 0), "t", "b") == "a"
    assert (writers.parts_of("a"), writers.parts_of("b")) == (1, 1)


def test_a_lost_connection_has_nothing_and_takes_nothing_from_its_successor() -> None:
    writers: Writers[str] = Writers()
    writers.take(("q", 0), "t", "a")
    writers.take(("q", 0), "t", "b")
    writers.lost("a")
    assert writers.take(("q", 0), "t", "c") == "b"
    writers.lost("c")
    writers.lost("c")
    assert writers.take(("q", 0), "t", "d") is None


def test_a_connection_begins_the_topic_of_each_of_its_parts_that_it_has_named_last() -> None:
    writers: Writers[str] = Writers()
    writers.take(("q", 0), "t", "a")
    writers.take(("q", 1), "t", "a")
    writers.take(("q", 0), "u", "a")
    assert [writers.is_beginning("a", topic) for topic in "tuv"] == [True, True, False]
    writers.take(("q", 1), "t", "b")
    assert [writers.is_beginning("a", topic) for topic in "tu"] == [False, True]
    writers.lost("a")
    assert not writers.is_beginning("a", "u")


def test_a_part_is_fresh_once_and_only_in_a_batch_seen_from_its_beginning() -> None:
    writers: Writers[str] = Writers()
    assert not writers.begins("q", 0, 0, "t")
    writers.first_batch("q", 1)
    assert writers.begins("q", 1, 0, "t")
    assert not writers.begins("q", 1, 0, "t")
    assert writers.begins("q", 1, 0, "u")
    assert writers.begins("q", 1, 1, "t")
    assert not writers.begins("q", 0, 2, "t")


def test_writers_are_forgotten_oldest_first() -> None:
    writers: Writers[str] = Writers()
    for number in range(WRITERS_MAX + 1):
        writers.first_batch(f"q{number}", 0)
    assert not writers.begins("q0", 0, 0, "t")
    assert writers.begins("q1", 0, 0, "t")


def test_parts_of_all_batches_have_a_bound_and_those_of_the_oldest_are_forgotten_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "WRITE_PARTS_KNOWN_MAX", 3)
    writers: Writers[str] = Writers()
    writers.first_batch("old", 0)
    writers.first_batch("new", 0)
    assert all(writers.begins("old", 0, part, "t") for part in range(2))
    assert all(writers.begins("new", 0, part, "t") for part in range(3))
    assert not writers.begins("old", 0, 2, "t"), "nobody knows any more"
    assert not writers.begins("new", 0, 3, "t")
    writers.first_batch("new", 1)
    assert all(writers.begins("new", 1, part, "t") for part in range(3))
