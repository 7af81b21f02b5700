"""A process full of real RocketMQ clients: takes one command per line, answers and reports in JSON lines.

`Conversation` is that talk, whatever language the clients are written in; `Witness` is a JVM.
"""

import itertools
import json
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.peers import java
from tests.peers.process import ManagedProcess
from tests.peers.waiting import PATIENCE_SECONDS

Fields = dict[str, Any]

ANSWER_SECONDS = 2 * PATIENCE_SECONDS  # a reader inside may wait that long itself
HEAP = "-Xmx512m"
SOON_MS = 1_000
"""How often clients look at their group, at the routes and send heartbeats, which is every 20 and 30 s by default:
what a client finds out by itself comes soon."""
OWN_LOOK_SOON = (HEAP, *java.QUICK_START, f"-Dbolide.peer.soon={SOON_MS}")
"""For a program in which the commands of `mqadmin` have clients of their own, which are left as they are."""
QUICK = (*OWN_LOOK_SOON, f"-Drocketmq.client.rebalance.waitInterval={SOON_MS}")


class WitnessError(RuntimeError):
    """The other program answered with an error."""


class Conversation:
    """One running program; its sources have the verbs and their options."""

    def __init__(self, version: str, process: ManagedProcess) -> None:
        self.version = version
        self.process = process
        self._numbers = itertools.count(1)
        self._pending: dict[int, Future[Fields]] = {}
        self._events: defaultdict[str, list[Fields]] = defaultdict(list)
        self._changed = threading.Condition()
        threading.Thread(target=self._read, daemon=True, name=f"witness-{version}").start()
        self.ask("ping")

    def begin(self, verb: str, **options: object) -> "Future[Fields]":
        """Give a command and return at once; the future holds its answer."""
        number = next(self._numbers)
        future: Future[Fields] = Future()
        words = [str(number), verb, *(f"{key}={_encode(value)}" for key, value in options.items())]
        with self._changed:
            self._pending[number] = future
            self.process.stdin.write((" ".join(words) + "\n").encode())
            self.process.stdin.flush()
        return future

    def ask(self, verb: str, seconds: float = ANSWER_SECONDS, /, **options: object) -> Fields:
        """Give a command and wait so many seconds for its answer."""
        try:
            return self.begin(verb, **options).result(seconds)
        except TimeoutError:
            tail = self.process.log_tail()
            raise WitnessError(f"no answer to {verb} after {seconds:g} s\n{tail}") from None

    def events(self, name: str, *kinds: str) -> list[Fields]:
        """Everything of these kinds that the client of this name reported so far, oldest first."""
        with self._changed:
            return [event for event in self._events[name] if event["event"] in kinds]

    def wait_events(self, name: str, done: Callable[[], bool], seconds: float) -> bool:
        """Wake on every report and check; false when the deadline passed first."""
        with self._changed:
            return self._changed.wait_for(done, seconds)

    def stop(self) -> None:
        """Close every client in order, then the program."""
        self.process.stdin.close()
        self.process.wait_exit()
        self.process.stop()

    def kill(self) -> None:
        """The whole program at once: no client says goodbye."""
        self.process.kill()

    def _read(self) -> None:
        try:
            for line in self.process.stdout:
                if line.startswith(b"{"):  # the runtime itself may have a warning to print
                    self._take(json.loads(line))
        except ValueError:  # closed while reading: the process was ended by us
            pass
        with self._changed:
            for future in self._pending.values():
                future.set_exception(WitnessError(f"{self.process.name} has ended"))
            self._pending.clear()
            self._changed.notify_all()

    def _take(self, fields: Fields) -> None:
        with self._changed:
            if "answer" in fields:
                future = self._pending.pop(fields["answer"])
                if fields["ok"]:
                    future.set_result(fields)
                else:
                    future.set_exception(WitnessError(fields["error"]))
            elif "name" in fields:
                self._events[fields["name"]].append(fields)
            self._changed.notify_all()


class Witness(Conversation):
    """One running `bolide.peer.Main serve` with the Java clients of one version."""

    def __init__(self, version: str, home: Path, jvm_flags: Sequence[str] = QUICK) -> None:
        logging = java.write_logging_files(home)
        process = ManagedProcess(
            f"Java client {version}",
            [
                *(java.java_command(), *jvm_flags, *java.OPEN_MODULES),
                *(f"-Duser.home={home}", f"-Drocketmq.home.dir={home}"),
                f"-Drmq.logback.configurationFile={logging}",
                *("-cp", java.class_path(version), java.MAIN, "serve"),
            ],
            home / "stderr.log",
            cwd=home,  # some commands of mqadmin write files where they are
            piped=True,
        )
        super().__init__(version, process)


def _encode(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        value = ",".join(str(item) for item in value)
    return quote(str(value), safe=":;,/*|.-_") if not isinstance(value, int) else str(value)
