"""Errors of ours reach a user of Spark as a sentence; what is a bug keeps its traceback."""

import os

import pytest

from bolide.model.errors import ConfigError
from bolide.pipeline.errors import in_plain_words

HIDDEN = "SPARK_HIDE_TRACEBACK"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HIDDEN, "")
    monkeypatch.delenv("PYTHON_WORKER_FACTORY_SECRET", raising=False)


def raised(error: Exception) -> None:
    with pytest.raises(type(error)), in_plain_words():
        raise error


@pytest.mark.parametrize("name", ["PYTHON_WORKER_FACTORY_SECRET", "PYTHON_WORKER_FACTORY_SOCK_PATH"])
def test_a_worker_of_spark_sends_our_errors_without_traceback(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "x")
    raised(ConfigError("no"))
    assert os.environ[HIDDEN] == "1"


def test_a_bug_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHON_WORKER_FACTORY_SECRET", "x")
    raised(ZeroDivisionError())
    assert os.environ[HIDDEN] == ""


def test_a_process_that_is_no_worker_is_left_alone() -> None:
    raised(ConfigError("no"))
    assert os.environ[HIDDEN] == ""
