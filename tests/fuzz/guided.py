"""Inputs that reach code which no input has reached before, found by Atheris, to make others from.

Atheris is not among our dependencies: nothing but this needs it.  It sees Python
code alone, so of compiled modules it sees the twins.  What it finds and is small is kept in `grown/`.
"""

import base64
import functools
import gc
import multiprocessing
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import Any

from tests.fuzz.mutate import SIZE_BYTES_MAX
from tests.fuzz.target import Target, was_taken
from tests.fuzz.targets import GROWN, grown_inputs, valid_inputs

KEPT_MAX = 12
KEPT_BYTES_MAX = 300
"""How many inputs of a target are kept, and how large they may be: they are read by people too."""


def run(target: Target, inputs: int) -> str:
    """Look for such inputs, and keep some; what became of it in words."""
    if find_spec("atheris") is None:
        return "Atheris is not here; python -m pip install atheris"
    _instrument()
    with tempfile.TemporaryDirectory(prefix="fuzz-guided-") as folder:
        for number, data in enumerate((*valid_inputs(target.name), *grown_inputs(target.name))):
            Path(folder, f"given-{number}").write_bytes(data)
        worker = multiprocessing.get_context("fork").Process(target=_look, args=(target, inputs, folder))
        worker.start()
        worker.join()
        found = sorted(
            (path.read_bytes() for path in Path(folder).iterdir() if not path.name.startswith("given-")),
            key=lambda data: (len(data), data),
        )
    kept = _spread([data for data in found if 0 < len(data) <= KEPT_BYTES_MAX])
    GROWN.mkdir(exist_ok=True)
    lines = sorted(base64.b64encode(data).decode() for data in kept)
    (GROWN / f"{target.name}.txt").write_text("".join(f"{line}\n" for line in lines))
    ended = "" if worker.exitcode == 0 else f"; it ended with {worker.exitcode}, so look above"
    return f"{target.name}: {len(found)} inputs reached something new, {len(kept)} are kept{ended}"


def _spread(found: list[bytes]) -> list[bytes]:
    """Some of them, from the smallest to the largest."""
    return found[:: max(1, -(-len(found) // KEPT_MAX))]


def _look(target: Target, inputs: int, folder: str) -> None:
    """Ends the process, as Atheris does when it is done."""
    atheris: Any = __import__("atheris")

    def look(data: bytes) -> None:
        was_taken(target, data)
        was_taken(target, target.mend(data)[:SIZE_BYTES_MAX])

    options = [f"-runs={inputs}", f"-max_len={SIZE_BYTES_MAX}", "-verbosity=0", "-timeout=10"]
    atheris.Setup([sys.argv[0], *options, folder], look)
    atheris.Fuzz()


@functools.cache
def _instrument() -> None:
    """The functions of the package that are there by now, once for all targets."""
    atheris: Any = __import__("atheris")
    for function in [one for one in gc.get_objects() if isinstance(one, FunctionType)]:
        if (function.__module__ or "").startswith("bolide."):
            atheris.instrument_func(function)
