"""Files of pipelines that are there whole and durably, or not at all."""

import os
from collections.abc import Callable
from pathlib import Path


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
