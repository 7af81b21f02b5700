"""Large JSON in pieces: the text is the same as in one go, and no piece grows with what is written."""

from typing import Any

import pytest

from bolide.model import java_json, json_pieces
from bolide.model.java_json import Bare
from bolide.model.json_pieces import PIECE_BYTES, PIECE_ENTRIES, Entries, Items

COUNTS = [0, 1, PIECE_ENTRIES - 1, PIECE_ENTRIES, PIECE_ENTRIES + 1, 5 * PIECE_ENTRIES]


def in_one_go(value: Any) -> Any:
    """The same value, with nothing in it that is written in pieces."""
    if isinstance(value, Entries):
        return {name: in_one_go(item) for name, item in value.entries}
    if isinstance(value, Items):
        return [in_one_go(item) for item in value.items]
    return {name: in_one_go(item) for name, item in value.items()} if isinstance(value, dict) else value


def members(count: int) -> dict[str, Any]:
    table = [(f"topic-{number}", {"queues": number, "tags": ["a", "b"]}) for number in range(count)]
    return {
        "version": {"counter": 1},
        "names": Items([name for name, _ in table]),
        "wrapper": Entries([("table", Entries(table)), ("none", Items([])), ("nothing", Entries([]))]),
        "lists": Entries((name, Items(["x"] * count)) for name in "abc"),
        "bare": Entries([(Bare('{"id":1}'), {2: 3})]),
    }


@pytest.mark.parametrize("count", COUNTS)
def test_the_pieces_are_the_text_that_is_written_in_one_go(count: int) -> None:
    whole = in_one_go(members(count))
    assert b"".join(json_pieces.compact(members(count))) == java_json.dumps(whole)
    assert b"".join(json_pieces.pretty(members(count))) == java_json.text_of(whole, "\n").encode()


@pytest.mark.parametrize("count", [5 * PIECE_ENTRIES, 50 * PIECE_ENTRIES])
def test_a_piece_asks_for_a_bounded_number_of_entries_wherever_they_are(count: int) -> None:
    asked = 0

    def numbers() -> Any:
        nonlocal asked
        for number in range(count):
            asked += 1
            yield number

    for large in (
        Items(numbers()),
        Entries((str(number), number) for number in numbers()),
        Entries([("inside", Items(numbers()))]),
    ):
        asked = before = 0
        for _ in json_pieces.compact({"large": large}):
            assert asked - before <= PIECE_ENTRIES
            before = asked
        assert asked == count


def test_a_piece_of_large_entries_is_short() -> None:
    pieces = json_pieces.compact({"large": Items("x" * 1000 for _ in range(1000))})
    assert max(map(len, pieces)) <= PIECE_BYTES + 1100
