"""The Node client `ali-ons` 3.12.0: what comes later. Retries, dead letters and delays."""

import pytest

from tests.interop import claims
from tests.interop.stage import BareStage

pytestmark = pytest.mark.needs("node", "npm")


def test_a_failed_message_comes_again_under_its_own_topic(node_later: BareStage) -> None:
    """RY-01, RY-02."""
    claims.a_failed_message_comes_again(node_later)


def test_a_message_that_always_fails_is_a_dead_letter(node_later: BareStage) -> None:
    """RY-03."""
    claims.a_message_that_always_fails_is_a_dead_letter(node_later)


def test_delayed_messages_come_once_to_their_queue_and_never_early(node_later: BareStage) -> None:
    """DE-01."""
    claims.delayed_messages_are_never_early(node_later)
