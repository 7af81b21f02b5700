"""Which messages are half ones, and what becomes of those that nobody ends."""

import pytest

from bolide.model.message import SysFlag
from bolide.rules.transactions import CheckRules, Step, is_half, is_whole, next_step

HOUR_MS = 3_600_000
RULES = CheckRules(timeout_ms=6_000, checks_max=15, reserved_ms=72 * HOUR_MS)


@pytest.mark.parametrize(
    ("properties", "reconsume_times", "half"),
    [
        ({}, 0, False),
        ({"TRAN_MSG": "true"}, 0, True),
        ({"TRAN_MSG": "TRUE"}, 3, True),
        ({"TRAN_MSG": "yes"}, 0, False),
        ({"TRAN_MSG": "true", "DELAY": "3"}, 0, True),
        ({"TRAN_MSG": "true", "DELAY": "3"}, 1, False),
        ({"TRAN_MSG": "true", "DELAY": "x"}, 1, True),
    ],
)
def test_a_message_to_be_tried_again_is_no_half_message(
    properties: dict[str, str], reconsume_times: int, half: bool
) -> None:
    assert is_half(properties, reconsume_times) is half


def test_a_message_of_an_open_transaction_or_one_that_was_rolled_back_is_not_whole() -> None:
    others = SysFlag.COMPRESSED | SysFlag.BORN_HOST_V6
    assert is_whole(0 | others)
    assert is_whole(SysFlag.COMMIT | others)
    assert not is_whole(SysFlag.PREPARED | others)
    assert not is_whole(SysFlag.ROLLBACK | others)


@pytest.mark.parametrize(
    ("properties", "age_ms", "step"),
    [
        ({}, 0, Step.WAIT),
        ({}, 6_000, Step.WAIT),
        ({}, 6_001, Step.CHECK),
        ({"TRANSACTION_CHECK_TIMES": "14"}, 6_001, Step.CHECK),
        ({"TRANSACTION_CHECK_TIMES": "15"}, 6_001, Step.GIVE_UP),
        ({"TRANSACTION_CHECK_TIMES": "-1"}, 6_001, Step.CHECK),
        ({"TRANSACTION_CHECK_TIMES": "9" * 30}, 6_001, Step.CHECK),
        ({}, 72 * HOUR_MS, Step.CHECK),
        ({}, 72 * HOUR_MS + 1, Step.GIVE_UP),
        ({"CHECK_IMMUNITY_TIME_IN_SECONDS": "60"}, 60_000, Step.PASS),
        ({"CHECK_IMMUNITY_TIME_IN_SECONDS": "60"}, 60_001, Step.CHECK),
        ({"CHECK_IMMUNITY_TIME_IN_SECONDS": "2"}, 2_001, Step.CHECK),
        ({"CHECK_IMMUNITY_TIME_IN_SECONDS": "-1"}, 6_000, Step.WAIT),
        ({"CHECK_IMMUNITY_TIME_IN_SECONDS": "soon"}, 6_001, Step.CHECK),
        ({"CHECK_IMMUNITY_TIME_IN_SECONDS": "9" * 18}, HOUR_MS, Step.PASS),
        ({"CHECK_IMMUNITY_TIME_IN_SECONDS": "9" * 18}, HOUR_MS + 1, Step.CHECK),
        ({"CHECK_IMMUNITY_TIME_IN_SECONDS": "9" * 18}, 72 * HOUR_MS + 1, Step.GIVE_UP),
    ],
)
def test_an_open_half_message_waits_is_asked_for_and_is_given_up(
    properties: dict[str, str], age_ms: int, step: Step
) -> None:
    assert next_step(properties, age_ms, RULES) is step


def test_nothing_is_given_up_before_its_producer_had_its_time() -> None:
    """Messages may be kept for no time at all, which is a way to make room."""
    assert next_step({}, 5_000, CheckRules(6_000, 15, reserved_ms=0)) is Step.WAIT
