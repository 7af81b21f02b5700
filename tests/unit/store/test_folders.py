"""Folders that last: each is synced into the folder above it."""

import os
from pathlib import Path

import pytest

from bolide.store.disk_os import OsDisk
from bolide.store.folders import make_folder, make_root


class ListeningDisk(OsDisk):
    """Remembers which folders were synced."""

    def __init__(self) -> None:
        self.synced: list[str] = []

    def sync_dir(self, path: str) -> None:
        self.synced.append(path)
        super().sync_dir(path)


def test_every_folder_that_had_to_be_made_is_synced_from_the_top(tmp_path: Path) -> None:
    disk = ListeningDisk()
    make_folder(disk, str(tmp_path / "a" / "b" / "c"))
    assert (tmp_path / "a" / "b" / "c").is_dir()
    assert disk.synced == [str(tmp_path), str(tmp_path / "a"), str(tmp_path / "a" / "b")]


def test_all_folders_above_a_store_are_synced(tmp_path: Path) -> None:
    disk = ListeningDisk()
    make_root(disk, str(tmp_path / "a"))
    assert (tmp_path / "a").is_dir()
    assert disk.synced == [*map(str, reversed(tmp_path.parents)), str(tmp_path)]


def test_a_store_may_lie_below_folders_that_we_must_not_look_at(tmp_path: Path) -> None:
    class LockedUpDisk(ListeningDisk):
        def sync_dir(self, path: str) -> None:
            if path != str(tmp_path):
                raise PermissionError(13, "Permission denied", path)
            super().sync_dir(path)

    disk = LockedUpDisk()
    make_root(disk, str(tmp_path / "a"))
    assert disk.synced == [str(tmp_path)]


def test_a_folder_that_is_there_is_synced_all_the_same(tmp_path: Path) -> None:
    """It may have been made by a process that was killed before its sync."""
    (tmp_path / "a").mkdir()
    disk = ListeningDisk()
    make_folder(disk, str(tmp_path / "a"))
    assert disk.synced == [str(tmp_path)]


def test_a_relative_path_begins_where_the_process_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_folder(OsDisk(), os.path.join("a", "b"))
    assert (tmp_path / "a" / "b").is_dir()
