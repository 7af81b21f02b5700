"""SeenFile: which keys were seen lately, in an SQLite file that outlives the process.

The same as `machines/seen_keys.py`, with the wall clock.  A key that was added is there after the process was killed;
after a loss of power the newest may be forgotten.  Several processes may use one file, on one machine.  No other file
is ever written to: one that is damaged, or belongs to another program, is left as it is.
"""

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from bolide.model.clock import Clock
from bolide.model.errors import ClientNotRunning, ConfigError, DedupFailed

APPLICATION_ID = 0x626F6C64
"""What SQLite keeps in the head of a file to tell whose it is."""

VERSION = 1
BUSY_S = 5.0
"""How long to wait for another process that writes to the file."""

KEYS_PER_QUERY = 500
RECOUNT_EVERY = 1_000
"""After so many keys: other processes may have added some."""

_PARTS = {
    ("table", "seen"): "(key BLOB PRIMARY KEY, seen_ms INTEGER NOT NULL) WITHOUT ROWID",
    ("index", "seen_by_time"): "ON seen (seen_ms)",
}
_SCHEMA = f"""
BEGIN IMMEDIATE;
{"".join(f"CREATE {kind} IF NOT EXISTS {name} {form};" for (kind, name), form in _PARTS.items())}
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {VERSION};
COMMIT;
"""
_CLAMP = "UPDATE seen SET seen_ms = ?1 - 1 WHERE seen_ms > ?1"
"""Of a time to come, because the clock was ahead for a while: they would outlast every new key."""
_FORGET_OLD = "DELETE FROM seen WHERE seen_ms < ?"
_FORGET_SURPLUS = "DELETE FROM seen WHERE key IN (SELECT key FROM seen ORDER BY seen_ms LIMIT ?)"

T = TypeVar("T")


class SeenFile:
    """One file, open until `close`; safe with several threads."""

    waits_for_disk = True

    def __init__(self, path: Path, clock: Clock, *, keys_max: int, age_max_ms: int) -> None:
        self._path = path
        self._clock = clock
        self._keys_max = keys_max
        self._age_max_ms = age_max_ms
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._database = _opened(path)
        self._count = 0
        self._added = 0
        try:
            self._run(self._forget)
        except DedupFailed:
            self._database.close()
            raise

    def __len__(self) -> int:
        with self._lock:
            return self._count

    def known(self, keys: Sequence[bytes]) -> set[bytes]:
        """Those of the keys that are remembered.

        Raises:
            DedupFailed: the file cannot be read.
        """
        return self._run(lambda: self._found(keys)) if keys else set()

    def add(self, keys: Sequence[bytes]) -> None:
        """Remember them from now on.

        Raises:
            DedupFailed: the file cannot be written to; none of them is remembered.
        """
        if keys:
            self._run(lambda: self._store(keys))

    def close(self) -> None:
        """Closing twice is fine."""
        with self._lock:
            self._database.close()

    def _run(self, work: Callable[[], T]) -> T:
        if self._pid != os.getpid():
            raise ClientNotRunning(
                f"the dedup window on {self._path} was made before the process was forked: make a new one in this"
                " process"
            )
        with self._lock:
            try:
                return work()
            except sqlite3.ProgrammingError as error:  # nothing else is wrong with our statements
                raise ClientNotRunning(f"the dedup window on {self._path} is closed") from error
            except sqlite3.Error as error:
                with contextlib.suppress(sqlite3.Error):
                    self._database.rollback()
                raise DedupFailed(f"the dedup window on {self._path}: {error}") from error

    def _found(self, keys: Sequence[bytes]) -> set[bytes]:
        found: set[bytes] = set()
        for start in range(0, len(keys), KEYS_PER_QUERY):
            some = keys[start : start + KEYS_PER_QUERY]
            places = ",".join("?" * len(some))
            query = f"SELECT key FROM seen WHERE seen_ms >= ? AND key IN ({places})"
            found.update(key for (key,) in self._database.execute(query, (self._oldest_ms(), *some)))
        return found

    def _store(self, keys: Sequence[bytes]) -> None:
        now_ms = self._clock.now_ms()
        self._database.execute("BEGIN IMMEDIATE")
        new = self._database.executemany(
            "INSERT OR IGNORE INTO seen VALUES (?, ?)", [(key, now_ms) for key in keys]
        ).rowcount
        if new < len(keys):
            self._database.executemany(
                "UPDATE seen SET seen_ms = ? WHERE key = ?", [(now_ms, key) for key in keys]
            )
        surplus = self._count + new - self._keys_max
        if surplus > 0:
            self._database.execute(_CLAMP, (now_ms,))
            new -= self._database.execute(_FORGET_SURPLUS, (surplus,)).rowcount
        self._database.execute("COMMIT")
        self._count += new
        self._added += len(keys)
        if self._added >= RECOUNT_EVERY:
            self._forget()

    def _forget(self) -> None:
        """What is too old or too much, whoever has added it."""
        self._database.execute("BEGIN IMMEDIATE")
        self._database.execute(_CLAMP, (self._clock.now_ms(),))
        self._database.execute(_FORGET_OLD, (self._oldest_ms(),))
        (count,) = self._database.execute("SELECT COUNT(*) FROM seen").fetchone()
        if count > self._keys_max:
            count -= self._database.execute(_FORGET_SURPLUS, (count - self._keys_max,)).rowcount
        self._database.execute("COMMIT")
        self._count = count
        self._added = 0

    def _oldest_ms(self) -> int:
        return self._clock.now_ms() - self._age_max_ms


