"""A local Spark for those who have none: quiet, with the Python that has bolide, and with words for how it died.

`PYSPARK_PYTHON` must name that interpreter before Spark starts its workers, or they are started with whatever
`python3` is on the path.
"""

import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from bolide.model.errors import BolideError, ConfigError
from bolide.model.limit import MIB
from bolide.pipeline.interrupts import interrupted_in_one_piece, noted_interrupts, untold_interrupts
from bolide.pipeline.java import find_java
from bolide.pipeline.requirements import check_requirements
from bolide.pipeline.spark_errors import causes, in_one_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOGGING = Path(__file__).with_name("log4j2.properties")

QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}",
}

MEMORY = "spark.driver.memory"
MEMORY_LEAST_MIB = 1024
MEMORY_OF_A_TASK_MIB = 192
"""What a task may need that reads or writes messages of the largest size: a row group, a batch and their copies."""

ROWS_AT_ONCE = 4
"""Rows of Parquet that are unpacked together.  Spark's 4,096 would have 16 GiB of the largest messages; so few cost
nothing that could be measured where a row has as much in it as a message."""

BYTES_AT_ONCE = 16 * MIB
"""Of rows that the JVM gives to a Python together, before the last one."""

CONFIGURED_BY = ("SPARK_CONF_DIR", "SPARK_DRIVER_MEMORY", "SPARK_HOME")
"""Where these say something, somebody has chosen how much memory Spark gets."""

OUT_OF_MEMORY = 52
"""With this code Spark's JVM ends itself when its memory is at an end."""

SHUT_DOWN = "SparkContext was shut down"
"""So it ends what still runs when its JVM is about to end."""

LOGGED_AND_RAISED = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
"""PySpark's loggers of errors that it raises as well."""

EXIT_LOOKS, EXIT_LOOK_S = 100, 0.1
"""For a JVM that no longer answers, until it is gone."""


class SparkDied(BolideError):
    """The JVM is gone, or has no memory left; what was committed before stays."""


def for_messages(master: str) -> dict[str, str]:
    """Settings under which files with messages of any size are read and written in bounded memory."""
    found = {
        "spark.sql.parquet.columnarReaderBatchSize": str(ROWS_AT_ONCE),
        "spark.sql.execution.arrow.maxBytesPerBatch": str(BYTES_AT_ONCE),
    }
    if (tasks := _local_tasks(master)) is not None and not any(name in os.environ for name in CONFIGURED_BY):
        found[MEMORY] = f"{max(MEMORY_LEAST_MIB, MEMORY_OF_A_TASK_MIB * tasks)}m"
    return found


def _local_tasks(master: str) -> int | None:
    """How many run at once on this machine; None where that is another's affair.

    >>> _local_tasks("local[3]"), _local_tasks("local"), _local_tasks("spark://host:7077")
    (3, 1, None)
    """
    match = re.fullmatch(r"local(?:\[(\*|\d+)(?:,\d+)?\])?", master)
    if match is None:
        return None
    return (os.cpu_count() or 1) if match[1] == "*" else int(match[1] or 1)


@contextmanager
def session_for(
    name: str, *, master: str, settings: Mapping[str, str] | None = None
) -> Iterator["SparkSession"]:
    """A session that is ended behind it; `SparkDied` says so when its JVM ended first, and what Spark says itself
    becomes one line where that is known (`spark_errors.py`)."""
    with untold_interrupts():
        with interrupted_in_one_piece():
            spark = local_session(name, master=master, settings=settings)
        memory = str(spark.sparkContext.getConf().get(MEMORY, "1g"))
        with noted_interrupts() as interrupts:
            try:
                with _errors_told_once():
                    yield spark
            except KeyboardInterrupt:
                interrupts.came = True
                raise
            except Exception as error:
                if interrupts.came:
                    raise KeyboardInterrupt from None
                if (told := _death(spark, error, memory) or in_one_line(error)) is not None:
                    raise told from error
                raise
            finally:
                if interrupts.came:
                    _stop_interrupted(spark)
                else:
                    _stop(spark)


