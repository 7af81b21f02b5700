"""A Spark whose Python has no pyarrow: other sources are there as before, and ours says what to install."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.needs("java")

SITE = """
import sys, types
sys.modules["pyarrow"] = None
sys.modules["pandas"] = types.ModuleType("pandas")
sys.modules["pandas"].__version__ = "0.1"
"""
"""Imported by every Python at its start, the workers of Spark included."""

OTHER_SOURCE = """
from pyspark.sql.datasource import DataSource

class DefaultSource(DataSource):
    @classmethod
    def name(cls):
        return "other"

    def schema(self):
        return "a int"
"""

PROGRAM = """
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from bolide.model.errors import BolideError
from bolide.pipeline.session import QUIET, local_session

try:
    local_session()
except BolideError as error:
    print(error)
builder = SparkSession.builder.master("local[1]")
for key, value in QUIET.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
print(spark.read.format("other").load().columns)
ours = spark.read.format("rocketmq").options(nameserver="127.0.0.1:1", subscribe="orders")
for read in (ours.load, lambda: ours.schema("body binary").load().count()):
    try:
        read()
    except AnalysisException as error:
        print(error)
spark.stop()
"""


def test_without_pyarrow_only_ours_is_missing_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(SITE)
    (tmp_path / "pyspark_other.py").write_text(OTHER_SOURCE)
    settings = {"PYTHONPATH": str(tmp_path), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    words = "the source rocketmq needs pyarrow 18 or newer"
    assert done.stdout.startswith(words)
    assert "['a']" in done.stdout
    assert done.stdout.count(words) == 3
    assert done.stdout.count("pip install 'pyarrow>=18'") == 3
    assert "Traceback" not in done.stdout
