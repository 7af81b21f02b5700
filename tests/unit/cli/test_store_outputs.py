"""Where `bolide store` writes to, and what it says when there is nothing to write."""

import os
import threading
from pathlib import Path

import pytest

from bolide.cli.main import main
from bolide.offline.export import Export
from tests.unit.offline.damaged import MESSAGES, original, root

__all__ = ["original", "root"]  # fixtures


def test_an_export_into_a_pipe_or_device_does_not_replace_it(root: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    assert main(["store", "export", str(root), "-o", str(pipe)]) == 0
    reader.join()
    assert pipe.is_fifo()
    assert got[0].count(b"\n") == MESSAGES


def test_parquet_cannot_go_into_a_pipe_and_leaves_it_alone(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert main(["store", "export", str(root), "-f", "parquet", "-o", str(tmp_path / "pipe")]) == 2
    assert "pipe or device" in capsys.readouterr().err
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_an_export_that_is_interrupted_leaves_nothing_behind(
    form: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow")

    def interrupted(self: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(Export, "blocks", interrupted)
    assert main(["store", "export", str(root), "-f", form, "-o", str(tmp_path / "out")]) == 130
    assert list(tmp_path.glob("out*")) == []


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
@pytest.mark.parametrize(("place", "told"), [("", "is a directory"), ("missing/out", "no directory")])
def test_a_place_that_cannot_be_written_is_wrong_usage(
    form: str, place: str, told: str, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["store", "export", str(root), "-f", form, "-o", str(tmp_path / place)]) == 2
    assert told in capsys.readouterr().err


def test_an_export_without_messages_says_so(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["store", "export", str(root), "--topic", "orders", "--since", "end"]) == 0
    assert capsys.readouterr() == ("", "exported 0 messages\n")


def test_a_topic_that_the_store_does_not_have_is_not_found(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["store", "inspect", str(root), "--topic", "nobody"]) == 4
    assert "'nobody'" in capsys.readouterr().err


def test_damage_is_told_with_the_command_that_helps(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "config" / "topics.json").write_text("{broken")
    assert main(["store", "verify", str(root)]) == 1
    assert f"`bolide store repair {root}`" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_an_export_is_private_and_does_not_follow_a_link_that_somebody_put_there(
    form: str, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "victim").write_text("as it was")
    (tmp_path / "out.tmp").symlink_to("victim")
    before = os.umask(0)
    try:
        assert main(["store", "export", str(root), "-f", form, "-o", str(tmp_path / "out")]) == 0
    finally:
        os.umask(before)
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "victim").read_text() == "as it was"
