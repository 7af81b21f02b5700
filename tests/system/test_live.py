"""What a terminal shows while a command works: progress of a large file, and a benchmark that runs."""

import os
import pty
import subprocess
from pathlib import Path

from tests.peers.server import Together
from tests.system.command import BOLIDE, RUN_SECONDS, run

LINES = 40_000


def on_terminal(*words: str, stdin: Path | None = None) -> str:
    """What a command that ends by itself writes to stderr, where that is a terminal."""
    leader, follower = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
    env.pop("NO_COLOR", None)
    with (
        open(stdin or os.devnull, "rb") as file,
        subprocess.Popen(
            [BOLIDE, *words], stdin=file, stdout=subprocess.DEVNULL, stderr=follower, env=env
        ) as process,
    ):
        os.close(follower)
        shown = b""
        while chunk := _read(leader):
            shown += chunk
        assert process.wait(RUN_SECONDS) == 0, shown
    os.close(leader)
    return shown.decode()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # the other side has gone
        return b""


def test_a_large_file_has_a_bar_and_a_small_one_has_none(server: Together, tmp_path: Path) -> None:
    large, small = tmp_path / "large.txt", tmp_path / "small.txt"
    large.write_text(f"{'x' * 99}\n" * LINES)
    small.write_text("x\n")
    shown = on_terminal("send", "barred", "--file", str(large), "-n", server.nameserver)
    assert "\x1b[" in shown
    assert "sending" in shown
    assert f"sent {LINES} messages to barred" in shown
    quick = on_terminal("send", "barred", "-n", server.nameserver, stdin=small)
    assert "sending" not in quick


def test_a_benchmark_shows_rates_latencies_and_its_bottleneck_while_it_runs(server: Together) -> None:
    shown = on_terminal(
        *("bench", "produce", "--count", "200", "--rate", "100", "--seconds", "120", "-n", server.nameserver)
    )
    assert "bolide bench produce" in shown
    assert "p99.9" in shown
    assert "held back by" in shown
    assert shown.count("held back by") > 1  # again and again


def test_rows_of_a_file_arrive_as_messages(server: Together, tmp_path: Path) -> None:
    file = tmp_path / "orders.csv"
    file.write_text("id,order\n" + "".join(f"{number},order {number}\n" for number in range(2_000)))
    sent = run(
        *("send", "rowed", "--file", str(file), "--body-column", "order", "--key-column", "id"),
        *("-n", server.nameserver),
    )
    assert sent.code == 0, sent.err
    shown = run(
        *(
            "tail",
            "rowed",
            "--since",
            "beginning",
            "--no-follow",
            "-f",
            "{keys}:{body}",
            "-n",
            server.nameserver,
        )
    )
    assert sorted(shown.out.splitlines()) == sorted(f"{number}:order {number}" for number in range(2_000))
