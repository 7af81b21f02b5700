"""The real disk: what the store relies on and the operating system does not do by itself."""

import os
from pathlib import Path

import pytest

from bolide.store.disk_os import OsDisk

SIZE = 8 << 20


@pytest.mark.parametrize("reserve", [True, False])
def test_erasing_takes_what_was_written_behind_a_place_and_nothing_else(
    tmp_path: Path, reserve: bool
) -> None:
    path = str(tmp_path / "file")
    file = OsDisk().create(path, SIZE, reserve=reserve)
    view = file.map()
    file.write(0, b"x" * 100)
    view[3 << 20 : (3 << 20) + 5] = b"stale"
    file.write(SIZE - 5, b"stale")
    assert file.erase(50)
    assert file.read(0, SIZE) == b"x" * 50 + bytes(SIZE - 50)
    assert bytes(view[3 << 20 : (3 << 20) + 5]) == bytes(5)
    assert not file.erase(50)
    view.release()
    file.close()
    assert os.path.getsize(path) == SIZE


def test_zeros_are_written_over_zeros_where_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = OsDisk().create(str(tmp_path / "file"), SIZE, reserve=True)
    file.write(0, b"x" * 100)
    file.sync()
    file.erase(50)
    written: list[tuple[int, bytes]] = []
    monkeypatch.setattr(file, "write", lambda at, data: written.append((at, bytes(data))))
    assert not file.erase(50)
    assert written == []
    assert not file.erase(50, again=True)
    at, data = written[0]
    assert at == 50
    assert data == bytes(len(data)) != b""
    file.close()


def test_erasing_a_reserved_file_keeps_its_blocks(tmp_path: Path) -> None:
    file = OsDisk().create(str(tmp_path / "file"), SIZE, reserve=True)
    file.write(1000, b"stale")
    file.erase(0)
    assert os.stat(file.path).st_blocks * 512 >= SIZE
    file.close()


def test_a_file_that_was_never_written_is_not_read_to_be_erased(tmp_path: Path) -> None:
    """A terabyte would take a while."""
    file = OsDisk().create(str(tmp_path / "file"), 1 << 40, reserve=False)
    assert not file.erase(0)
    file.close()


def test_a_write_that_the_system_cuts_short_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = OsDisk().create(str(tmp_path / "file"), SIZE, reserve=False)
    write = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda descriptor, data, at: write(descriptor, data[:7], at))
    file.write(3, memoryview(b"longer than seven bytes"))
    file.write(100, b"whole")
    file.write(200, b"")
    assert file.read(0, 105) == bytes(3) + b"longer than seven bytes" + bytes(74) + b"whole"
    file.close()
