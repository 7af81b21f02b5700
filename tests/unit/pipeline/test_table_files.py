"""Files that Spark has written, under the names that they have for good."""

from pathlib import Path

from bolide.pipeline.table_files import named_files


def test_a_folder_that_is_called_like_a_file_keeps_its_name(tmp_path: Path) -> None:
    """That of a partition is called after a value, which anybody may have chosen."""
    folder = tmp_path / "staging"
    for partition in ("tags=a.parquet", "tags=b"):
        (folder / partition).mkdir(parents=True)
        (folder / partition / "part-0.parquet").write_text(partition)
    names = ["tags=a.parquet/7-00000.parquet", "tags=b/7-00001.parquet"]
    found = named_files(folder, "7")
    assert [str(file.relative_to(folder)) for file in found] == names
    assert [file.read_text() for file in found] == ["tags=a.parquet", "tags=b"]
