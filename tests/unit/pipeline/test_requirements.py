"""A machine without pyarrow keeps all its other sources, and says what to install when this one is used."""

import subprocess
import sys
import types

import pytest

from bolide.model.errors import RequirementMissing
from bolide.pipeline.requirements import LEAST, check_requirements
from tests.arch import house

BLOCKED = ("pyarrow", "pandas", "numpy", "lz4", "zstandard", "orjson", "uvloop")


def test_what_is_installed_is_enough() -> None:
    check_requirements()


def test_the_versions_are_those_that_pip_is_told() -> None:
    extras = house.pyproject()["project"]["optional-dependencies"]
    asked = [*extras["spark"], *extras["arrow"]]
    for name, least in LEAST.items():
        assert any(text.split(",")[0] == f"{name}>={least}" for text in asked)


def test_the_source_can_be_imported_where_next_to_nothing_is_installed() -> None:
    """Spark imports it to see which sources there are; if that fails, there are none."""
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({BLOCKED}))\n"
        "import pyspark_bolide\n"
        "assert pyspark_bolide.DefaultSource.name() == 'rocketmq'\n"
        "try:\n"
        "    pyspark_bolide.DefaultSource(options={})\n"
        "except Exception as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.startswith("the source rocketmq needs pyarrow 18 or newer, and in ")
    assert "pip install 'pyarrow>=18'" in done.stdout


@pytest.mark.parametrize("version", ["17.0.0", "9", "0.15.1", "17.9.9.dev3", "nonsense"])
def test_a_version_that_is_too_old_is_named(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    old = types.ModuleType("pyarrow")
    old.__dict__["__version__"] = version
    monkeypatch.setitem(sys.modules, "pyarrow", old)
    with pytest.raises(RequirementMissing, match=f"needs pyarrow 18 or newer, and in .* it is {version}"):
        check_requirements()


@pytest.mark.parametrize("version", ["18", "18.0.0", "100.1", "18.0.0.dev1", "18.1+local"])
def test_newer_versions_are_taken(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    new = types.ModuleType("pyarrow")
    new.__dict__["__version__"] = version
    monkeypatch.setitem(sys.modules, "pyarrow", new)
    check_requirements()


OLD_SPARK = """
import sys
import pyspark.sql.datasource as known
for name in NAMES:
    delattr(known, name)
if NO_LIMITS:
    sys.modules["pyspark.sql.streaming.datasource"] = None
from pyspark.sql.types import StructType
from pyspark_bolide import DefaultSource
from pyspark_bolide_store import DefaultSource as StoreSource
source = DefaultSource(options={"nameserver": "127.0.0.1:1", "subscribe": "orders"})
target = DefaultSource(options={"nameserver": "127.0.0.1:1", "topic": "orders"})
schema = StructType().add("body", "binary")
source.reader(source.schema())
target.writer(schema, False)
StoreSource(options={"path": "."}).reader(source.schema())
for ask in (lambda: source.streamReader(schema).initialOffset(), lambda: target.streamWriter(schema, False)):
    try:
        ask()
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
"""
NAMES_OF_4_1 = [
    "DataSourceStreamArrowWriter",
    "EqualNullSafe",
    "EqualTo",
    "Filter",
    "GreaterThan",
    "GreaterThanOrEqual",
    "In",
    "LessThan",
    "LessThanOrEqual",
]


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        (
            NAMES_OF_4_1,
            ["a stream of topics needs PySpark 4.2", "a stream that is written to topics needs PySpark 4.1"],
        ),
        ([], ["a stream of topics needs PySpark 4.2"]),
    ],
    ids=["4.0", "4.1"],
)
def test_an_older_spark_reads_and_writes_batches_and_says_what_it_cannot(
    missing: list[str], told: list[str]
) -> None:
    """Names that this version does not have are taken away.  docs/spark.md says how real ones are tried."""
    program = OLD_SPARK.replace("NAMES", repr(missing)).replace("NO_LIMITS", "True")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert len(lines) == len(told)
    for line, words in zip(lines, told, strict=True):
        assert line.startswith(f"RequirementMissing: {words} or newer, and in {sys.executable} it is ")
