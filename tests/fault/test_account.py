"""The books notice every kind of disagreement; otherwise a campaign that found nothing would prove nothing."""

import pytest

from tests.fault.account import Account, Ack


def test_what_was_acknowledged_and_read_is_settled() -> None:
    account = Account()
    account.acknowledge([ack(0, 0, 2, offset=0)])
    account.read(
        ["0 0 11 1 0-0", "0 1 12 1 0-1", "0 2 13 1 0-2"]
    )  # the last was stored and never acknowledged
    account.close_books()
    account.read(["0 1 12 1 0-1", "0 2 13 1 0-2"])
    account.acknowledge([ack(0, 2, 1, offset=2)])  # the answer was read late
    account.delivered({0: {0, 1, 2}})
    assert account.problems == []
    assert (account.acknowledged, account.owed, account.ends()) == (3, 0, {0: 3})


@pytest.mark.parametrize(
    ("kind", "lines"),
    [
        ("lost", ["0 0 11 1 0-0"]),
        ("lost", ["0 0 11 1 0-0", "0 1 12 1 0-2"]),
        ("damaged", ["0 0 11 0 0-0"]),
        ("damaged", ["0 0 11 1 zero"]),
        ("hole", ["0 1 12 1 0-1"]),
        ("order", ["0 0 11 1 0-0", "0 1 12 1 0-1", "0 2 13 1 0-1"]),
        ("changed", ["0 0 11 1 0-0", "0 1 12 1 0-1", "0 1 99 1 0-1"]),
        ("changed", ["0 0 11 1 0-0", "0 1 12 1 0-1", "0 1 12 1 0-7"]),
        ("not delivered", ["0 0 11 1 0-0", "0 1 12 1 0-1"]),
    ],
)
def test_a_disagreement_is_named(kind: str, lines: list[str]) -> None:
    account = Account()
    account.acknowledge([ack(0, 0, 2, offset=0)])
    account.read(lines)
    account.close_books()
    account.delivered({0: {0}})
    assert any(problem.startswith(f"{kind}:") for problem in account.problems), account.problems


def test_a_place_acknowledged_for_two_messages_is_a_problem() -> None:
    account = Account()
    account.acknowledge([ack(0, 0, 1, offset=5), ack(1, 0, 1, offset=5)])
    assert "acknowledged twice" in account.problems[0]


def test_an_acknowledged_message_that_another_one_replaced_is_lost_also_when_its_answer_is_read_late() -> (
    None
):
    account = Account()
    account.read(["0 0 11 1 0-0"])
    account.acknowledge([ack(1, 0, 1, offset=0)])
    assert account.problems[0].startswith("lost: 1-0")


def ack(thread: int, number: int, messages: int, *, offset: int) -> Ack:
    return Ack(0, 0, thread, number, messages, 0, offset)
