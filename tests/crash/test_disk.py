"""The simulated disk loses what a real one may lose, and nothing else."""

import errno
import random
from collections.abc import Callable

import pytest

from bolide.store.small_file import write_whole
from tests.crash.disk import SimDisk
from tests.crash.image import PAGE_BYTES, SECTOR_BYTES

PAGES = 4
SIZE = PAGES * PAGE_BYTES
DRAWS = 300


def states(disk: SimDisk, path: str = "/folder/file") -> set[bytes | None]:
    """What a file may be found with after power loss."""
    return {disk.after_power_loss(random.Random(seed)).files().get(path) for seed in range(DRAWS)}


def with_file() -> SimDisk:
    """A file of zeros that is durable, and so is its name."""
    disk = SimDisk()
    disk.make_dirs("/folder")
    disk.sync_dir("/")
    file = disk.create("/folder/file", SIZE, reserve=True)
    file.sync()
    disk.sync_dir("/folder")
    return disk


def failing(kind: str) -> Callable[[str, str], None]:
    def on_step(step: str, path: str) -> None:
        if step == kind:
            raise OSError(errno.EIO, "Input/output error", path)

    return on_step


def test_what_was_synced_is_there() -> None:
    disk = with_file()
    file = disk.open("/folder/file")
    file.map()[:] = b"x" * SIZE
    file.sync()
    assert states(disk) == {b"x" * SIZE}


def test_each_page_that_was_not_synced_is_there_or_not() -> None:
    disk = with_file()
    disk.open("/folder/file").map()[:] = b"x" * SIZE
    found = states(disk)
    kept = {
        tuple(bytes_[at : at + 1] == b"x" for at in range(0, SIZE, PAGE_BYTES)) for bytes_ in found if bytes_
    }
    assert len(kept) == 2**PAGES
    assert b"x" * SIZE in found
    assert bytes(SIZE) in found


def test_one_page_may_be_torn_between_its_sectors() -> None:
    disk = with_file()
    disk.open("/folder/file").map()[:] = b"x" * SIZE
    torn = [
        page
        for content in states(disk)
        if content
        for at in range(0, SIZE, PAGE_BYTES)
        if len(set(page := content[at : at + PAGE_BYTES])) == 2
    ]
    assert torn
    for page in torn:
        sectors = {page[at : at + SECTOR_BYTES] for at in range(0, PAGE_BYTES, SECTOR_BYTES)}
        assert sectors == {bytes(SECTOR_BYTES), b"x" * SECTOR_BYTES}


def test_a_change_under_way_may_be_met_half_done() -> None:
    disk = with_file()
    view = disk.open("/folder/file").map()
    view[:] = b"x" * SIZE
    disk.mark()
    view[:100] = b"y" * 100
    lengths = {content[:PAGE_BYTES].count(b"y") for content in states(disk) if content}
    assert {0, 100} < lengths


def test_pages_may_reach_the_disk_before_they_are_written_again() -> None:
    disk = with_file()
    view = disk.open("/folder/file").map()
    view[:] = b"x" * SIZE
    for seed in range(20):
        disk.write_back(random.Random(seed))
    view[:] = b"y" * SIZE
    assert states(disk) >= {b"x" * SIZE, b"y" * SIZE}
    assert not any(content and 0 in content for content in states(disk))


def test_after_a_failed_sync_another_one_succeeds_and_writes_nothing() -> None:
    disk = with_file()
    file = disk.open("/folder/file")
    file.write(0, b"x" * PAGE_BYTES)
    disk.on_step = failing("sync")
    with pytest.raises(OSError, match="Input/output"):
        file.sync()
    disk.on_step = failing("nothing")
    file.sync()
    assert file.read(0, 1) == b"x"
    assert bytes(SIZE) in states(disk)
    file.write(0, b"x" * PAGE_BYTES)
    file.sync()
    assert states(disk) == {b"x" * PAGE_BYTES + bytes(SIZE - PAGE_BYTES)}


def test_a_name_and_a_length_last_only_after_their_syncs() -> None:
    disk = SimDisk()
    disk.make_dirs("/folder")
    disk.sync_dir("/")
    file = disk.create("/folder/file", SIZE, reserve=True)
    lengths = {None if content is None else len(content) for content in states(disk)}
    assert lengths == {None, *range(0, SIZE + 1, PAGE_BYTES)}
    disk.sync_dir("/folder")
    assert {len(content or b"") for content in states(disk)} == set(range(0, SIZE + 1, PAGE_BYTES))
    file.sync()
    assert states(disk) == {bytes(SIZE)}


def test_a_folder_that_was_not_synced_goes_with_everything_in_it() -> None:
    disk = SimDisk()
    disk.make_dirs("/folder")
    file = disk.create("/folder/file", SIZE, reserve=True)
    file.sync()
    disk.sync_dir("/folder")
    assert states(disk) == {None, bytes(SIZE)}


def test_changes_of_one_name_happen_in_order_and_a_rename_happens_to_both_names() -> None:
    disk = with_file()
    disk.rename("/folder/file", "/folder/new")
    disk.create("/folder/file", 1, reserve=False).sync()
    found = {
        tuple(sorted(disk.after_power_loss(random.Random(seed)).files().items())) for seed in range(DRAWS)
    }
    assert found == {
        (("/folder/file", bytes(SIZE)),),
        (("/folder/new", bytes(SIZE)),),
        (("/folder/file", b"\0"), ("/folder/new", bytes(SIZE))),
    }


def test_a_small_file_is_found_old_or_new_and_never_in_between() -> None:
    """The steps of `write_whole`, with power lost before each of them."""
    disk = SimDisk()
    disk.make_dirs("/folder")
    disk.sync_dir("/")
    write_whole(disk, "/folder/file", b"old" * 2000, keep_previous=True)
    steps: list[str] = []

    def on_step(kind: str, path: str) -> None:
        steps.append(kind)
        assert states(disk) <= {b"old" * 2000, b"new" * 2000}

    disk.on_step = on_step
    write_whole(disk, "/folder/file", b"new" * 2000, keep_previous=True)
    assert steps == ["create", "write", "sync", "link", "rename", "sync_dir"]
    assert states(disk) == {b"new" * 2000}
    assert disk.files()["/folder/file.bak"] == b"old" * 2000
