"""Files that somebody has put into a store to do harm: no tool and no start waits, fills the memory or falls over.

Each test makes one such store and lets everybody at it: verify, repair, inspect and export as commands, and a start.
They may refuse, in one line that names the file; they may not wait, take much memory, or meet an error that nobody
foresaw.  A pipe would let its reader wait for ever, so a test that ends has shown that nobody does.
"""

import errno
import os
import re
import resource
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path

import pytest

from bolide.cli.main import main
from bolide.cli.outcome import ExitCode
from bolide.model.errors import BolideError, StoreError
from bolide.store.store import MessageStore
from tests.unit.offline.damaged import INDEX, make
from tests.unit.store.stage import QUEUE_FILE_BYTES, SEGMENT_BYTES, killed, opened

pytestmark = pytest.mark.timeout(60)

MEMORY_BYTES_MAX = 48 * 1024**2
FAR = 2**62
TERABYTES = 8 * 1024**4
ENDLESS = "/dev/zero"

Harm = Callable[[Path], None]

LOOKING = (("inspect", "--count"), ("export",), ("verify", "--json"))
REPAIRING = (("repair", "--apply"), ("verify",))


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("healthy")
    make(root, clean=False)
    return root


Making = Callable[[Harm], Callable[[], Path]]


@pytest.fixture
def with_harm(healthy: Path, tmp_path: Path) -> Making:
    """Stores that somebody has done harm to, as many as a test needs."""
    numbers = iter(range(10))

    def making(harm: Harm) -> Callable[[], Path]:
        def make_one() -> Path:
            root = tmp_path / f"store{next(numbers)}"
            shutil.copytree(healthy, root)
            harm(root)
            return root

        return make_one

    return making


# ---- what somebody may put in the place of a file -----------------------------------------------------------


def pipe(path: Path) -> None:
    os.mkfifo(path)


def listening_socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # the address of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def folder(path: Path) -> None:
    path.mkdir()


def link_to_a_device(path: Path) -> None:
    path.symlink_to(ENDLESS)


def link_to_nothing(path: Path) -> None:
    path.symlink_to("nowhere")


