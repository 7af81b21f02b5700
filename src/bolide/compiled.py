"""Compiled or readable: the one place that chooses between an extension module and its Python twin.

Every compiled module (`_frame`, `_codec`, …) has a twin in plain Python (`frame_twin`, `codec_twin`, …) with the
same names and the same tests.  The twin is used where the extension was not built, and everywhere when the
environment variable `BOLIDE_PURE` is `1`.
"""

import importlib.util
import os

PURE = os.environ.get("BOLIDE_PURE") == "1"

COMPILED_MODULES = (
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
)


def use_compiled(name: str) -> bool:
    """Whether `name` (one of `COMPILED_MODULES`) is built and allowed."""
    assert name in COMPILED_MODULES, name
    return not PURE and importlib.util.find_spec(name) is not None


def describe() -> dict[str, str]:
    """Module name to `compiled` or `python`, for `bolide doctor`."""
    return {name: "compiled" if use_compiled(name) else "python" for name in COMPILED_MODULES}
