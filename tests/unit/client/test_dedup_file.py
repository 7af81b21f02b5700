"""The file of a dedup window: what it survives, and what it refuses."""

import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bolide.client import dedup_file
from bolide.client.dedup import DedupWindow
from bolide.model.errors import ClientNotRunning, ConfigError
from bolide.net.surroundings import Surroundings
from tests.unit.client.test_dedup import SetClock

KILLED = """
import os, signal, sys
from bolide import DedupWindow
window = DedupWindow(path=sys.argv[1])
for number in range(500):
    window.done(str(number))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_was_done_is_known_after_the_process_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "seen"
    assert subprocess.run([sys.executable, "-c", KILLED, path], check=False).returncode == -signal.SIGKILL
    with DedupWindow(path=path) as window:
        assert len(window) == 500
        assert all(window.seen(str(number)) for number in range(500))


def test_two_windows_on_one_file_know_of_each_other_and_keep_its_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dedup_file, "RECOUNT_EVERY", 10)
    with (
        DedupWindow(path=tmp_path / "seen", messages_max=50) as one,
        DedupWindow(path=tmp_path / "seen", messages_max=50) as two,
    ):
        one.done("a")
        assert two.seen("a")
        for number in range(200):
            (one, two)[number % 2].done(str(number))
    with sqlite3.connect(tmp_path / "seen") as database:
        ((count,),) = database.execute("SELECT COUNT(*) FROM seen").fetchall()
    database.close()
    assert count <= 60


def test_a_smaller_window_forgets_what_is_too_much_when_it_is_opened(tmp_path: Path) -> None:
    with DedupWindow(path=tmp_path / "seen") as window:
        for number in range(20):
            window.done(str(number))
    with DedupWindow(path=str(tmp_path / "seen"), messages_max=5) as window:
        assert len(window) == 5


def test_keys_of_a_time_to_come_do_not_push_out_the_new_ones(tmp_path: Path) -> None:
    """A wall clock that was ahead for a while leaves them behind, while the window is open or before."""
    clock = SetClock()
    options: dict[str, Any] = {"messages_max": 5, "age_max_ms": 1000, "path": tmp_path / "seen"}
    with DedupWindow(**options, surroundings=Surroundings(clock=clock)) as window:
        clock.ms += 3_600_000
        for number in range(5):
            window.done(f"ahead {number}")
        clock.ms -= 3_600_000
        window.done("open")
        assert window.seen("open")
    with sqlite3.connect(tmp_path / "seen") as database:
        database.execute("UPDATE seen SET seen_ms = 1 << 62 WHERE seen_ms <> ?", (clock.ms,))
    database.close()
    clock.ms += 1
    with DedupWindow(**options, surroundings=Surroundings(clock=clock)) as window:
        for number in range(3):
            clock.ms += 1
            window.done(f"new {number}")
        assert len(window) == 5
        assert all(window.seen(f"new {number}") for number in range(3))
        clock.ms += 1002
        window.done("last")
        assert sum(window.seen(f"ahead {number}") for number in range(5)) == 0


def _text(path: Path) -> None:
    path.write_text("not a database, but long enough to be looked at" * 100)


def _foreign(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE customers (name TEXT)")
    database.close()


def _schema(change: str) -> Callable[[Path], None]:
    def spoil(path: Path) -> None:
        DedupWindow(path=path).close()
        with sqlite3.connect(path) as database:
            database.executescript(change)
        database.close()

    return spoil


def _newer(path: Path) -> None:
    DedupWindow(path=path).close()
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()


def _damaged(path: Path) -> None:
    with DedupWindow(path=path) as window:
        for number in range(2000):
            window.done(str(number))
    size = path.stat().st_size
    with path.open("r+b") as file:
        for place in range(4096, size, 4096):
            file.seek(place)
            file.write(b"\xff" * 512)


def _cut(path: Path) -> None:
    with DedupWindow(path=path) as window:
        for number in range(2000):
            window.done(str(number))
    os.truncate(path, 5000)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_text, "is no file of a dedup window, or it is damaged"),
        (_foreign, "is a database of another program: give the dedup window a file of its own"),
        (_newer, "was written by another version of bolide (form 99, this one has 1)"),
        (_damaged, "is no file of a dedup window, or it is damaged"),
        (_cut, "is no file of a dedup window, or it is damaged"),
        (
            _schema("CREATE TRIGGER t AFTER INSERT ON seen BEGIN DELETE FROM seen; END"),
            "has the trigger t, which no dedup window makes",
        ),
        (_schema("CREATE VIEW v AS SELECT 1"), "has the view v, which no dedup window makes"),
        (
            _schema("DROP TABLE seen; CREATE TABLE seen (key TEXT, other TEXT)"),
            "has the table seen, which no dedup window makes",
        ),
        (_schema("DROP TABLE seen"), "has no table seen"),
        (Path.mkdir, "cannot be opened"),
    ],
)
def test_a_file_that_is_damaged_or_of_others_is_refused_and_left_as_it_is(
    tmp_path: Path, spoil: Callable[[Path], None], said: str
) -> None:
    path = tmp_path / "seen"
    spoil(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(ConfigError, match=re.escape(said)) as raised:
        DedupWindow(path=path)
    assert str(path) in str(raised.value)
    assert (path.read_bytes() if path.is_file() else None) == before


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be opened"):
        DedupWindow(path=tmp_path / "missing" / "seen")


def test_a_window_that_is_closed_or_of_another_process_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = DedupWindow(path=tmp_path / "seen")
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: -1)
        with pytest.raises(ClientNotRunning, match="make a new one in this process"):
            window.seen("a")
    window.close()
    window.close()
    with pytest.raises(ClientNotRunning, match="is closed"):
        window.done("a")
