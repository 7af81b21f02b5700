"""Whole numbers: what is one, and how large it may be."""

import pytest

from bolide.model.numbers import INT32_MAX, INT64_MAX, INT64_MIN, is_int32, is_int64, parse_whole


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("-7", -7),
        ("+7", 7),
        ("007", 7),
        (str(INT64_MAX), INT64_MAX),
        (str(INT64_MIN), INT64_MIN),
        (str(INT64_MAX + 1), None),
        (str(INT64_MIN - 1), None),
        ("1" + "0" * 400, None),
        *(
            (text, None)
            for text in ("", " 1", "1 ", "1\n", "1.0", "1e3", "1_0", "0x1", "--1", "\u0661", "\u00b2")
        ),
    ],
)
def test_a_text_is_a_number_of_64_bits_or_none(text: str, number: int | None) -> None:
    assert parse_whole(text) == number


def test_true_is_no_number_and_neither_is_a_fraction() -> None:
    assert is_int32(INT32_MAX)
    assert not is_int32(INT32_MAX + 1)
    assert is_int64(INT64_MIN)
    for value in (True, 1.0, float("inf"), "1", None, INT64_MAX + 1):
        assert not is_int64(value)
        assert not is_int32(value)
