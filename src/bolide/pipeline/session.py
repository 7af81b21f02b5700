"""A local Spark for those who have none: quiet, with the Python that has bolide.

`PYSPARK_PYTHON` must name that interpreter before Spark starts its workers, or they are started with whatever
`python3` is on the path.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bolide.model.errors import ConfigError
from bolide.pipeline.requirements import check_requirements

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOGGING = Path(__file__).with_name("log4j2.properties")

QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}",
}


def local_session(
    name: str = "bolide", *, master: str = "local[*]", settings: Mapping[str, str] | None = None
) -> "SparkSession":
    """A session on this machine; `settings` are Spark's own and win over the defaults."""
    check_requirements()
    from pyspark.sql import SparkSession  # not before it is known to be there

    if not shutil.which("java") and not _java_home_has_java():
        raise ConfigError(
            "Spark needs a JDK of version 17 or newer: no java on the path, and JAVA_HOME has none"
        )
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # nobody else is to connect
        os.environ["PYSPARK_PYTHON"] = sys.executable
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # other machines may have it elsewhere
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in {**QUIET, **(settings or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _java_home_has_java() -> bool:
    home = os.environ.get("JAVA_HOME")
    return home is not None and (Path(home) / "bin" / "java").exists()
