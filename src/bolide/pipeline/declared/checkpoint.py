"""The folder of a pipeline: Spark's checkpoints, one per query, and beside them who runs it and how it ended.

    CHECKPOINT/lock              held while the pipeline runs, by the system: nothing is left over from a kill
    CHECKPOINT/state.json        when it was started, and how it ended if it could still say so
    CHECKPOINT/queries/NAME/     Spark's: offsets/N is what batch N reads, commits/N that it is done

Spark's files are only read here, in the form that its offset log has (`v1`, metadata, then one line per source).
"""

import fcntl
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

from bolide.model.errors import ConfigError
from bolide.model.limits.spark import SPARK_OFFSETS_TEXT_MAX
from bolide.pipeline.declared.definition import Definition
from bolide.pipeline.folders import local_folder, scheme_of

DEFAULT_ROOT = "~/.bolide/pipelines"
LOCK_TRIES = 5
LOCK_PAUSE_S = 0.05


class AlreadyRunning(ConfigError):
    """Somebody else runs the same pipeline: two would write the same batches."""


@dataclass(frozen=True)
class Batch:
    """One batch as Spark wrote it down: what each source has given when it is done."""

    number: int
    planned_ms: int
    offsets: Sequence[Any]


@dataclass(frozen=True)
class Checkpoint:
    """Where a pipeline keeps what a restart goes on from."""

    location: str
    """As Spark is told it: a path, or an address of another file system."""

    @classmethod
    def of(cls, definition: Definition, given: str | None = None) -> "Checkpoint":
        text = given or definition.checkpoint
        if text is None:
            return cls._by_default(definition)
        return cls.at(text, Path.cwd() if given else definition.folder)

    @classmethod
    def _by_default(cls, definition: Definition) -> "Checkpoint":
        """By the name; of a pipeline that has only its file's, by the place of the file where another has that name.

        A file that was moved goes on from where it was: it is another one only while the first is still there.
        """
        root, file = Path(DEFAULT_ROOT).expanduser(), definition.file
        plain = cls(str(root / definition.name))
        if definition.is_named:
            return plain
        own = root / f"{definition.name}-{zlib.crc32(str(file).encode()):08x}"
        other = plain.read_state().get("file")
        is_taken = isinstance(other, str) and other != str(file) and Path(other).exists()
        return cls(str(own)) if is_taken or own.exists() else plain

    @classmethod
    def at(cls, text: str, folder: Path) -> "Checkpoint":
        """A path beside a folder, or an address."""
        path = local_folder(text)
        return cls(text.rstrip("/") if path is None else str(folder / path))

    @property
    def folder(self) -> Path | None:
        """None on another file system, which only Spark reads."""
        return None if scheme_of(self.location) else Path(self.location)

    def of_query(self, name: str) -> str:
        return f"{self.location}/queries/{name}"

    @contextmanager
    def held(self) -> Iterator[None]:
        """While this lasts nobody else runs the pipeline; `AlreadyRunning` when somebody does."""
        if self.folder is None:
            yield
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if not _lock(descriptor):
                raise self._taken()
            yield
        finally:
            os.close(descriptor)

    def is_held(self) -> bool:
        if self.folder is None or not (self.folder / "lock").exists():
            return False
        descriptor = os.open(self.folder / "lock", os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def check_free(self) -> None:
        """Says early what `held` would say."""
        if self.is_held():
            raise self._taken()

    def _taken(self) -> AlreadyRunning:
        return AlreadyRunning(
            f"this pipeline runs already: {self.location}/lock is held; stop it first,"
            " or give this one another name or checkpoint"
        )

    def write_state(self, **members: Any) -> None:
        """For people and `status`; a run never reads it."""
        if self.folder is not None:
            new = self.folder / "state.json.new"
            new.write_text(json.dumps(members, indent=2) + "\n")
            new.replace(self.folder / "state.json")

    def read_state(self) -> dict[str, Any]:
        if self.folder is None:
            return {}
        try:
            state = json.loads((self.folder / "state.json").read_text())
        except (OSError, ValueError):
            return {}
        return state if isinstance(state, dict) else {}

    def queries(self) -> list[str]:
        """Names of queries that have begun."""
        if self.folder is None:
            raise ConfigError(
                f"{self.location} is not on this machine: its offsets can only be read by Spark"
            )
        try:
            return sorted(path.name for path in (self.folder / "queries").iterdir() if path.is_dir())
        except FileNotFoundError:
            return []

    def last_done(self, query: str) -> Batch | None:
        """The last batch of a query that is written and will not be repeated."""
        folder = Path(self.of_query(query))
        numbers = set(_numbers(folder / "commits")) & set(_numbers(folder / "offsets"))
        return read_batch(folder / "offsets" / str(max(numbers)), max(numbers)) if numbers else None

    def in_hand(self, query: str) -> int | None:
        """The batch that was begun and is not done, which a restart repeats."""
        folder = Path(self.of_query(query))
        begun = max(_numbers(folder / "offsets"), default=-1)
        return begun if begun > max(_numbers(folder / "commits"), default=-1) else None


def _lock(descriptor: int) -> bool:
    """Whether it is ours.  Who only looks (`is_held`) holds it for a moment, which is waited for."""
    for left in reversed(range(LOCK_TRIES)):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if left:
                Event().wait(LOCK_PAUSE_S)
        else:
            return True
    return False


def read_batch(file: Path, number: int) -> Batch | None:
    """None where the file is of another form than the one that is known here."""
    with file.open() as opened:
        lines = opened.read(SPARK_OFFSETS_TEXT_MAX).splitlines()
    if lines[:1] != ["v1"] or len(lines) < 2:
        return None
    try:
        metadata = json.loads(lines[1])
        offsets = [None if line == "-" else json.loads(line) for line in lines[2:]]
        return Batch(number, int(metadata.get("batchTimestampMs", 0)), offsets)
    except (AttributeError, TypeError, ValueError):
        return None


def _numbers(folder: Path) -> list[int]:
    try:
        return [int(path.name) for path in folder.iterdir() if path.name.isdigit()]
    except FileNotFoundError:
        return []
