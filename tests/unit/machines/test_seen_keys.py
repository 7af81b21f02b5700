"""SeenKeys: what is remembered, and for how long."""

from hypothesis import given
from hypothesis import strategies as st

from bolide.machines.seen_keys import SeenKeys

A, B, C = b"a", b"b", b"c"


def test_what_was_added_is_known_and_nothing_else() -> None:
    keys = SeenKeys(10, 1000)
    keys.add([A, B], 0)
    assert keys.known([A, B, C], 1000) == {A, B}
    assert len(keys) == 2


def test_a_key_is_forgotten_when_it_is_too_old() -> None:
    keys = SeenKeys(10, 1000)
    keys.add([A], 0)
    keys.add([B], 500)
    assert keys.known([A, B], 1001) == {B}
    assert len(keys) == 1
    assert keys.known([A, B], 1501) == set()


def test_the_oldest_gives_way_when_there_are_too_many() -> None:
    keys = SeenKeys(2, 1000)
    keys.add([A, B, C], 0)
    assert keys.known([A, B, C], 0) == {B, C}
    keys.add([B], 1)
    keys.add([A], 2)
    assert keys.known([A, B, C], 2) == {A, B}


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5)), max_size=60),
    st.integers(1, 6),
    st.integers(0, 12),
)
def test_it_knows_the_newest_keys_that_are_young_enough(
    steps: list[tuple[int, int]], keys_max: int, age_max_ms: int
) -> None:
    keys, added, now_ms = SeenKeys(keys_max, age_max_ms), dict[bytes, int](), 0
    for number, pause_ms in steps:
        now_ms += pause_ms
        key = b"%d" % number
        keys.add([key], now_ms)
        added.pop(key, None)
        added[key] = now_ms
        young = {key for key in list(added)[-keys_max:] if now_ms - added[key] <= age_max_ms}
        assert keys.known([b"%d" % n for n in range(10)], now_ms) == young
        assert len(keys) == len(young)
