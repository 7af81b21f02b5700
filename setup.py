"""The list of compiled modules; everything else about the package is in pyproject.toml.

Every extension has a readable Python twin, so a machine without a C compiler still installs and runs:
the build goes on without the extensions and `bolide doctor` says which of the two is in use.  With
BOLIDE_REQUIRE_COMPILED=1 (as the Makefile sets it) that is an error, and so is a warning of Cython.

BOLIDE_SANITIZE=1 compiles them so that whatever they read or write beside an object, and whatever C leaves undefined,
ends the process with a report.  `make fuzz` builds that beside the normal one, and never over it.
"""

import os
from pathlib import Path

from Cython.Build import cythonize
from Cython.Compiler import Options
from setuptools import Extension, setup

COMPILED = [
    "bolide.model._pairs",
    "bolide.wire._frame",
    "bolide.wire._pull",
    "bolide.record._checksum",
    "bolide.record._codec",
    "bolide.record._stored",
    "bolide.rules.sql._judge",
    "bolide.store._append",
    "bolide.store._collect",
    "bolide.store._ends",
    "bolide.store._walk",
    "bolide.store._index",
    "bolide.store.timer._filing",
    "bolide.client._gather",
    "bolide.offline._faults",
    "bolide.offline._texts",
    "bolide.arrow._columns",
    "bolide.arrow._rows",
]

DEBUG = os.environ.get("BOLIDE_DEBUG_BUILD") == "1"
SANITIZE = os.environ.get("BOLIDE_SANITIZE") == "1"
REQUIRED = os.environ.get("BOLIDE_REQUIRE_COMPILED") == "1"

Options.warning_errors = REQUIRED

SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]


def flags() -> tuple[str, list[str], list[str]]:
    """Where Cython writes, and what the compiler and the linker are told."""
    if SANITIZE:
        return "build/cython-sanitized", ["-O1", "-g", "-fno-omit-frame-pointer", *SANITIZERS], SANITIZERS
    return ("build/cython-debug", ["-O0", "-g"], []) if DEBUG else ("build/cython", ["-O3"], [])


CYTHON_DIR, COMPILER_FLAGS, LINKER_FLAGS = flags()


def source_of(name: str) -> str:
    return f"src/{name.replace('.', '/')}.pyx"


def declarations_changed() -> bool:
    """Whether a file that modules share is newer than what was made of them.

    Cython sees that itself, but not where a declaration is cimported by another name; and a module that counts the
    columns of a table as they were before writes where it must not.
    """
    shared = [path.stat().st_mtime for kind in ("*.pxd", "*.pxi") for path in Path("src").rglob(kind)]
    made = [path.stat().st_mtime for path in Path(CYTHON_DIR).rglob("*.c")]
    return bool(made) and max(shared) > min(made)


extensions = cythonize(
    [
        Extension(
            name,
            [source_of(name)],
            extra_compile_args=COMPILER_FLAGS,
            extra_link_args=LINKER_FLAGS,
            define_macros=[("CYTHON_TRACE", "1")] if DEBUG else [],
        )
        for name in COMPILED
    ],
    build_dir=CYTHON_DIR,
    force=declarations_changed(),
    include_path=["src"],
    compiler_directives={
        "language_level": 3,
        "boundscheck": False,
        "wraparound": False,
        "initializedcheck": False,
        "cdivision": True,
        "linetrace": DEBUG,
    },
)
for extension in extensions:
    extension.optional = not REQUIRED  # here, because cythonize forgets it

setup(ext_modules=extensions)
