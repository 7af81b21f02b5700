"""What is a folder of this machine, and what is an address that only Spark looks up, is the same for every command."""

from pathlib import Path

import pytest

from bolide.cli import pipeline_replay
from bolide.cli.pipeline_replay_work import Session
from bolide.model.errors import ConfigError, NothingFound
from bolide.pipeline.archive.place import folder_of
from bolide.pipeline.folders import CONFIGURED_BY
from bolide.pipeline.replay.folder import ReplayFolder

ADDRESSES = ["file:/data/table", "file:///data/table", "hdfs:/data/table", "s3a://bucket/table", "S3:/b/t"]


@pytest.fixture(autouse=True)
def _no_settings_of_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CONFIGURED_BY:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_archive_with_a_scheme_is_an_address_however_many_slashes_it_has(address: str) -> None:
    assert pipeline_replay._place(address) == address


@pytest.mark.parametrize("address", ADDRESSES[2:])
def test_an_archive_of_another_file_system_is_left_to_spark(address: str) -> None:
    Session("local[1]", {}).check_there(address)


@pytest.mark.parametrize("slashes", ["", "//"])
def test_an_address_of_a_folder_that_is_not_here_is_told_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slashes: str
) -> None:
    """Whatever files configure Spark: no other file system can be meant."""
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    (tmp_path / "an archive").mkdir()
    Session("local[1]", {}).check_there(f"file:{slashes}{tmp_path}/an%20archive")
    with pytest.raises(NothingFound, match=f"^file:{slashes}{tmp_path}/missing is not there"):
        Session("local[1]", {}).check_there(f"file:{slashes}{tmp_path}/missing")


@pytest.mark.parametrize("name", ["missing", "a:b", "~nobody/x"])
def test_a_path_that_is_not_there_is_told_before_spark_starts(tmp_path: Path, name: str) -> None:
    path = str(tmp_path / name)
    assert pipeline_replay._place(path) == path
    with pytest.raises(NothingFound, match="is not there"):
        Session("local[1]", {}).check_there(path)


@pytest.mark.parametrize("name", CONFIGURED_BY)
def test_where_files_configure_spark_it_looks_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """They may name another file system for paths without a scheme."""
    monkeypatch.setenv(name, str(tmp_path))
    Session("local[1]", {}).check_there(str(tmp_path / "missing"))


def test_so_it_does_where_its_settings_name_a_file_system_or_it_runs_elsewhere(tmp_path: Path) -> None:
    Session("local[1]", {"spark.hadoop.fs.defaultFS": "hdfs://host"}).check_there(str(tmp_path / "missing"))
    Session("spark://host:7077", {}).check_there(str(tmp_path / "missing"))


def test_a_folder_of_this_machine_may_be_said_as_an_address() -> None:
    for address in ("file:/data/table", "file:///data/table"):
        assert folder_of(address) == Path("/data/table")
        assert ReplayFolder.of("r1", address).path == Path("/data/table/r1")


@pytest.mark.parametrize("address", ["hdfs:/data/table", "s3a://bucket/table"])
def test_another_file_system_is_no_folder_of_this_machine(address: str) -> None:
    with pytest.raises(ConfigError, match=r"mount the \w+ storage there"):
        folder_of(address)
    with pytest.raises(ConfigError, match="a folder of this machine"):
        ReplayFolder.of("r1", address)
