"""The Java that Spark would start: where it is, and of which version.  Nothing is run to find out."""

import os
import re
import shutil
from pathlib import Path

JAVA_LEAST = 17
RELEASE_CHARACTERS_MAX = 65_536

_VERSION = re.compile(r'^JAVA_VERSION="([^"]{1,64})"', re.MULTILINE)


def find_java() -> Path | None:
    """By Spark's rule: JAVA_HOME counts where it is set, else the path does."""
    home = os.environ.get("JAVA_HOME")
    if home and (java := Path(home) / "bin" / "java").exists():
        return java
    found = shutil.which("java")
    return None if found is None else Path(found)


def java_version(java: Path) -> str | None:
    """What the JDK says in the file `release` beside its folder `bin`; None where it says nothing."""
    try:
        with (java.resolve().parent.parent / "release").open() as file:
            found = _VERSION.search(file.read(RELEASE_CHARACTERS_MAX))
    except (OSError, ValueError):
        return None
    return None if found is None else found[1]


def is_old(version: str) -> bool:
    """
    >>> is_old("11.0.2"), is_old("1.8.0_292"), is_old("17"), is_old("25.0.1")
    (True, True, False, False)
    """
    first = re.match(r"\d{1,4}", version)
    return first is not None and int(first[0]) < JAVA_LEAST
