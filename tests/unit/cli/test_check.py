"""`bolide broker --check`: what an operator who brings a broker.conf is told, before anything is started."""

import os
import socket
from pathlib import Path

import pytest

from bolide.cli.main import main
from bolide.store.disk_os import OsDisk

FROM_A_TUTORIAL = """\
# a master of a cluster of two
brokerClusterName=rocketmq-cluster
brokerName=broker-a
brokerId=1
namesrvAddr=10.0.0.1:9876;\\
  10.0.0.2:9876
defaultTopicQueueNums=4
autoCreateTopicEnable=true
listenPort=10911
deleteWhen=04
fileReservedTime=48
mapedFileSizeCommitLog=1073741824
mapedFileSizeConsumeQueue=300000
destroyMapedFileIntervalForcibly=120000
storePathRootDir=/data/store
storePathCommitLog=/data/store/commitlog
storeCheckpoint=/data/store/checkpoint
abortFile=/data/store/abort
maxMessageSize=65536
brokerRole=SYNC_MASTER
flushDiskType=SYNC_FLUSH
sendMessageThreadPoolNums=128
enableDLegerCommitLog=false
storeType=default
aclEnable=false
flushDiskTyp=SYNC_FLUSH
fileReservedTime=72
"""


def test_every_problem_and_warning_is_printed_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "broker.conf"
    file.write_text(FROM_A_TUTORIAL)
    assert main(["broker", "--check", "-c", str(file)]) == 1
    lines = [line.removeprefix(f"{file}:") for line in capsys.readouterr().out.splitlines()]
    assert [line.split("=")[0].split(",")[0][:45] for line in lines] == [
        "4: problem: brokerId must be 0",
        "11: warning: fileReservedTime is set again fu",
        "13: problem: mapedFileSizeConsumeQueue",
        "20: problem: brokerRole must be ASYNC_MASTER",
        "22: warning: sendMessageThreadPoolNums",
        "26: problem: unknown setting 'flushDiskTyp'; ",
        "4 problems",
    ]
    assert "no replication here" in lines[0]
    assert lines[5].endswith("did you mean flushDiskType?")
    assert lines[-1] == "4 problems, 2 warnings: no broker starts with these settings here"


def test_a_file_with_which_a_broker_starts_ends_with_0_and_starts_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "broker.toml"
    file.write_text(
        f'[nameserver]\nlistenPort = 1\n[broker]\nstorePathRootDir = "{tmp_path}/store"\nhaListenPort = 1\n'
    )
    assert main(["broker", "--check", "-c", str(file), "--set", "listenPort=0"]) == 0
    nowhere, warning, verdict = capsys.readouterr().out.splitlines()
    assert nowhere.startswith(f"{file}: warning: it registers nowhere: give it a name server")
    assert warning.startswith(f"{file}:5: warning: haListenPort=1: there is no replication here")
    assert verdict == "0 problems, 2 warnings: a broker starts with these settings here"
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_that_cannot_be_read_is_another_matter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["broker", "--check", "-c", str(tmp_path / "none.conf")]) == 2
    assert "No such file" in capsys.readouterr().err


