"""Key-value settings: bounds, files of the original, and disks that fail."""

from pathlib import Path

import pytest

from bolide.model.errors import ConfigError, InvalidRequest, NothingFound, RequestError
from bolide.nameserver import kv
from bolide.nameserver.kv import KvTable
from bolide.store.disk_os import OsDisk


def test_a_file_of_the_original_is_read(tmp_path: Path) -> None:
    path = tmp_path / "kvConfig.json"
    path.write_text('{"configTable":{"ORDER_TOPIC_CONFIG":{"orders":"broker-a:4"}}}')
    assert KvTable(OsDisk(), str(path)).get("ORDER_TOPIC_CONFIG", "orders") == "broker-a:4"


@pytest.mark.parametrize("text", ["{", "[]", '{"configTable":{"a":1}}'])
def test_a_damaged_file_stops_the_start_instead_of_being_overwritten(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kvConfig.json"
    path.write_text(text)
    with pytest.raises(ConfigError):
        KvTable(OsDisk(), str(path))
    assert path.read_text() == text


def test_without_a_path_settings_live_in_memory() -> None:
    table = KvTable(OsDisk(), None)
    table.put("shelf", "key", "value")
    assert table.namespace("shelf") == {"key": "value"}
    table.delete("shelf", "key")
    with pytest.raises(NothingFound):
        table.namespace("shelf")


def test_settings_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    table = KvTable(OsDisk(), None)
    for namespace, key, value in (
        ("", "k", "v"),
        ("n", "", "v"),
        ("n" * 256, "k", "v"),
        ("n", "k", "v" * 65537),
    ):
        with pytest.raises(InvalidRequest):
            table.put(namespace, key, value)
    monkeypatch.setattr(kv, "TABLE_LENGTH_MAX", 10)
    table.put("n", "k", "v" * 8)
    with pytest.raises(RequestError):
        table.put("n", "l", "v")
    assert table.namespace("n") == {"k": "v" * 8}


def test_what_could_not_be_written_is_not_kept_in_memory_either(tmp_path: Path) -> None:
    table = KvTable(OsDisk(), str(tmp_path / "sub" / "kv.json"))
    (tmp_path / "sub").write_text("in the way of the folder")
    with pytest.raises(RequestError, match="could not be written"):
        table.put("n", "k", "v")
    assert table.try_get("n", "k") is None
