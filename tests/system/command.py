"""Running the `bolide` command that belongs to the interpreter of the tests."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.peers.process import ManagedProcess
from tests.peers.waiting import PATIENCE_SECONDS

BOLIDE = Path(sys.executable).with_name("bolide")
RUN_SECONDS = PATIENCE_SECONDS


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


def run(*words: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> Outcome:
    """A command that ends by itself."""
    done = subprocess.run(
        [BOLIDE, *words],
        input=stdin,
        capture_output=True,
        timeout=RUN_SECONDS,
        check=False,
        env={**os.environ, **(env or {})},
    )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


def launch(log: Path, *words: str, env: Mapping[str, str] | None = None) -> ManagedProcess:
    """A command that goes on: a server, or a tail that follows."""
    return ManagedProcess(f"bolide {words[0]}", [BOLIDE, *words], log, env=env)


def lines_of(log: Path) -> Sequence[str]:
    return log.read_text().splitlines() if log.exists() else ()
