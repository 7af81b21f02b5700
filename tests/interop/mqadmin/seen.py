"""What was seen when the commands were last compared: `seen.json`, from which docs/compatibility.md is written.

`BOLIDE_KEEP_SEEN=1 pytest tests/interop/test_mqadmin_table.py` writes it again; then `make fix` writes the page.
"""

import json
import os
from enum import StrEnum
from pathlib import Path
from typing import Any

PATH = Path(__file__).with_name("seen.json")
KEEP = "BOLIDE_KEEP_SEEN"


class Outcome(StrEnum):
    SAME = "same"
    """Both mean the same."""
    DIFFERS = "differs"
    """It works, and says it in another way."""
    FAILS = "fails"
    """It ends with an error that the original does not have."""


def load() -> dict[str, Any]:
    """By version: `codes`, numbers by name, and `commands`, the outcome of those that were run, "" for others."""
    return json.loads(PATH.read_text()) if PATH.exists() else {}


def keep(version: str, codes: dict[str, int], commands: dict[str, str]) -> None:
    """Write down what was seen, if that is wanted."""
    if os.environ.get(KEEP):
        seen = load() | {version: {"codes": codes, "commands": commands}}
        PATH.write_text(json.dumps(seen, indent=1, sort_keys=True) + "\n")
