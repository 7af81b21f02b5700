"""What a user gives to a cluster that has no bolide: a folder of packages, and its archive.  Not a test.

The folder is what `pip install --target FOLDER bolide.whl` leaves there.  Making a wheel would compile everything once
more, so the packages are copied from this checkout, and their dependencies from where they are installed.
"""

import os
import re
import shutil
import tarfile
import venv
from importlib.metadata import PackageNotFoundError, distribution, requires
from pathlib import Path

import pyarrow

ROOT = Path(__file__).parents[2]
ARCHIVE = "shipped.tar.gz"
FOLDER = "shipped"


def ship(place: Path) -> None:
    """`shipped` and `shipped.tar.gz` below `place`."""
    folder = place / FOLDER
    for package in ("bolide", "pyspark_bolide", "pyspark_bolide_store"):
        shutil.copytree(
            ROOT / "src" / package, folder / package, ignore=shutil.ignore_patterns("__pycache__", "*.py[xi]")
        )
    for name in _needed_by("bolide", set()):
        for file in distribution(name).files or ():
            if ".." not in file.parts and file.suffix != ".pyc":
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(str(file.locate()), folder / file)
    with tarfile.open(place / ARCHIVE, "w:gz", compresslevel=1) as archive:
        archive.add(folder, ".")


def python_without_bolide(place: Path) -> Path:
    """An interpreter as a cluster has it: nothing installed but pyarrow; PySpark comes from Spark itself."""
    venv.create(place, with_pip=False, symlinks=True)
    packages = next((place / "lib").glob("python3*/site-packages"))
    os.symlink(Path(pyarrow.__file__).parent, packages / "pyarrow")
    return place / "bin" / "python"


def _needed_by(name: str, known: set[str]) -> set[str]:
    """Names of what it needs, and of what that needs, without extras."""
    for text in requires(name) or ():
        found = re.match(r"[\w.-]+", text)
        assert found is not None
        needed = found[0].lower()
        if "extra ==" in text or needed in known:
            continue
        try:
            distribution(needed)
        except PackageNotFoundError:
            continue  # of another platform, or version of Python
        known.add(needed)
        _needed_by(needed, known)
    return known
