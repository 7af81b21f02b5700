"""What the Python of Spark must have for this source, and what is said when it has not.

Spark imports every module named `pyspark_*` to see which sources there are, and when one of them cannot be imported it
has none at all.  So nothing here, in `source.py` and in `pyspark_bolide` imports more than PySpark itself.
"""

import importlib
import re
import sys

from bolide.model.errors import RequirementMissing

LEAST = {"pyspark": "4.0", "pyarrow": "18"}
"""The versions of pyproject.toml."""


def check_requirements() -> None:
    for name, least in LEAST.items():
        try:
            version = str(importlib.import_module(name).__version__)
        except ImportError as error:
            raise _missing(name, least, f"it cannot be imported: {error}") from error
        if _numbers(version) < _numbers(least):
            raise _missing(name, least, f"it is {version}")


STREAM_READ = ("pyspark.sql.streaming.datasource", "SupportsTriggerAvailableNow")
"""4.2: Spark tells a source where its batch begins, and how much it may take."""

STREAM_WRITE = ("pyspark.sql.datasource", "DataSourceStreamArrowWriter")
"""4.1: the batches of a stream reach a writer as Arrow."""


def check_stream_read() -> None:
    """Without a start, a queue whose broker is away would be read again from its beginning after a restart."""
    if not _has(*STREAM_READ):
        raise _too_old("a stream of topics", "4.2")


def check_stream_write() -> None:
    if not _has(*STREAM_WRITE):
        raise _too_old("a stream that is written to topics", "4.1")


def _has(module: str, name: str) -> bool:
    try:
        return hasattr(importlib.import_module(module), name)
    except ImportError:
        return False


def _too_old(what: str, least: str) -> RequirementMissing:
    version = importlib.import_module("pyspark").__version__
    return RequirementMissing(
        f"{what} needs PySpark {least} or newer, and in {sys.executable} it is {version}; batches, spark.read and"
        f" df.write, work there. `pip install 'pyspark>={least}'` brings it, on the cluster, too"
    )


def _missing(name: str, least: str, instead: str) -> RequirementMissing:
    return RequirementMissing(
        f"the source rocketmq needs {name} {least} or newer, and in {sys.executable} {instead}."
        f" `pip install '{name}>={least}'` there brings it"
    )


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers; what follows them (`.dev1`, `+local`) does not matter here."""
    found = re.match(r"\d{1,9}(\.\d{1,9})*", version)
    return tuple(map(int, found[0].split("."))) if found else ()
