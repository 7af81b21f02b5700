"""The ledger itself: it must cry out when something is wrong, or every other test here proves nothing."""

import pytest

from tests.interop import ledger
from tests.peers.clients import Received, Sent


def _message(body: str, offset: int, queue: int = 0, intact: bool = True) -> Received:
    return Received("topic", "broker-a", queue, offset, body, 10, intact, None, None)


def test_a_missing_message_is_named() -> None:
    with pytest.raises(AssertionError, match="missing 1: p-2"):
        ledger.assert_each_once(["p-1", "p-2"], ["p-1"])


def test_a_duplicate_is_named_with_its_count() -> None:
    with pytest.raises(AssertionError, match=r"duplicated 1: p-1 \(x2\)"):
        ledger.assert_each_once(["p-1"], ["p-1", "p-1"])


def test_a_message_nobody_sent_is_named() -> None:
    with pytest.raises(AssertionError, match="unexpected 1: p-9"):
        ledger.assert_nothing_lost(["p-1"], ["p-1", "p-9"])


def test_at_least_once_forgives_a_duplicate_and_nothing_else() -> None:
    ledger.assert_nothing_lost(["p-1"], ["p-1", "p-1"])
    with pytest.raises(AssertionError, match="missing 1: p-2"):
        ledger.assert_nothing_lost(["p-1", "p-2"], ["p-1", "p-1"])


def test_a_message_seen_after_a_later_one_of_its_queue_is_named() -> None:
    ledger.assert_seen_in_send_order([_message("p-2", 0), _message("p-1", 0, queue=1)])
    with pytest.raises(AssertionError, match="p-1 after p-2"):
        ledger.assert_seen_in_send_order([_message("p-2", 0), _message("p-1", 1)])


def test_a_hole_in_a_queue_is_found() -> None:
    with pytest.raises(AssertionError, match="offsets 0, 2"):
        ledger.assert_queues_have_no_holes([_message("p-1", 0), _message("p-2", 2)])


def test_a_message_at_another_place_than_acknowledged_is_named() -> None:
    with pytest.raises(AssertionError, match="1 messages at another place"):
        ledger.assert_same_places([Sent("p-1", "SEND_OK", "broker-a", 0, 7)], [_message("p-1", 8)])


def test_a_damaged_body_is_named() -> None:
    with pytest.raises(AssertionError, match="damaged bodies: p-1"):
        ledger.assert_intact([_message("p-1", 0, intact=False)])
