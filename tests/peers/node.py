"""Real Node clients: the packages that `package-lock.json` names are installed once, our program runs as it is."""

import json
import shutil
from pathlib import Path

from tests.peers import built
from tests.peers.process import ManagedProcess
from tests.peers.witness import Conversation

PROJECT = Path(__file__).resolve().parent / "node"
LISTS = [PROJECT / "package.json", PROJECT / "package-lock.json"]


def version() -> str:
    wanted: str = json.loads(LISTS[0].read_text())["dependencies"]["ali-ons"]
    return wanted


def build() -> Path:
    """The directory of the packages, current."""
    return built.made(f"node-{version()}", version(), LISTS, _run_npm) / "node_modules"


def _run_npm(place: Path) -> None:
    for path in LISTS:
        shutil.copy(path, place)
    words = [built.tool("npm"), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"]
    built.run("the Node peer", [words, words], place)


class NodeWitness(Conversation):
    """One process with Node clients."""

    def __init__(self, home: Path) -> None:
        process = ManagedProcess(
            f"Node client {version()}",
            [built.tool("node"), PROJECT / "main.js"],
            home / "stderr.log",
            env={"NODE_PATH": str(build())},
            piped=True,
        )
        super().__init__(f"node-{version()}", process)
