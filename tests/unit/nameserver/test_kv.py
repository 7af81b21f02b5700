"""Key-value settings: bounds, files of the original, and disks that fail."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bolide.model import limits
from bolide.model.errors import ConfigError, InvalidRequest, NothingFound, RequestError, TooBusy
from bolide.nameserver.kv import KvTable
from bolide.store.disk_os import OsDisk


def table_of(path: Path | None = None) -> KvTable:
    return KvTable(OsDisk(), None if path is None else str(path), ThreadPoolExecutor(1))


def put(table: KvTable, namespace: str, key: str, value: str) -> None:
    asyncio.run(table.put(namespace, key, value))


def test_a_file_of_the_original_is_read(tmp_path: Path) -> None:
    path = tmp_path / "kvConfig.json"
    path.write_text('{"configTable":{"ORDER_TOPIC_CONFIG":{"orders":"broker-a:4"}}}')
    assert table_of(path).get("ORDER_TOPIC_CONFIG", "orders") == "broker-a:4"


@pytest.mark.parametrize("text", ["{", "[]", '{"configTable":{"a":1}}'])
def test_a_damaged_file_stops_the_start_instead_of_being_overwritten(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kvConfig.json"
    path.write_text(text)
    with pytest.raises(ConfigError):
        table_of(path)
    assert path.read_text() == text


def test_without_a_path_settings_live_in_memory() -> None:
    table = table_of()
    put(table, "shelf", "key", "value")
    assert table.namespace("shelf") == {"key": "value"}
    asyncio.run(table.delete("shelf", "key"))
    with pytest.raises(NothingFound):
        table.namespace("shelf")


def test_settings_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of()
    for namespace, key, value in (
        ("", "k", "v"),
        ("n", "", "v"),
        ("n" * 256, "k", "v"),
        ("n", "k", "v" * 65537),
    ):
        with pytest.raises(InvalidRequest):
            put(table, namespace, key, value)
    monkeypatch.setattr(limits, "KV_TABLE_BYTES_MAX", 74)
    put(table, "n", "k", "v" * 8)
    for key, value in (("l", "v"), ("k", "v" * 9)):
        with pytest.raises(RequestError, match="74 characters"):
            put(table, "n", key, value)
    assert table.namespace("n") == {"k": "v" * 8}
    put(table, "n", "k", "w" * 8)  # in its place
    asyncio.run(table.delete("n", "k"))
    put(table, "n", "l", "v" * 8)


def test_a_file_that_is_larger_than_the_bound_can_be_made_smaller(tmp_path: Path) -> None:
    path = tmp_path / "kvConfig.json"
    path.write_text('{"configTable":{"n":{"k":"%s","l":"1"}}}' % ("v" * limits.KV_TABLE_BYTES_MAX))
    table = table_of(path)
    with pytest.raises(RequestError):
        put(table, "n", "m", "v")
    asyncio.run(table.delete("n", "l"))
    asyncio.run(table.delete("n", "k"))
    put(table, "n", "m", "v")
    assert table_of(path).namespace("n") == {"m": "v"}


def test_changes_wait_for_the_disk_one_after_the_other_and_not_too_many(tmp_path: Path) -> None:
    async def main() -> None:
        table = table_of(tmp_path / "kv.json")
        changes = [asyncio.create_task(table.put("n", "k", str(number))) for number in range(100)]
        done = await asyncio.gather(*changes, return_exceptions=True)
        refused = [error for error in done if error is not None]
        assert len(refused) == 100 - limits.KV_CHANGES_WAITING_MAX
        assert all(isinstance(error, TooBusy) for error in refused)
        assert table.get("n", "k") == str(limits.KV_CHANGES_WAITING_MAX - 1)

    asyncio.run(main())


def test_what_could_not_be_written_is_not_kept_in_memory_either(tmp_path: Path) -> None:
    table = table_of(tmp_path / "sub" / "kv.json")
    (tmp_path / "sub").write_text("in the way of the folder")
    with pytest.raises(RequestError, match="could not be written"):
        put(table, "n", "k", "v")
    assert table.try_get("n", "k") is None
