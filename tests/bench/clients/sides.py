"""The sides: a fresh server, and a program that puts load on it."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench.clients import peers
from tests.bench.sides import KAFKA, OURS, THEIRS, Untrustworthy, make_topic, running_kafka, running_server
from tests.peers.built import ROOT
from tests.peers.proxy import Proxy

ANSWER_SECONDS = 1_800
"""Ten million messages on a slow machine; only what hangs takes longer."""


@dataclass(frozen=True)
class ClientSide:
    """Where the clients connect, which program is one, and how a topic of four queues comes into being."""

    address: str
    python: Path
    program: str
    make_topic: Callable[[str], None]
    has_columns: bool = False

    def ask(self, verb: str, topic: str, count: int, warm: int) -> dict[str, float]:
        """One process, from its start to its answer."""
        words = [
            self.python,
            "-m",
            f"tests.bench.clients.{self.program}",
            verb,
            self.address,
            topic,
            count,
            warm,
        ]
        done = subprocess.run(
            [str(word) for word in words],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=ANSWER_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise Untrustworthy(f"{self.program} {verb} failed\n{done.stdout}{done.stderr}")
        answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return answer


@contextmanager
def running_clients(name: str, home: Path) -> Iterator[ClientSide]:
    with {OURS: _ours, KAFKA: _kafkas, THEIRS: _theirs}[name](home) as side:
        yield side


@contextmanager
def _ours(home: Path) -> Iterator[ClientSide]:
    with running_server(OURS, home) as server:
        python = Path(sys.executable)
        yield ClientSide(
            server.nameserver,
            python,
            "load_bolide",
            lambda topic: make_topic(server, topic),
            has_columns=True,
        )


@contextmanager
def _kafkas(home: Path) -> Iterator[ClientSide]:
    python = peers.python()
    with running_kafka(home) as server:
        yield ClientSide(server.address, python, "load_kafka", lambda _: None)  # the first write makes it


@contextmanager
def _theirs(home: Path) -> Iterator[ClientSide]:
    """Their Python client speaks gRPC: it needs the proxy."""
    python = peers.python()
    with running_server(THEIRS, home / "server") as server:
        proxy = Proxy(home / "proxy", server.nameserver)
        try:
            proxy.start()
            yield ClientSide(
                proxy.address,
                python,
                "load_rocketmq",
                lambda topic: make_topic(server, topic),
            )
        finally:
            proxy.kill()
