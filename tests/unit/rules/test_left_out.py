"""Which properties of a failed message give way when there is no room for what a retry writes."""

import pytest

from bolide.model.message import Property
from bolide.model.pairs import join_properties, parse_properties
from bolide.rules.left_out import LEFT_OUT_BYTES_MAX, fitting


def text_of(**pairs: str) -> bytes:
    return join_properties(pairs).encode()


def pairs_of(properties: bytes) -> dict[str, str]:
    return parse_properties(properties.decode())


def test_what_fits_stays_as_it_is() -> None:
    text = text_of(a="x" * 100)
    assert fitting(text, len(text)) == (text, "")


def test_the_longest_of_the_application_gives_way_first_and_is_told() -> None:
    text = text_of(TAGS="t" * 600, a="x" * 100, b="y" * 500, c="z" * 400, UNIQ_KEY="k")
    found, left_out = fitting(text, len(text) - 1)
    assert left_out == "b 500"
    assert pairs_of(found) == {
        "TAGS": "t" * 600,
        "a": "x" * 100,
        "c": "z" * 400,
        "UNIQ_KEY": "k",
        Property.LEFT_OUT: left_out,
    }


def test_a_sharding_key_stays_while_the_application_has_others() -> None:
    text = text_of(__SHARDINGKEY="s" * 600, a="x" * 500)
    found, left_out = fitting(text, len(text) - 1)
    assert (left_out, pairs_of(found)[Property.SHARDING_KEY]) == ("a 500", "s" * 600)


def test_those_with_a_meaning_give_way_last_and_the_longest_of_them_first() -> None:
    text = text_of(KEYS="k" * 30_000, a="x" * 2_000, DELAY="3", UNIQ_KEY="u" * 32, RETRY_TOPIC="orders")
    found, left_out = fitting(text, 10_000)
    assert left_out == "a 2000; KEYS 30000"
    assert pairs_of(found).keys() == {"DELAY", "UNIQ_KEY", "RETRY_TOPIC", Property.LEFT_OUT}


def test_what_nobody_reads_gives_way_before_anything_else_and_without_a_word() -> None:
    text = b"junk" * 100 + b"\x02a\x01" + b"x" * 400 + b"\x02a\x01now\x02\x01nameless\x02"
    assert fitting(text, 300) == (b"a\x01now\x02", "")


def test_bytes_that_are_no_text_and_separators_in_values_stay_as_they_are() -> None:
    text = b"a\x01b\x01c\x02f\x01\xff\xff\x02long\x01" + b"\xff" * 900
    found, left_out = fitting(text, 800)
    assert (found, left_out) == (
        b"a\x01b\x01c\x02f\x01\xff\xff\x02BOLIDE_LEFT_OUT\x01long 900\x02",
        "long 900",
    )


@pytest.mark.parametrize("before", ["", "z 7", "; " * 5_000, "x" * 10_000])
def test_the_word_for_what_was_left_out_is_short_and_counts_what_it_does_not_name(before: str) -> None:
    pairs = {f"{number}-{'n' * 90}": "v" * 20 for number in range(300)}
    text = join_properties({**pairs, Property.LEFT_OUT: before, Property.TAGS: "red"}).encode()
    found, left_out = fitting(text, 2_000)
    assert len(found) <= 2_000
    told = pairs_of(found)[Property.LEFT_OUT]
    assert told == left_out
    assert len(told.encode()) <= LEFT_OUT_BYTES_MAX
    assert told.endswith(" more)")
    assert len(pairs_of(found)) > 2, "what has room stays"
    assert told.startswith("z 7; ") == (before == "z 7")


def test_what_is_shortened_again_counts_all_that_it_does_not_name() -> None:
    """Those that the first text named and the second has no room for, too."""
    first = {f"{number:03}-{'n' * 60}": "v" * 20 for number in range(100)}
    found, left_out = fitting(text_of(**first), 2_000)
    gone = len(first) + 1 - len(pairs_of(found))
    assert left_out.count("; ") + int(left_out.rpartition("(")[2].split()[0]) == gone
    again, left_out_again = fitting(found, 1_000)
    gone = len(first) + 1 - len(pairs_of(again))
    assert left_out_again.count("; ") + int(left_out_again.rpartition("(")[2].split()[0]) == gone


def test_whatever_the_properties_are_they_fit() -> None:
    for text in (b"x" * 32_767, b"a\x01b\x02" * 8_000, b"KEYS\x01" + b"k" * 32_000, b"\x02" * 32_767):
        assert len(fitting(text, 32_000)[0]) <= 32_000
