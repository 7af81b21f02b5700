"""How Spark is set up for messages, and what its end is called."""

import logging
import signal
from types import SimpleNamespace
from typing import Any

import pytest

from bolide.model.errors import ConfigError
from bolide.pipeline import session
from bolide.pipeline.session import MEMORY, SparkDied, for_messages, session_for
from bolide.pipeline.spark_errors import NoPython

PySparkLogger = pytest.importorskip("pyspark.logger").PySparkLogger


class Jvm:
    """A process, and the session that has it; no Spark is started."""

    def __init__(self, code: int | None) -> None:
        self.returncode = code
        self.is_stopped = False
        self.level = "ERROR"
        self._gateway = SimpleNamespace(proc=self)
        self.sparkContext = self

    def poll(self) -> int | None:
        return self.returncode

    def setLogLevel(self, level: str) -> None:  # noqa: N802 - Spark's name
        self.level = level

    def getConf(self) -> dict[str, str]:  # noqa: N802 - Spark's name
        return {MEMORY: "480m"}

    def stop(self) -> None:
        self.is_stopped = True


class Dying(Jvm):
    """Answers to its last error alone."""

    def stop(self) -> None:
        super().stop()
        self.returncode = 52
        raise ConnectionResetError(104, "Connection reset by peer")


def ended(monkeypatch: pytest.MonkeyPatch, jvm: Jvm, error: BaseException) -> None:
    monkeypatch.setattr(session, "local_session", lambda *words, **named: jvm)
    with session_for("test", master="local[1]"):
        raise error


def test_a_jvm_without_memory_is_told_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    for jvm, error in (
        (Jvm(52), ConnectionRefusedError(111, "Connection refused")),
        (Jvm(None), RuntimeError("… java.lang.OutOfMemoryError: Java heap space")),
    ):
        with pytest.raises(SparkDied, match=rf"no memory left \({MEMORY} is 480m\).* --spark {MEMORY}=4g"):
            ended(monkeypatch, jvm, error)
        assert jvm.is_stopped is (jvm.returncode is None)


def test_a_jvm_that_was_killed_is_told_with_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SparkDied, match="ended with code -9"):
        ended(monkeypatch, Jvm(-9), ConnectionResetError())


def test_a_jvm_that_ends_while_it_is_stopped_is_told_by_why_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    jvm = Dying(None)
    with pytest.raises(SparkDied, match="no memory left"):
        ended(monkeypatch, jvm, RuntimeError("… java.lang.OutOfMemoryError: Java heap space"))
    assert jvm.is_stopped


def test_a_jvm_that_is_about_to_end_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The job hears of the end before the process is gone."""

    class Ending(Jvm):
        looks = 0

        def poll(self) -> int | None:
            self.looks += 1
            return 52 if self.looks > 2 else None

    with pytest.raises(SparkDied, match="no memory left"):
        ended(monkeypatch, Ending(None), RuntimeError("Job 1 cancelled because SparkContext was shut down"))


@pytest.mark.parametrize("name", ["SQLQueryContextLogger", "DataFrameQueryContextLogger"])
def test_what_pyspark_logs_of_an_error_that_it_raises_is_not_shown_while_a_command_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """It is told in our own words; a session of somebody else's, later in this process, is as loud as it was."""
    monkeypatch.delitem(logging.Logger.manager.loggerDict, name, raising=False)
    monkeypatch.setattr(session, "local_session", lambda *words, **named: Jvm(None))
    with session_for("test", master="local[1]"):
        PySparkLogger.getLogger(name).error("no such column", errorClass="UNRESOLVED_COLUMN")
    assert capsys.readouterr().err == ""
    PySparkLogger.getLogger(name).error("no such column", errorClass="UNRESOLVED_COLUMN")
    assert "no such column" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            'java.io.IOException: Cannot run program "/opt/py": error=2, No such file or directory\n\tat …',
            r"workers cannot start the Python /opt/py \(No such file or directory\): let PYSPARK_PYTHON name one",
        ),
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12 than that in driver: 3.11, …",
            r"workers run Python 3\.12 and this command 3\.11, .* PYSPARK_PYTHON name one of version 3\.11",
        ),
    ],
    ids=["missing", "other version"],
)
def test_a_python_that_workers_cannot_use_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, said: str, told: str
) -> None:
    with pytest.raises(NoPython, match=told) as caught:
        ended(monkeypatch, Jvm(None), RuntimeError(said))
    assert "\n" not in str(caught.value)


def test_errors_of_a_spark_that_is_there_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    jvm = Jvm(None)
    with pytest.raises(ConfigError, match="of somebody else"):
        ended(monkeypatch, jvm, ConfigError("of somebody else"))
    assert jvm.is_stopped


def test_a_local_spark_has_memory_for_all_of_its_tasks_unless_somebody_has_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in session.CONFIGURED_BY:
        monkeypatch.delenv(name, raising=False)

    def memory(master: str) -> Any:
        return for_messages(master).get(MEMORY)

    assert (memory("local[2]"), memory("local[16,4]"), memory("local")) == ("1024m", "3072m", "1024m")
    assert memory("spark://host:7077") is None
    monkeypatch.setenv("SPARK_CONF_DIR", "/etc/spark")
    assert memory("local[16]") is None


def test_a_spark_that_is_interrupted_ends_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    jvm = Jvm(None)
    with pytest.raises(KeyboardInterrupt):
        ended(monkeypatch, jvm, KeyboardInterrupt())
    assert (jvm.level, jvm.is_stopped) == ("OFF", True)


def test_whatever_a_call_says_that_was_interrupted_it_is_an_interrupt(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The next call to the JVM, on the way out, may fail for that."""
    jvm = Jvm(None)
    monkeypatch.setattr(session, "local_session", lambda *words, **named: jvm)

    def call() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            logging.getLogger("py4j.clientserver").error("a traceback")
            raise RuntimeError("Answer from Java side is empty") from None

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), session_for("test", master="local[1]"):
            call()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert (jvm.level, jvm.is_stopped, caplog.text) == ("OFF", True, "")
    logging.getLogger("py4j.clientserver").error("another one")
    assert "another one" in caplog.text
