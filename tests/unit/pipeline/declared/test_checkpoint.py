"""Where a pipeline keeps what it goes on from, and what can be read there without Spark."""

from pathlib import Path

import pytest

from bolide.pipeline.declared.checkpoint import AlreadyRunning, Checkpoint
from bolide.pipeline.declared.definition import Definition


def definition(tmp_path: Path, checkpoint: str | None = None) -> Definition:
    return Definition("shop", tmp_path / "shop.yaml", {}, {}, {}, checkpoint=checkpoint)


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
