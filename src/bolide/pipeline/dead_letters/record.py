"""The record of a redrive, beside its plan: a line of JSON for every letter that was sent, with its receipt.

    {"plan": "20261117-104500-5e0c91aa", "to": null}
    {"broker": "broker-a", "queue": 0, "offset": 12, "id": "7F00…", "to": "orders", "at": "2026-11-17T10:45:01.123Z",
     "new_id": "3C1A…", "stored": {"broker": "broker-a", "queue": 3, "offset": 871}}

A letter that is in it is not sent again.  `stored` is null where an earlier run had sent the letter and was killed
before it could write down its receipt.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from bolide.model.errors import ConfigError
from bolide.pipeline.dead_letters.plan import KnownBy, Letter


def record_of(plan: Path) -> Path:
    """
    >>> record_of(Path("plan.json")).name
    'plan.sent.jsonl'
    """
    return plan.with_suffix(".sent.jsonl")


class Record:
    """Open for one redrive at a time."""

    def __init__(self, file: BinaryIO, sent: set[KnownBy]) -> None:
        self._file = file
        self.sent = sent
        self.added = 0

    def add(self, letter: Letter, receipt: Mapping[str, Any]) -> None:
        """At once in the file, and on the disk with `sync`."""
        line = {"broker": letter.broker, "queue": letter.queue, "offset": letter.offset, "id": letter.id}
        self._write({**line, **receipt})
        self.sent.add(letter.known_by)
        self.added += 1

    def begin(self, plan_id: str, to: str | None) -> None:
        self._write({"plan": plan_id, "to": to})

    def sync(self) -> None:
        os.fsync(self._file.fileno())

    def _write(self, line: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        self._file.flush()


@contextmanager
def opened(path: Path, plan_id: str, to: str | None) -> Iterator[Record]:
    """The record of a plan, new or with what it has; `ConfigError` where it is another's or in use."""
    with path.open("a+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ConfigError(
                f"this plan is being redriven: {path} is in use; wait until that ends"
            ) from error
        head, sent = _read(path, file)
        record = Record(file, sent)
        if head is None:
            record.begin(plan_id, to)
        else:
            _check_head(path, head, plan_id, to)
        try:
            yield record
        finally:
            record.sync()


def sent_by(path: Path, plan_id: str, to: str | None) -> set[KnownBy]:
    """What is recorded so far; the file is left as it is."""
    head, sent = _look(path)
    if head is not None:
        _check_head(path, head, plan_id, to)
    return sent


def recorded(path: Path, plan_id: str) -> set[KnownBy]:
    """The same, wherever the letters went."""
    head, sent = _look(path)
    if head is not None:
        _check_plan(path, head, plan_id)
    return sent


def _look(path: Path) -> tuple[Mapping[str, Any] | None, set[KnownBy]]:
    try:
        with path.open("rb") as file:
            return _read(path, file, mend=False)
    except FileNotFoundError:
        return None, set()


def _check_plan(path: Path, head: Mapping[str, Any], plan_id: str) -> None:
    if head.get("plan") != plan_id:
        raise ConfigError(f"{path} is the record of another plan ({head.get('plan')}): move it away")


def _check_head(path: Path, head: Mapping[str, Any], plan_id: str, to: str | None) -> None:
    _check_plan(path, head, plan_id)
    if head.get("to") != to:
        where = f"with --to {head['to']}" if head.get("to") else "without --to"
        raise ConfigError(f"the redrive of this plan began {where}: go on so, or make another plan")


def _read(path: Path, file: BinaryIO, *, mend: bool = True) -> tuple[Mapping[str, Any] | None, set[KnownBy]]:
    """The first line, and the letters of all others.  A line that a crash has cut is not there."""
    file.seek(0)
    head: Mapping[str, Any] | None = None
    sent: set[KnownBy] = set()
    end = 0
    for number, line in enumerate(file, 1):
        if not line.endswith(b"\n"):
            break
        try:
            tree = json.loads(line)
            if number == 1:
                head = tree
            else:
                sent.add((str(tree["broker"]), int(tree["queue"]), int(tree["offset"]), str(tree["id"])))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ConfigError(
                f"{path}:{number} cannot be read, so nobody knows what was sent: {error!r}"
            ) from error
        end += len(line)
    if mend:
        file.truncate(end)
        file.seek(0, os.SEEK_END)
    return head, sent
