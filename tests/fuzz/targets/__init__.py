"""The table of targets, by name.  `test_targets.py` holds it against the parsers that there are."""

import base64
import functools
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz.target import Target
from tests.fuzz.targets.model import MODEL
from tests.fuzz.targets.record import RECORD
from tests.fuzz.targets.store import STORE
from tests.fuzz.targets.wire import WIRE

TARGETS: dict[str, Target] = {target.name: target for target in (*WIRE, *MODEL, *RECORD, *STORE)}

GROWN = Path(__file__).resolve().parents[1] / "grown"
"""Inputs that a guided run has found to reach new code: a file per target, an input per line, base64."""


@functools.cache
def ready_corpus(name: str) -> Sequence[bytes]:
    """What the inputs of a target are made from."""
    grown = GROWN / f"{name}.txt"
    lines = grown.read_text().split() if grown.exists() else []
    return (*TARGETS[name].corpus(), *map(base64.b64decode, lines))
