"""Which half messages are open, held against a set."""

from hypothesis import given
from hypothesis import strategies as st

from bolide.machines.half_window import HalfWindow

END = 40


def test_the_front_moves_when_the_oldest_open_one_is_finished() -> None:
    window = HalfWindow(5)
    window.finish(7)
    window.finish(6)
    assert (window.first, window.open_count(10)) == (5, 3)
    window.finish(5)
    assert (window.first, window.open_count(10)) == (8, 2)
    assert window.is_finished(4)
    assert not window.is_finished(8)


@given(
    first=st.integers(0, 10),
    finished=st.lists(st.integers(0, END - 1)),
    gone=st.integers(0, END),
    asked=st.integers(0, END),
)
def test_a_window_says_what_a_set_would_say(first: int, finished: list[int], gone: int, asked: int) -> None:
    window, still_open = HalfWindow(first), set(range(first, END))
    for offset in finished:
        window.finish(offset)
        still_open.discard(offset)
    window.finish_all_below(gone)
    still_open -= set(range(gone))
    assert [offset for offset in range(END) if not window.is_finished(offset)] == sorted(still_open)
    assert window.open_count(END) == len(still_open)
    assert window.next_open(asked, END) == min((one for one in still_open if one >= asked), default=None)
    assert window.first == min(still_open, default=window.first)