def test_a_start_names_all_problems_too_and_which_of_them_are_not_the_file_s(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "broker.conf"
    file.write_text("brokerName = a\nlistenPort = many\nbrokerId = 1\n")
    assert main(["broker", "-c", str(file), "--set", "brokerRole=SLAVE"]) == 2
    first, second, third = capsys.readouterr().err.splitlines()
    assert first.startswith("error: --set: brokerRole must be ASYNC_MASTER")
    assert second.startswith(f"error: {file}:2: listenPort must be a whole number")
    assert third.startswith(f"error: {file}:3: brokerId must be 0")


def test_a_number_of_thousands_of_digits_is_no_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (("a.toml", f"listenPort = {'9' * 5000}"), ("a.conf", f"listenPort={'9' * 5000}")):
        (tmp_path / name).write_text(text)
        assert main(["broker", "-c", str(tmp_path / name)]) == 2
        error = capsys.readouterr().err
        assert error.startswith("error: ")
        assert len(error) < 400


def test_a_used_port_leaves_no_data_directory_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        data = tmp_path / "some" / "data"
        own = [
            "--set",
            f"storePathRootDir={data}",
            "--set",
            f"listenPort={port}",
            "--set",
            "bindAddress=127.0.0.1",
        ]
        assert main(["broker", *own]) == 5
        assert main(["up", "--data", str(data), "--nameserver-port", "0", "--broker-port", port]) == 5
    assert "in use" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_cannot_be_made_is_named_with_what_stands_in_its_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert main(["broker", "--set", f"storePathRootDir={tmp_path}/file/store"]) == 2
    assert f"{tmp_path}/file is a file" in capsys.readouterr().err


def check(capsys: pytest.CaptureFixture[str], code: int, **settings: object) -> str:
    given = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    assert main(["broker", "--check", *given]) == code
    return capsys.readouterr().out


def test_what_stands_in_the_way_on_this_machine_is_a_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    store = tmp_path / "store"
    (store / "commitlog").mkdir(parents=True)
    (store / "commitlog" / f"{0:020}").write_bytes(b"x" * 8192)
    usual = {"storePathRootDir": tmp_path / "new", "listenPort": 0, "bindAddress": "127.0.0.1"}
    assert "is a file" in check(capsys, 1, **usual | {"storePathRootDir": tmp_path / "file"})
    assert "has segments of 8192 bytes: set it to that" in check(
        capsys, 1, **usual | {"storePathRootDir": store}
    )
    check(capsys, 0, **usual | {"storePathRootDir": store, "mappedFileSizeCommitLog": 8192})
    assert "brokerIP1 is 'nobody.invalid', which" in check(capsys, 1, **usual, brokerIP1="nobody.invalid")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"listen on 127.0.0.1:{port} here: Address already" in check(
            capsys, 1, **usual | {"listenPort": port}
        )
    check(capsys, 0, **usual)
    assert not (tmp_path / "new").exists()


def test_a_log_that_cannot_begin_for_want_of_room_is_a_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bolide.cli.checks_start.room_at", lambda place: 100_000_000)
    usual = {"storePathRootDir": tmp_path / "store", "listenPort": 0, "bindAddress": "127.0.0.1"}
    said = check(capsys, 1, **usual)
    assert "the log begins with 1073741824 bytes" in said
    assert "has 100000000 left" in said
    check(capsys, 0, **usual | {"mappedFileSizeCommitLog": 50_000_000})
    (tmp_path / "store" / "commitlog").mkdir(parents=True)
    (tmp_path / "store" / "commitlog" / f"{0:020}").write_bytes(b"")
    check(capsys, 0, **usual)  # it has begun


def test_where_nothing_can_be_made_is_a_problem(capsys: pytest.CaptureFixture[str]) -> None:
    said = check(capsys, 1, storePathRootDir="/proc/x/store", listenPort=0, bindAddress="127.0.0.1")
    assert "problem: no directory can be made in /proc" in said


def test_a_file_system_that_does_not_tell_its_room_is_tried_and_left_as_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bolide.cli.checks_start.room_at", lambda place: None)
    check(capsys, 0, storePathRootDir=tmp_path / "store", listenPort=0, bindAddress="127.0.0.1")
    assert list(tmp_path.iterdir()) == []


def test_a_broker_that_runs_on_the_store_is_a_warning_and_its_port_is_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """So that a file can be checked before a restart."""
    lock = OsDisk().lock(str(tmp_path / "lock"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = check(capsys, 0, storePathRootDir=tmp_path, listenPort=port, bindAddress="127.0.0.1")
    lock.release()
    assert f"warning: a broker runs on the store {tmp_path} now" in said


@pytest.mark.timeout(60)  # who opens a pipe waits for a writer
def test_a_pipe_among_the_segments_is_a_problem_and_other_digits_are_no_segment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "commitlog"
    log.mkdir()
    usual = {"storePathRootDir": tmp_path, "listenPort": 0, "bindAddress": "127.0.0.1"}
    (log / "٣").touch()
    check(capsys, 0, **usual)
    os.mkfifo(log / f"{0:020}")
    assert "is a pipe where a file should be" in check(capsys, 1, **usual)
