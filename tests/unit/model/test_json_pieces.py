"""A large object in pieces is the text that it would be in one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bolide.model import java_json, json_pieces
from bolide.model.json_pieces import PIECE_BYTES, PIECE_ENTRIES, Entries

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.integers(0, 9), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.text(), VALUES, max_size=4), st.dictionaries(st.text(), VALUES, max_size=4))
def test_the_pieces_together_are_what_is_written_in_one_go(
    plain: dict[str, Any], large: dict[str, Any]
) -> None:
    whole = {**plain, "large": large}
    in_pieces = {**plain, "large": Entries(large.items())}
    assert b"".join(json_pieces.pretty(in_pieces)) == java_json.text_of(whole, "\n").encode()
    assert java_json.loads(b"".join(json_pieces.compact(in_pieces))) == java_json.loads(
        java_json.dumps(whole)
    )


def test_an_object_without_members_is_one_too() -> None:
    assert b"".join(json_pieces.compact({})) == b"{}"


@pytest.mark.parametrize(("count", "value"), [(10 * PIECE_ENTRIES, 1), (50, "x" * (PIECE_BYTES // 3))])
def test_a_piece_has_a_bounded_number_of_entries_and_about_so_many_bytes(count: int, value: Any) -> None:
    asked: list[int] = []

    def entries() -> Any:
        for number in range(count):
            asked.append(number)
            yield str(number), value

    most, before = 0, 0
    for piece in json_pieces.compact({"large": Entries(entries())}):
        most, before = max(most, len(asked) - before), len(asked)
        assert len(piece) < 2 * PIECE_BYTES
    assert before == count
    assert most <= PIECE_ENTRIES
