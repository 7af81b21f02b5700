"""Files of pipelines that are there whole and durably, or not at all."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

PARQUET_ENDS = (b"PAR1", b"PARE")
"""What a Parquet file begins and ends with, the second when it is encrypted."""

PARQUET_BYTES_MIN = 12
"""Both ends, and the length of what is said before the last one."""


def write_whole(file: Path, text: str, ready: Callable[[], None] = lambda: None) -> None:
    """A file that is there with all of its text, durably, or not at all; `ready` is called before it is there."""
    new = file.with_name(f"{file.name}.new")
    with new.open("w") as opened:
        opened.write(text)
        opened.flush()
        os.fsync(opened.fileno())
    ready()
    new.replace(file)
    sync_folder(file.parent)


def sync_folder(folder: Path) -> None:
    """What was made, moved or removed in a folder is durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def cut_parquet(files: Iterable[Path]) -> list[Path]:
    """Those that are empty or cut off.  Spark takes an empty one for a file without rows, and says nothing."""
    return [file for file in files if not _has_ends(file)]


def _has_ends(file: Path) -> bool:
    with file.open("rb") as opened:
        if opened.seek(0, os.SEEK_END) < PARQUET_BYTES_MIN:
            return False
        opened.seek(-len(PARQUET_ENDS[0]), os.SEEK_END)
        return opened.read() in PARQUET_ENDS
