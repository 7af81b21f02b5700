"""bolide itself, run the way a user runs it: through its command line, in processes of its own."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.peers.process import ManagedProcess
from tests.peers.server import HOST, ServerKind


@dataclass(frozen=True)
class Bolide(ServerKind):
    """How to run ours."""

    name: str = "bolide"

    def launch_nameserver(self, home: Path, port: int) -> ManagedProcess:
        return self._launch(
            "name server",
            home,
            ["nameserver", "--host", HOST, "--port", str(port), "--data", str(home / "data")],
        )

    def launch_broker(self, home: Path, config: Path, name: str) -> ManagedProcess:
        return self._launch(f"broker {name}", home, ["broker", "-c", str(config)])

    def launch_together(
        self, home: Path, nameserver_port: int, broker_port: int, settings: Mapping[str, str]
    ) -> list[ManagedProcess]:
        words = ["up", "--data", str(home / "data"), "--host", HOST]
        words += ["--nameserver-port", str(nameserver_port), "--broker-port", str(broker_port)]
        for key, value in settings.items():
            words += ["--set", f"{key}={value}"]
        return [self._launch("up", home, words)]

    def _launch(self, what: str, home: Path, words: list[str]) -> ManagedProcess:
        """The `bolide` command that belongs to the interpreter running the tests."""
        command = Path(sys.executable).with_name("bolide")
        home.mkdir(parents=True, exist_ok=True)
        return ManagedProcess(f"bolide {what}", [command, *words], home / "stdout.log")
