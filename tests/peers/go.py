"""Real Go clients: our program is built once, with the client library at the version that `go.mod` names."""

import re
from pathlib import Path

from tests.peers import built
from tests.peers.process import ManagedProcess
from tests.peers.witness import Conversation

PROJECT = Path(__file__).resolve().parent / "go"
PROGRAM = "witness"


def version() -> str:
    found = re.search(r"rocketmq-client-go/v2 v([\d.]+)", (PROJECT / "go.mod").read_text())
    assert found is not None
    return found[1]


def build() -> Path:
    """The program, current."""
    sources = [PROJECT / "go.mod", PROJECT / "go.sum", *PROJECT.glob("*.go")]
    return built.made(f"go-{version()}", version(), sources, _run_go) / PROGRAM


def _run_go(place: Path) -> None:
    """With the Go that is installed, never another one that it would fetch for itself."""
    words: list[str | Path] = [built.tool("go"), "build", "-buildvcs=false", "-o", place / PROGRAM, "."]
    built.run("the Go peer", [words, words], PROJECT, {"GOTOOLCHAIN": "local"})


class GoWitness(Conversation):
    """One process with Go clients."""

    def __init__(self, home: Path) -> None:
        process = ManagedProcess(
            f"Go client {version()}",
            [build()],
            home / "stderr.log",
            env={"rocketmq.client.localOffsetStoreDir": str(home / "offsets")},  # of broadcasting consumers
            piped=True,
        )
        super().__init__(f"go-{version()}", process)
