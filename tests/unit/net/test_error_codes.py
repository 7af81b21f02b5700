"""Every error that a server answers with has its code, and no error knows it."""

import inspect

import pytest

from bolide.model import errors
from bolide.model.response_code import ResponseCode
from bolide.net.dispatch import error_answer
from bolide.net.error_codes import CODES, response_code_of
from bolide.wire.command import Command

ANSWERED = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, errors.RequestError | errors.StoreRefusal)
    and kind is not errors.BadRow  # of a table, which no server sees
]


@pytest.mark.parametrize("kind", ANSWERED)
def test_an_error_of_a_request_or_a_refusal_of_the_store_goes_out_with_its_own_words(
    kind: type[errors.BolideError],
) -> None:
    answer = error_answer(Command(10), kind("in words"))
    assert (answer.code, answer.remark) == (response_code_of(kind()), "in words")


@pytest.mark.parametrize("kind", [kind for kind in ANSWERED if issubclass(kind, errors.RequestError)])
def test_every_error_of_a_request_is_listed(kind: type[errors.BolideError]) -> None:
    assert kind in CODES


def test_a_subclass_has_the_code_of_the_nearest_class_above() -> None:
    class NewKindOfMissing(errors.TopicNotFound):
        pass

    assert response_code_of(NewKindOfMissing()) == ResponseCode.TOPIC_NOT_EXIST
    assert response_code_of(errors.RecordTooLarge()) == ResponseCode.SERVICE_NOT_AVAILABLE
    assert response_code_of(errors.TableFull()) == ResponseCode.SERVICE_NOT_AVAILABLE


@pytest.mark.parametrize("error", [errors.StoreError("odd"), ValueError("odd")])
def test_what_nobody_has_foreseen_is_a_system_error_that_names_its_kind(error: Exception) -> None:
    answer = error_answer(Command(10), error)
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, f"{type(error).__name__}: odd")
