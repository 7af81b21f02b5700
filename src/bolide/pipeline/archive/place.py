"""The folder of an archive: what lies where in it, and who may change it.

    PLACE/archive.json       what this is: its version and format
    PLACE/lock               held by the system while somebody writes or compacts
    PLACE/manifest/          what is committed (`manifest.py`)
    PLACE/staging/NUMBER/    files of a commit that is under way
    PLACE/data/              date=…/topic=…/NUMBER-PART.parquet, and `_delta_log` in an archive of Delta
    PLACE/checkpoint/        how far the stream is, Spark's; unless it is kept elsewhere

A folder that this machine and all of Spark's workers see under the same path; an address of another file system is
refused, because a commit is a rename.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bolide.model.errors import BolideError, ConfigError, NothingFound
from bolide.pipeline.declared.checkpoint import AlreadyRunning, Checkpoint
from bolide.pipeline.folders import local_folder, scheme_of
from bolide.pipeline.whole_files import write_whole

PARQUET, DELTA = "parquet", "delta"
FORMATS = (PARQUET, DELTA)
VERSION = 1
HEAD = "archive.json"
STAGED = re.compile(r"[0-9]{12}")
"""What a folder of a commit that is under way is called."""

_FOLDERS = ("data", "manifest", "staging")


class ArchiveDamaged(BolideError):
    """An archive is not what its manifest says; `bolide pipeline audit` tells where."""


@dataclass(frozen=True)
class Place:
    folder: Path
    format: str = PARQUET

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def manifest(self) -> Path:
        return self.folder / "manifest"

    @property
    def staging(self) -> Path:
        return self.folder / "staging"

    def staged(self, number: int) -> Path:
        return self.staging / f"{number:012}"

    def check_staging(self) -> None:
        """Files are moved from there by renaming them, and what is left over in it is removed."""
        if self.staging.is_symlink():
            raise ArchiveDamaged(
                f"{self.staging} is a link: make it a folder of the same file system as {self.data}"
            )
        self.staging.mkdir(exist_ok=True)

    @contextmanager
    def held(self) -> Iterator[None]:
        """While this lasts nobody else changes the archive; `AlreadyRunning` when somebody does."""
        try:
            with Checkpoint(str(self.folder)).held():
                yield
        except AlreadyRunning as error:
            raise AlreadyRunning(
                f"somebody else writes to this archive: {self.folder}/lock is held; stop that run first,"
                " or give this one another --to"
            ) from error

    def check_free(self) -> None:
        """Says early what `held` would say."""
        if Checkpoint(str(self.folder)).is_held():
            with self.held():
                pass


def folder_of(text: str | Path) -> Path:
    """A path of this machine; `ConfigError` for an address."""
    if (folder := local_folder(str(text))) is None:
        raise ConfigError(
            f"{text}: an archive is a folder that this machine and Spark's workers see under the same path;"
            f" mount the {scheme_of(str(text))} storage there"
        )
    return folder.absolute()


def open_place(text: str | Path) -> Place:
    """An archive that is there."""
    folder = folder_of(text)
    try:
        told = json.loads((folder / HEAD).read_text())
    except FileNotFoundError:
        raise NothingFound(
            f"{folder} is no archive: it has no {HEAD}; `bolide pipeline archive TOPIC --to {folder}` makes one"
        ) from None
    except ValueError as error:
        raise ArchiveDamaged(f"{folder / HEAD} cannot be read: {error}") from error
    if not isinstance(told, dict) or told.get("version") != VERSION or told.get("format") not in FORMATS:
        raise ConfigError(f"{folder / HEAD} is of another version than this bolide knows ({VERSION})")
    return Place(folder, told["format"])


def open_or_make(text: str | Path, format_: str | None = None) -> Place:
    """An archive, made in an empty folder when there is none; what is there keeps its format."""
    folder = folder_of(text)
    if (folder / HEAD).exists():
        place = open_place(folder)
        if format_ not in (None, place.format):
            raise ConfigError(
                f"{folder} is an archive of {place.format}, and stays one: --format {place.format}"
            )
        return place
    if not _is_vacant(folder):
        raise ConfigError(f"{folder} is there, and is neither empty nor an archive: choose another folder")
    place = Place(folder, format_ or PARQUET)
    for name in _FOLDERS:
        (folder / name).mkdir(parents=True, exist_ok=True)
    write_whole(folder / HEAD, json.dumps({"version": VERSION, "format": place.format}) + "\n")
    return place


def _is_vacant(folder: Path) -> bool:
    """Nothing there, or what a run has left that was killed while it made the folder."""
    if not folder.exists():
        return True
    return folder.is_dir() and all(
        one.name in ("lock", f"{HEAD}.new") or (one.name in _FOLDERS and not any(one.iterdir()))
        for one in folder.iterdir()
    )
