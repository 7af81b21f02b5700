"""The registry of handlers: a request without a right has no handler."""

from typing import cast

import pytest

from bolide.net.link import Link
from bolide.net.registry import Registry
from bolide.wire.codes import REQUESTS, Need, RequestCode
from bolide.wire.command import Command


def answer(link: Link, request: Command) -> Command:
    return request.answer()


def test_a_handler_stands_with_the_right_that_its_request_needs() -> None:
    registry = Registry({RequestCode.SEND_MESSAGE: answer})
    row = registry.find(10)
    assert row is not None
    assert (row.need, row.handler) == (Need.PUBLISH, answer)
    assert registry.find(11) is None


def test_a_request_without_a_right_cannot_be_registered() -> None:
    with pytest.raises(ValueError, match="right"):
        Registry({cast(RequestCode, 9999): answer})


def test_a_request_has_one_handler() -> None:
    registry = Registry({RequestCode.SEND_MESSAGE: answer})
    with pytest.raises(ValueError, match="already"):
        registry.add({RequestCode.SEND_MESSAGE: answer})


def test_every_request_in_the_table_says_what_it_needs() -> None:
    assert all(isinstance(kind.need, Need) for kind in REQUESTS.values())
    assert set(REQUESTS) == set(RequestCode)