def _opened(path: Path) -> sqlite3.Connection:
    """The file, made if it is not there; refused, and not changed, if it is none of ours or is damaged."""
    database: sqlite3.Connection | None = None
    try:
        database = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        _check(database, path)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
    except (sqlite3.Error, ConfigError) as error:
        if database is not None:
            database.close()
        if isinstance(error, ConfigError):
            raise
        if isinstance(error, sqlite3.OperationalError):  # the folder, its rights, the disk, another process
            raise ConfigError(f"the dedup window's file {path} cannot be opened: {error}") from error
        raise ConfigError(
            f"{path} is no file of a dedup window, or it is damaged ({error}): give another path, or delete it and lose"
            " what was remembered"
        ) from error
    return database


def _check(database: sqlite3.Connection, path: Path) -> None:
    (owner,) = database.execute("PRAGMA application_id").fetchone()
    (version,) = database.execute("PRAGMA user_version").fetchone()
    (tables,) = database.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
    if not tables and not owner:
        database.executescript(_SCHEMA)
        return
    if owner != APPLICATION_ID:
        raise ConfigError(f"{path} is a database of another program: give the dedup window a file of its own")
    if version != VERSION:
        raise ConfigError(
            f"{path} was written by another version of bolide (form {version}, this one has {VERSION}): give another"
            " path"
        )
    _check_parts(database, path)
    (said,) = database.execute("PRAGMA quick_check(1)").fetchone()
    if said != "ok":
        raise sqlite3.DatabaseError(said)


def _check_parts(database: sqlite3.Connection, path: Path) -> None:
    """A trigger, say, could make it forget whatever it is told."""
    missing = dict(_PARTS)
    remedy = "give another path, or delete it and lose what was remembered"
    query = "SELECT type, name, sql FROM sqlite_master WHERE name NOT GLOB 'sqlite_*'"
    for kind, name, sql in database.execute(query):
        if sql != f"CREATE {kind.upper()} {name} {missing.pop((kind, name), None)}":
            raise ConfigError(f"{path} has the {kind} {name}, which no dedup window makes: {remedy}")
    for kind, name in missing:
        raise ConfigError(f"{path} has no {kind} {name}: {remedy}")
