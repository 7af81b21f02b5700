"""What a store costs does not grow with what it holds."""

from pathlib import Path
from typing import Any

from tests.unit.store.stage import message, opened

MIB = 1024 * 1024


def mapped_bytes(folder: Path) -> int:
    """How much of the files in a folder this process has touched through its mappings."""
    total, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        words = line.split()
        if "-" in words[0] and not words[0].endswith(":"):
            inside = words[-1].startswith(str(folder))
        elif inside and words[0] == "Rss:":
            total += int(words[1]) * 1024
    return total


def test_opening_after_a_clean_stop_does_not_read_the_log(tmp_path: Path) -> None:
    sizes: dict[str, Any] = {"segment_bytes": MIB, "body_bytes_max": MIB}
    store = opened(tmp_path, **sizes)
    for number in range(500):
        store.append([message(body=bytes([number % 256]) * 100_000)])
    assert len(store.log.segments) > 40
    store.close()
    log = tmp_path / "commitlog"
    assert mapped_bytes(log) == 0

    store = opened(tmp_path, **sizes)
    assert mapped_bytes(log) < 5 * MIB
    assert store.reader.queue_range("T", 0) == (0, 500)
    store.close()