def link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def terabytes_of_nothing(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(TERABYTES)


def almost_nothing_in_terabytes(path: Path) -> None:
    terabytes_of_nothing(path)
    with path.open("r+b") as file:
        file.seek(TERABYTES - 4096)
        file.write(b"\xda\xa3\x20\xa7" * 16)


def two_gigabytes_of_nothing(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**31 - 4096)


THINGS: tuple[Harm, ...] = (pipe, folder, link_to_a_device, almost_nothing_in_terabytes)
MORE_THINGS: tuple[Harm, ...] = (
    listening_socket,
    link_to_nothing,
    link_to_itself,
    terabytes_of_nothing,
    two_gigabytes_of_nothing,
)


# ---- where ---------------------------------------------------------------------------------------------------

LAST_SEGMENT = 9
PLACES = (
    f"commitlog/{0:020d}",
    f"commitlog/{LAST_SEGMENT * SEGMENT_BYTES:020d}",
    f"consumequeue/orders/0/{50 * QUEUE_FILE_BYTES:020d}",
    "index/30000101000000000",
    "checkpoint",
)
MORE_PLACES = (
    f"commitlog/{FAR:020d}",
    f"consumequeue/orders/0/{0:020d}",
    "consumequeue/orders/7",
    "consumequeue/topic",
    "consumequeue/a\x1b[2J\u202e",
    "config/topics.json",
    "config/consumerOffset.json",
    "abort",
    "lock",
    "deletions",
    "sync-failed",
    "commitlog",
    "index",
    "deleted",
)

NAMES = (
    f"{FAR:020d}",
    f"{2**63 - SEGMENT_BYTES:020d}",
    "9" * 20,
    "٠" * 20,
    "²" * 20,
    "-" + "0" * 19,
    "1" * 21,
    "+0000000000000000000",
    "0x000000000000000000",
    "a\x1b[2J",
    "a\nDAMAGE",
)


def replace(path: Path, thing: Harm) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    thing(path)


def let_everybody_at(harmed: Callable[[], Path], capfd: pytest.CaptureFixture[str]) -> None:
    """Who only looks and a start on one store, a repair and a start on another."""
    for commands in (LOOKING, REPAIRING):
        root = harmed()
        for words in commands:
            with little_memory(" ".join(words)):
                code = main(["store", words[0], str(root), *words[1:]])
            said = "".join(capfd.readouterr())
            assert code in (ExitCode.OK, ExitCode.FAILED, ExitCode.NOT_FOUND), said
            assert "unforeseen" not in said, said
            assert "\x1b" not in said, said
            assert "\nDAMAGE\n" not in said, said
        for stop in (killed, MessageStore.close):
            with little_memory("start"), suppress(BolideError):
                stop(opened(root, index=INDEX))


@contextmanager
def little_memory(what: str) -> Iterator[None]:
    """Of the process, with what it has mapped; the most that it ever had does not grow much."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown < MEMORY_BYTES_MAX, f"{what} took {grown} bytes"


@pytest.mark.parametrize(
    ("place", "thing"),
    [*product(PLACES + MORE_PLACES, THINGS), *product(PLACES, MORE_THINGS)],
    ids=lambda value: repr(value) if isinstance(value, str) else value.__name__,
)
def test_something_that_is_no_file_of_the_store(
    with_harm: Making, place: str, thing: Harm, capfd: pytest.CaptureFixture[str]
) -> None:
    let_everybody_at(with_harm(lambda root: replace(root / place, thing)), capfd)


@pytest.mark.parametrize("size", [SEGMENT_BYTES, QUEUE_FILE_BYTES, 0])
@pytest.mark.parametrize(
    "where", ["commitlog", "consumequeue/orders/0", "consumequeue", "index", "config", "deleted"]
)
def test_names_that_are_no_numbers_or_no_places(
    with_harm: Making, where: str, size: int, capfd: pytest.CaptureFixture[str]
) -> None:
    def harm(root: Path) -> None:
        (root / where).mkdir(exist_ok=True)
        for name in NAMES:
            (root / where / name).write_bytes(b"\1" * size)
        (root / where / os.fsdecode(b"\xff")).write_bytes(b"\1" * size)

    let_everybody_at(with_harm(harm), capfd)


@pytest.mark.parametrize("name", NAMES)
def test_a_single_segment_with_such_a_name(
    with_harm: Making, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    def harm(root: Path) -> None:
        for segment in sorted((root / "commitlog").iterdir())[1:]:
            segment.unlink()
        (root / f"commitlog/{0:020d}").rename(root / "commitlog" / name)

    let_everybody_at(with_harm(harm), capfd)


@pytest.mark.parametrize("where", ["commitlog", "consumequeue/orders/0"])
def test_many_sparse_files_between_two_that_hold_something(
    with_harm: Making, where: str, capfd: pytest.CaptureFixture[str]
) -> None:
    size = SEGMENT_BYTES if where == "commitlog" else QUEUE_FILE_BYTES

    def harm(root: Path) -> None:
        for number in range(1000, 3000, 2):
            with (root / where / f"{number * size:020d}").open("wb") as file:
                file.truncate(size)
        (root / where / f"{3000 * size:020d}").write_bytes(b"\1" * size)

    let_everybody_at(with_harm(harm), capfd)


NUMBERS = ("1e400", "-1e400", "1e18", "9" * 5000, "1.5", "NaN", '"x"', "null", "true", "[]", "-1")


@pytest.mark.parametrize("number", NUMBERS, ids=lambda text: text[:8])
@pytest.mark.parametrize("table", ["consumerOffset.json", "topics.json", "subscriptionGroup.json"])
def test_numbers_in_tables_that_are_none(
    with_harm: Making, table: str, number: str, capfd: pytest.CaptureFixture[str]
) -> None:
    numbers = r"(?<=\d:)\d+" if table == "consumerOffset.json" else r"(?<=\":)\d+"

    def harm(root: Path) -> None:
        for suffix in ("", ".bak"):
            path = root / "config" / (table + suffix)
            text, count = re.subn(numbers, number, path.read_text())
            assert count
            path.write_text(text)

    let_everybody_at(with_harm(harm), capfd)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, '{"dataVersion":' + "[" * 5_000 + "]" * 5_000 + "}"]
)
@pytest.mark.parametrize("table", ["consumerOffset.json", "topics.json"])
def test_tables_that_are_nested_without_end(
    with_harm: Making, table: str, text: str, capfd: pytest.CaptureFixture[str]
) -> None:
    let_everybody_at(with_harm(lambda root: void((root / "config" / table).write_text(text))), capfd)


def void(value: object) -> None:
    """For the sake of the type."""


@pytest.mark.parametrize(
    "place", [*PLACES[:1], f"consumequeue/orders/0/{0:020d}", "checkpoint", "config/topics.json"]
)
def test_a_file_that_is_closed_to_us(
    with_harm: Making, place: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever runs the tests may be root, to whom nothing is closed."""
    real = os.open

    def closed(path: str, flags: int, mode: int = 0o777) -> int:
        if str(path).endswith(place):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", closed)
    let_everybody_at(with_harm(lambda root: None), capfd)
    if place != "config/topics.json":  # which is the broker's, not the store's
        with pytest.raises(StoreError, match="closed to this user"):
            opened(with_harm(lambda root: None)(), index=INDEX)


@pytest.mark.parametrize("where", ["", "consumequeue", "consumequeue/orders", "deleted", "config", "index"])
def test_folders_that_lead_back_to_themselves(
    with_harm: Making, where: str, capfd: pytest.CaptureFixture[str]
) -> None:
    def harm(root: Path) -> None:
        (root / where).mkdir(exist_ok=True)
        for number in range(7, 10):
            (root / where / str(number)).symlink_to(root)

    let_everybody_at(with_harm(harm), capfd)
    assert main(["store", "inspect", str(with_harm(harm)())]) == ExitCode.OK
