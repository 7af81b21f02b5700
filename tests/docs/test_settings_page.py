"""The page of settings says what the code does."""

from tests.docs import settings_page


def test_the_page_of_settings_is_written_from_the_tables() -> None:
    assert settings_page.PAGE.read_text() == settings_page.rendered(), (
        "`make fix` writes docs/settings.md again"
    )
