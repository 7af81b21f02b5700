"""The list of compiled modules; everything else about the package is in pyproject.toml.

Every extension has a readable Python twin, so a machine without a C compiler still installs and runs:
the build goes on without the extensions and `bolide doctor` says which of the two is in use.
"""

import os

from Cython.Build import cythonize
from setuptools import Extension, setup

COMPILED = [
    "bolide.wire._frame",
    "bolide.record._codec",
    "bolide.store._append",
    "bolide.pipeline._columns",
]

DEBUG = os.environ.get("BOLIDE_DEBUG_BUILD") == "1"

extensions = [
    Extension(
        name,
        [f"src/{name.replace('.', '/')}.pyx"],
        extra_compile_args=["-O0", "-g"] if DEBUG else ["-O3"],
        define_macros=[("CYTHON_TRACE", "1")] if DEBUG else [],
        optional=os.environ.get("BOLIDE_REQUIRE_COMPILED") != "1",
    )
    for name in COMPILED
    if os.path.exists(f"src/{name.replace('.', '/')}.pyx")
]

setup(
    ext_modules=cythonize(
        extensions,
        build_dir="build/cython-debug" if DEBUG else "build/cython",
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
)
