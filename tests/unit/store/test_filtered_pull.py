"""Pulls with a filter that looks at the records themselves."""

from pathlib import Path

from bolide.model.limits import EXAMINED_BYTES_MAX
from bolide.store.reading import PullStatus
from tests.unit.filters import containing
from tests.unit.store.stage import LIMITS, body_of, message, opened, put, put_many, records_of


def test_a_filter_that_examines_records_gets_what_it_wants_and_passes_the_rest(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 25)  # their bodies are numbers
    wanted = {
        containing(b"0002"): [2, *range(20, 25)],
        containing(b"-"): [],
        containing(b"0002", frozenset()): [],
    }
    for filter, numbers in wanted.items():
        offset, found = 0, []
        while offset < 25:  # over several segments
            result = store.reader.pull("T", 0, offset, limits=LIMITS, filter=filter)
            assert (result.status is PullStatus.FOUND) == (result.count > 0)
            assert result.count or result.status is PullStatus.NO_MATCHED_MESSAGE
            found += [body_of(record) for record in records_of(result.data)]
            offset = result.next_offset
        assert found == [b"%05d" % number for number in numbers]


def test_a_pull_looks_through_a_bounded_number_of_properties_and_goes_on_behind_them(tmp_path: Path) -> None:
    """However little of it is wanted, and from whatever place it comes back."""
    store = opened(tmp_path, segment_bytes=4 * 1024 * 1024)
    count, each = 64, 8 * 1024
    put(
        store, *(message("T", b"%05d" % number, properties=b"a\x01" + b"x" * each) for number in range(count))
    )
    offset, pulls = 0, 0
    while offset < count:
        result = store.reader.pull("T", 0, offset, limits=LIMITS, filter=containing(b"not there"))
        assert result.status is PullStatus.NO_MATCHED_MESSAGE
        assert 0 < (result.next_offset - offset) * each <= EXAMINED_BYTES_MAX
        offset, pulls = result.next_offset, pulls + 1
    assert pulls >= count * each // EXAMINED_BYTES_MAX


def test_the_bodies_of_what_a_filter_does_not_want_are_not_looked_at(tmp_path: Path) -> None:
    """One pull would read a whole segment of them, and everybody would wait for it."""
    store = opened(tmp_path, segment_bytes=4 * 1024 * 1024)
    put(store, *(message("T", b"%05d" % number + bytes(1000)) for number in range(10)))
    (log,) = (tmp_path / "commitlog").iterdir()
    with log.open("r+b") as file:  # damage that only a look at its body would find
        at = file.read().index(b"00003\0")
        file.seek(at + 10)
        file.write(b"x")
    before = store.reader.damaged
    result = store.reader.pull("T", 0, 0, limits=LIMITS, filter=containing(b"not there"))
    assert (result.status, result.next_offset) == (PullStatus.NO_MATCHED_MESSAGE, 10)
    assert store.reader.damaged == before
    result = store.reader.pull("T", 0, 3, limits=LIMITS, filter=containing(b"00003"))
    assert store.reader.damaged == before + 1
    assert b"00003" not in result.data
