"""The dumps in docs/store.md are those of a store that is made here, byte for byte.

A comment before a block says which part of which file it shows: `<!-- dump commitlog/000… 0 256 -->`.  When the format
of a file changes on purpose, `BOLIDE_WRITE_DOCS=1 .venv/bin/pytest tests/docs/test_store_page.py` writes them again.
"""

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bolide.cli.main import main
from bolide.store.index_file import IndexSizes
from tests.unit.store.stage import HeldClock, message, opened, put

PAGE = Path(__file__).resolve().parents[2] / "docs" / "store.md"
DUMP = re.compile(r"(<!-- dump (\S+) (\d+) (\d+) -->\n```\n)(.*?)(```)", re.DOTALL)
SIZE = re.compile(r"[\d.]+ [KM]?i?B\b")
RUN = re.compile(r"(```\n)\$ bolide (store .*?)\n(.*?)(```)", re.DOTALL)


@pytest.fixture(scope="module", autouse=True)
def same_time_everywhere() -> Iterator[None]:
    """Index files are named by local time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two orders and a payment, stored a second apart."""
    root = tmp_path_factory.mktemp("page") / "store"
    clock = HeldClock()
    opened_store = opened(
        root, clock=clock, segment_bytes=4096, queue_file_bytes=200, index=IndexSizes(slots=8, entries=32)
    )
    for topic, body, tag in (
        ("orders", b"two coffees", b"paid"),
        ("payments", b"7.40", b""),
        ("orders", b"tea", b"new"),
    ):
        clock.ms += 1000
        key = b"%08X" % clock.ms
        tags = b"TAGS\x01" + tag + b"\x02" if tag else b""
        put(opened_store, message(topic, body, properties=b"UNIQ_KEY\x01" + key[-6:] + b"\x02" + tags))
    opened_store.close()
    version = '"dataVersion":{"counter":1,"stateVersion":0,"timestamp":1700000000000}'
    (root / "config" / "consumerOffset.json").write_text(
        f'{{{version},"offsetTable":{{"orders@kitchen":{{0:1}}}}}}'
    )
    return root


def test_the_dumps_on_the_page_are_true(store: Path) -> None:
    def dump(found: re.Match[str]) -> str:
        data = (store / _named(store, found[2])).read_bytes()
        return found[1] + hexdump(data, int(found[3]), int(found[4])) + found[6]

    _compare(DUMP, dump)


def test_the_commands_on_the_page_say_what_it_shows(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """On a copy whose first order lost a letter where the page says so."""
    shutil.copytree(store, tmp_path / "store")
    monkeypatch.chdir(tmp_path)

    def run(found: re.Match[str]) -> str:
        if "damaged" in found[2] and not (tmp_path / "damaged").exists():
            shutil.copytree(store, tmp_path / "damaged")
            with (tmp_path / "damaged/commitlog/00000000000000000000").open("r+b") as file:
                file.seek(88)
                file.write(b"T")
        main(found[2].split())
        shown = capsysbinary.readouterr().out.decode()
        lines = [line.rstrip() for line in shown.splitlines()]
        return f"{found[1]}$ bolide {found[2]}\n" + "\n".join(lines) + "\n" + found[4]

    _compare(RUN, run)


def _compare(pattern: re.Pattern[str], render: Callable[[re.Match[str]], str]) -> None:
    page = PAGE.read_text()
    assert pattern.search(page)
    true = pattern.sub(render, page)
    if os.environ.get("BOLIDE_WRITE_DOCS") == "1":
        PAGE.write_text(true)
    assert SIZE.sub("", page) == SIZE.sub("", true)  # what a file takes of the disk is up to the file system


def _named(store: Path, pattern: str) -> Path:
    (path,) = store.glob(pattern)
    return path


def hexdump(data: bytes, start: int, end: int) -> str:
    """As `hexdump -C` writes it."""
    lines = []
    for at in range(start, min(end, len(data)), 16):
        row = data[at : at + 16]
        halves = " ".join(f"{byte:02x}" for byte in row[:8]), " ".join(f"{byte:02x}" for byte in row[8:])
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"{at:08x}  {halves[0]:<23}  {halves[1]:<23}  |{text}|\n")
    return "".join(lines)
