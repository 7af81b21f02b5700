"""The page of limits says what the code does."""

from tests.docs import limits_page


def test_the_page_of_limits_is_written_from_the_table() -> None:
    assert limits_page.PAGE.read_text() == limits_page.rendered(), "`make fix` writes docs/limits.md again"