@contextmanager
def _errors_told_once() -> Iterator[None]:
    """PySpark logs errors of queries, with the stack of the JVM, that it also raises."""
    from pyspark.logger import PySparkLogger

    loggers = [PySparkLogger.getLogger(name) for name in LOGGED_AND_RAISED]
    for logger in loggers:
        logger.addFilter(_is_told)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(_is_told)


def _is_told(record: logging.LogRecord) -> bool:
    return False


def _stop(spark: "SparkSession") -> None:
    """A JVM without memory ends by itself, before that or under it."""
    if _exit_code(spark) is not None:
        return
    try:
        spark.stop()
    except Exception:
        if _exit_code(spark, looks=EXIT_LOOKS) is None:
            raise


def _stop_interrupted(spark: "SparkSession") -> None:
    """Whoever is interrupted wants to be gone, and the JVM goes too: nothing is said of what fails on the way, and
    nothing by its threads when jobs are ended under them."""
    with suppress(Exception):
        spark.sparkContext.setLogLevel("OFF")
        _stop(spark)


def _death(spark: "SparkSession", error: Exception, memory: str) -> SparkDied | None:
    """What an error really was, where Spark has no memory left or is not there any more."""
    found = list(causes(error))
    is_ending = any(_is_of_the_connection(one) or SHUT_DOWN in str(one) for one in found)
    code = _exit_code(spark, looks=EXIT_LOOKS if is_ending else 1)
    if code == OUT_OF_MEMORY or any("java.lang.OutOfMemoryError" in str(one) for one in found):
        return SparkDied(
            f"Spark has no memory left ({MEMORY} is {memory}); what was committed before is kept. Give it more:"
            f" --spark {MEMORY}=4g, on a cluster --spark spark.executor.memory=4g"
        )
    if code is not None:
        return SparkDied(
            f"Spark's JVM has ended with code {code}; what was committed before is kept."
            f" Somebody has killed it, or the machine has no memory left for {MEMORY}={memory}"
        )
    return None


def _is_of_the_connection(error: BaseException) -> bool:
    from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]

    return isinstance(error, ConnectionError | Py4JNetworkError)


def _exit_code(spark: "SparkSession", looks: int = 1) -> int | None:
    """Of the JVM, when it is gone; None too where it is nobody's child here."""
    process = getattr(getattr(spark.sparkContext, "_gateway", None), "proc", None)
    if process is None:
        return None
    while (code := process.poll()) is None and (looks := looks - 1) > 0:
        Event().wait(EXIT_LOOK_S)
    return None if code is None else int(code)


def local_session(
    name: str = "bolide", *, master: str = "local[*]", settings: Mapping[str, str] | None = None
) -> "SparkSession":
    """A session on this machine; `settings` are Spark's own and win over the defaults."""
    check_requirements()
    from pyspark.sql import SparkSession  # not before it is known to be there

    if find_java() is None:
        raise ConfigError(
            "Spark needs a JDK of version 17 or newer: no java on the path, and JAVA_HOME has none"
        )
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # nobody else is to connect
        os.environ["PYSPARK_PYTHON"] = sys.executable
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # other machines may have it elsewhere
    chosen = {"spark.app.name": name, "spark.master": master, **QUIET, **(settings or {})}
    _start_jvm(chosen)
    builder = SparkSession.builder
    for key, value in chosen.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _start_jvm(settings: Mapping[str, str]) -> None:
    """As PySpark does, but in a session of its own.

    A terminal that closes and a supervisor that stops a service signal every process of the group.  They mean this one,
    which lets the batch in hand end; the JVM ends behind it, whatever happens to it: its standard input is a pipe.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if getattr(SparkContext, "_gateway", None) is None:
        conf = SparkConf().setAll(list(settings.items()))
        gateway = launch_gateway(conf, {"start_new_session": True})  # type: ignore[no-untyped-call]
        SparkContext._ensure_initialized(gateway=gateway, conf=conf)
