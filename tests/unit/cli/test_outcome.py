"""Exit codes and the lines that go with them."""

import pytest

from bolide.cli.outcome import MEANINGS, CannotStart, ExitCode, Partly, StoreFailed, exit_code_of, explain
from bolide.model import errors
from bolide.model.response_code import ResponseCode


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ConfigError("x"), 2),
        (errors.InvalidRequest("x"), 2),
        (errors.SubscriptionMalformed("x"), 2),
        (errors.MessageIllegal("x"), 1),
        (errors.ConnectionLost("x"), 3),
        (errors.CallTimeout("x"), 3),
        (errors.ProtocolError("x"), 3),
        (errors.RouteNotFound("x"), 4),
        (errors.RemoteError(ResponseCode.TOPIC_NOT_EXIST, "x"), 4),
        (errors.RemoteError(ResponseCode.NO_PERMISSION, "x"), 1),
        (CannotStart("x"), 5),
        (errors.StoreError("x"), 1),
        (errors.NotAStore("x"), 4),
        (StoreFailed("x"), 6),
        (OSError("x"), 1),
    ],
)
def test_scripts_can_rely_on_these_exit_codes(error: Exception, code: int) -> None:
    assert exit_code_of(error) == code


def test_work_done_in_part_ends_with_the_code_of_what_stopped_it() -> None:
    error = Partly("3 of 4")
    error.__cause__ = errors.NoNameServer("no name server answers")
    assert exit_code_of(error) == ExitCode.UNREACHABLE
    assert "bolide up" in explain(error)


def test_an_explanation_is_one_line() -> None:
    assert explain(errors.ConfigError("first\n  second")) == "first second"


def test_unreachable_says_what_to_do_once() -> None:
    assert explain(errors.NoNameServer("no name server answers")).count("bolide up") == 1
    assert explain(errors.ConnectionLost("no answer; `bolide up` starts one")).count("bolide up") == 1


def test_a_broker_out_of_reach_is_not_blamed_on_the_name_server() -> None:
    told = explain(errors.ConnectionLost("cannot connect to 192.0.2.7:10911"))
    assert "bolide doctor" in told
    assert "bolide up" not in told


def test_a_broker_that_is_asked_what_name_servers_know_is_recognized() -> None:
    told = explain(errors.RemoteError(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, "request code 206"))
    assert "not of a broker" in told


def test_a_start_without_room_says_how_much_is_needed() -> None:
    told = explain(CannotStart("cannot make the next commit-log segment a/b: No space left on device"))
    assert "mappedFileSizeCommitLog" in told
    assert "--data" in told


def test_every_code_has_a_meaning() -> None:
    assert set(MEANINGS) == set(ExitCode)
