"""The table of targets, by name.  `test_targets.py` holds it against the parsers that there are."""

import base64
import functools
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz.target import Target
from tests.fuzz.targets.bodies import BODIES
from tests.fuzz.targets.model import MODEL
from tests.fuzz.targets.record import RECORD
from tests.fuzz.targets.rules import RULES
from tests.fuzz.targets.store import STORE
from tests.fuzz.targets.wire import WIRE

TARGETS: dict[str, Target] = {
    target.name: target for target in (*WIRE, *BODIES, *MODEL, *RECORD, *RULES, *STORE)
}

GROWN = Path(__file__).resolve().parents[1] / "grown"
"""Inputs that a guided run has found to reach new code: a file per target, an input per line, base64."""


@functools.cache
def valid_inputs(name: str) -> Sequence[bytes]:
    return tuple(TARGETS[name].corpus())


@functools.cache
def grown_inputs(name: str) -> Sequence[bytes]:
    path = GROWN / f"{name}.txt"
    return tuple(map(base64.b64decode, path.read_text().split())) if path.exists() else ()
