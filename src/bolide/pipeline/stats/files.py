"""Files that are there whole or not at all: a report that is made anew every hour is never seen half written."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bolide.model.errors import ConfigError


def check_file(file: Path, option: str) -> None:
    """Before the work begins, not when it is done: whether a file can be written there."""
    if file.is_dir():
        raise ConfigError(f"{option}: {file} is a directory; name a file in it")
    if not file.parent.is_dir():
        raise ConfigError(f"{option}: there is no directory {file.parent}")
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise ConfigError(f"{option}: {file} cannot be written; choose another place")


def check_folder(folder: Path, option: str) -> None:
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{option}: {folder} is a file; name a folder")
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not os.access(there, os.W_OK):
        raise ConfigError(f"{option}: {folder} cannot be written; choose another place")


@contextmanager
def whole(file: Path) -> Iterator[Path]:
    """Where to write what gets its name when it is complete.  Pipes and devices are written to as they are."""
    if file.exists() and not file.is_file():
        yield file
        return
    new = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        yield new
        new.replace(file)
    finally:
        new.unlink(missing_ok=True)
