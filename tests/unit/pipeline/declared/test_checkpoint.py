"""Where a pipeline keeps what it goes on from, and what can be read there without Spark."""

import fcntl
import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from bolide.pipeline.declared import checkpoint
from bolide.pipeline.declared.checkpoint import AlreadyRunning, Checkpoint
from bolide.pipeline.declared.definition import Definition


def definition(tmp_path: Path, where: str | None = None) -> Definition:
    return Definition("shop", tmp_path / "shop.yaml", {}, {}, {}, checkpoint=where)


def batch(tmp_path: Path, number: int, *, is_done: bool, text: str = '{"t": {"b": {"0": 5}}}') -> None:
    for kind in ("offsets", "commits"):
        (tmp_path / "queries" / "archive" / kind).mkdir(parents=True, exist_ok=True)
    folder = tmp_path / "queries" / "archive"
    (folder / "offsets" / str(number)).write_text(f'v1\n{{"batchTimestampMs": 1700}}\n{text}\n-')
    if is_done:
        (folder / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')


def test_a_path_in_the_file_is_beside_the_file_and_one_of_the_command_here(tmp_path: Path) -> None:
    assert Checkpoint.of(definition(tmp_path, "cp")).location == str(tmp_path / "cp")
    assert Checkpoint.of(definition(tmp_path), "cp").location == str(Path.cwd() / "cp")
    assert Checkpoint.of(definition(tmp_path)).location == str(Path("~/.bolide/pipelines/shop").expanduser())
    assert Checkpoint.of(definition(tmp_path, "file:///var/cp")).folder == Path("/var/cp")


def test_two_files_of_one_name_have_a_checkpoint_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first goes on where it was, wherever it is moved; the second keeps its own when the first is gone."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    files = [tmp_path / folder / "pipeline.yaml" for folder in ("one", "two")]
    for file in files:
        file.parent.mkdir()
        file.touch()
    first, second = (Definition("pipeline", file, {}, {}, {}, is_named=False) for file in files)
    place = Checkpoint.of(first)
    assert place.location == Checkpoint.of(second).location  # nobody has it yet
    with place.held():
        place.write_state(file=str(first.file), state="finished")
    other = Checkpoint.of(second)
    assert Checkpoint.of(first).location == place.location != other.location
    assert other.location.startswith(f"{place.location}-")
    moved = tmp_path / "moved.yaml"
    files[0].rename(moved)
    assert Checkpoint.of(replace(first, file=moved)).location == place.location
    with other.held():
        assert Checkpoint.of(second).location == other.location


def test_files_that_say_one_name_are_one_pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of one release and the next."""
    monkeypatch.setenv("HOME", str(tmp_path))
    old, new = tmp_path / "1.yaml", tmp_path / "2.yaml"
    old.touch()
    place = Checkpoint.of(Definition("shop", old, {}, {}, {}))
    with place.held():
        place.write_state(file=str(old), state="finished")
    assert Checkpoint.of(Definition("shop", new, {}, {}, {})) == place


def test_a_checkpoint_elsewhere_is_left_to_spark(tmp_path: Path) -> None:
    place = Checkpoint.of(definition(tmp_path, "hdfs://host/cp/"))
    assert place.folder is None
    assert place.of_query("archive") == "hdfs://host/cp/queries/archive"
    with place.held():
        assert not place.is_held()


def test_only_one_runs_a_pipeline(tmp_path: Path) -> None:
    place = Checkpoint(str(tmp_path / "cp"))
    assert not place.is_held()
    with place.held():
        assert place.is_held()
        with pytest.raises(AlreadyRunning, match="runs already"), place.held():
            pass
        with pytest.raises(AlreadyRunning, match="runs already"):
            place.check_free()
    place.check_free()
    with place.held():
        pass


def test_who_only_looks_keeps_nobody_from_starting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "LOCK_TRIES", 1000)  # on a busy machine a moment is long
    place = Checkpoint(str(tmp_path))
    descriptor = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    looked = threading.Timer(0.01, os.close, [descriptor])
    looked.start()
    with place.held():
        assert place.is_held()
    looked.join()


def test_the_last_batch_that_is_done_and_the_one_in_hand_are_told_apart(tmp_path: Path) -> None:
    place = Checkpoint(str(tmp_path))
    assert place.queries() == []
    batch(tmp_path, 9, is_done=True)
    batch(tmp_path, 10, is_done=True, text='{"t": {"b": {"0": 7}}}')
    assert (place.queries(), place.in_hand("archive")) == (["archive"], None)
    batch(tmp_path, 11, is_done=False)
    (tmp_path / "queries" / "archive" / "offsets" / ".11.crc").write_text("")
    done = place.last_done("archive")
    assert done is not None
    assert (done.number, done.planned_ms, done.offsets) == (10, 1700, [{"t": {"b": {"0": 7}}}, None])
    assert place.in_hand("archive") == 11


@pytest.mark.parametrize("text", ["", "v9\n{}\n{}", "v1", "v1\nnot json\n{}", "v1\n[]\n{}"])
def test_a_form_that_is_not_known_is_nothing(tmp_path: Path, text: str) -> None:
    place = Checkpoint(str(tmp_path))
    batch(tmp_path, 0, is_done=True)
    (tmp_path / "queries" / "archive" / "offsets" / "0").write_text(text)
    assert place.last_done("archive") is None


def test_the_state_is_what_was_written_last(tmp_path: Path) -> None:
    place = Checkpoint(str(tmp_path))
    assert place.read_state() == {}
    place.write_state(state="running")
    place.write_state(state="stopped")
    assert place.read_state() == {"state": "stopped"}
    (tmp_path / "state.json").write_text("[")
    assert place.read_state() == {}
