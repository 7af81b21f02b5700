"""Lines of bash in which `bolide` is ours, and a terminal that it believes in."""

import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.peers.waiting import PATIENCE_SECONDS

BOLIDE = Path(sys.executable).with_name("bolide")


def shell(
    line: str, nameserver: str = "127.0.0.1:1", env: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a line of bash; its exit code is that of the first command of a pipe that failed."""
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line}"],
        env={
            **os.environ,
            "PATH": f"{BOLIDE.parent}:{os.environ['PATH']}",
            "BOLIDE_NAMESERVER": nameserver,
            **(env or {}),
        },
        capture_output=True,
        text=True,
        errors="backslashreplace",
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def on_a_terminal(*words: str, env: Mapping[str, str]) -> bytes:
    """Everything that a command writes to a terminal."""
    ours, theirs = pty.openpty()
    try:
        with subprocess.Popen(
            [BOLIDE, *words], stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, **env}
        ) as process:
            os.close(theirs)
            shown = bytearray()
            while True:
                try:
                    piece = os.read(ours, 65_536)
                except OSError:  # how a terminal says that nobody writes to it any more
                    break
                if not piece:
                    break
                shown += piece
            process.wait(PATIENCE_SECONDS)
    finally:
        os.close(ours)
    return bytes(shown)


def completed(line: str, nameserver: str) -> list[str]:
    """What bash is offered for the last word of a line."""
    words = line.split(" ")
    env = {
        "_BOLIDE_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    return shell("bolide", nameserver, env).stdout.split()
