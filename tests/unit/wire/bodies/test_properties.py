"""Settings as text."""

import pytest

from bolide.model.errors import InvalidRequest
from bolide.model.limits import SETTINGS_BYTES_MAX
from bolide.wire.bodies.properties import format_settings, parse_settings


def test_settings_go_there_and_back() -> None:
    settings = {"brokerName": "a", "messageDelayLevel": "1s 5s", "url": "a=b"}
    assert parse_settings(format_settings(settings)) == settings


def test_comments_blanks_and_spaces_do_not_count() -> None:
    assert parse_settings(b"# note\n\n  a = 1 \r\n! note\nb=\n") == {"a": "1", "b": ""}


@pytest.mark.parametrize("body", [b"novalue", b"=1", b"\xff=1", b"a=" + b"x" * SETTINGS_BYTES_MAX])
def test_anything_else_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest):
        parse_settings(body)
