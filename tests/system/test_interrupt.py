"""Ctrl-C and SIGTERM while a server still recovers its store."""

import shutil
import signal
from pathlib import Path

import pytest

from bolide.store.disk_os import OsDisk
from tests.peers.ports import free_broker_port, free_port
from tests.peers.process import ManagedProcess
from tests.peers.waiting import PATIENCE_SECONDS
from tests.system.command import launch, lines_of, run
from tests.unit.store.stage import killed, message, opened, put

MESSAGES = 300_000
"""More than the readable twins, which are used here for that reason, look at in the moment that a signal takes."""

SLOWLY = {"BOLIDE_PURE": "1"}
SIZES = {"mappedFileSizeCommitLog": 64 * 1024**2, "mappedFileSizeConsumeQueue": 6_000_000}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A large store that was killed, made once."""
    root = tmp_path_factory.mktemp("interrupt") / "data"
    store = opened(
        root,
        segment_bytes=SIZES["mappedFileSizeCommitLog"],
        queue_file_bytes=SIZES["mappedFileSizeConsumeQueue"],
    )
    some = [message(body=b"x")] * 1000
    for _ in range(MESSAGES // len(some)):
        put(store, *some)
    killed(store)
    return root


@pytest.fixture
def data(original: Path, tmp_path: Path) -> Path:
    return shutil.copytree(original, tmp_path / "data")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("command", ["up", "broker"])
def test_a_signal_ends_a_recovery_and_the_next_start_begins_it_again(
    command: str, number: signal.Signals, data: Path, tmp_path: Path
) -> None:
    process = start(command, data, tmp_path / "first.log", SLOWLY)
    lock = str(data / "lock")
    process.wait_ready(lambda: OsDisk().is_locked(lock))  # from here on it recovers
    process.signal(number)
    assert process.wait_exit(PATIENCE_SECONDS) == 130, process.log_tail()
    (line,) = lines_of(process.log)
    assert line == "stopped while recovering; the next start begins the recovery again"
    assert not OsDisk().is_locked(lock)
    assert (data / "abort").exists()
    assert run("store", "inspect", str(data)).code == 0

    again = start(command, data, tmp_path / "again.log", {})
    again.wait_ready(lambda: any(" serves" in line for line in lines_of(again.log)))
    assert any(f"where it ends: {MESSAGES} messages" in line for line in lines_of(again.log))
    again.kill()


def start(command: str, data: Path, log: Path, env: dict[str, str]) -> ManagedProcess:
    settings = {
        **SIZES,
        "storePathRootDir": data,
        "listenPort": free_broker_port(),
        "bindAddress": "127.0.0.1",
    }
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    if command == "up":
        words += ["--nameserver-port", str(free_port())]
    return launch(log, command, *words, env=env)
