"""The command line as a whole, without a server: help, usage errors, one line on stderr."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from bolide.cli.app import command
from bolide.cli.main import main
from tests.peers.ports import free_port


def _below(command: Any, *words: str) -> Iterator[list[str]]:
    for name, one in getattr(command, "commands", {}).items():
        yield [*words, name]
        yield from _below(one, *words, name)


COMMANDS = list(_below(command()))


@pytest.mark.parametrize("words", [[], *COMMANDS], ids=" ".join)
def test_every_command_explains_itself(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--help"]) == 0
    shown = capsys.readouterr()
    assert " ".join(["bolide", *words]) in shown.out
    for kind in ("<str>", "<path>", "<int", "<list"):
        assert kind not in shown.out
    assert shown.err == ""


def test_the_help_lists_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--help"])
    assert "130 interrupted" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["tpoic"], "topic"),
        (["topic", "lsit"], "list"),
        (["up", "--sett", "a=b"], "--set"),
        (["up", "--broker-port", "70000"], "65535"),
        (["up", "--set", "flushDiskTyp=x"], "flushDiskType"),
        (["up", "--set", "flushDiskType=SOMETIMES"], "ASYNC_FLUSH"),
        (["up", "--set", "nonsense"], "key=value"),
        (["broker", "-c", "none.conf"], "No such file"),
        (["broker", "--set", "brokerNmae=a"], "brokerName"),
        (["nameserver", "--set", "listenPrt=1"], "listenPort"),
        (["send"], "TOPIC"),
        (["--access-key", "ops", "topic", "list"], "--secret-key-file"),
        (["--access-key", "ops", "--secret-key-file", "none.txt", "topic", "list"], "No such file"),
        (["--tls-ca-file", "none.pem", "topic", "list"], "none.pem"),
        (["send", "t", "-m", "x", "--property", "x"], "name=value"),
        (["send", "t", "hello", "world"], "'hello world'"),
        (["tail", "t", "-f", "%z"], "%z"),
        (["tail", "t", "--since", "soon"], "10m"),
        (["tail", "t", "-n", "nowhere"], "host:port"),
        (["topic", "create", "a b"], "'a b'"),
        (["topic", "update", "t"], "nothing to change"),
        (["topic", "update", "TBW102", "--queues", "4"], "belongs to the broker"),
        (["topic", "update", "t", "--perm", "x"], "rw"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage_is_one_line_that_helps_and_code_2(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("error: ")
    assert shown.err.count("\n") == 1
    assert told in shown.err


@pytest.mark.parametrize("words", [["topic", "list"], ["tail", "t"], ["send", "t", "-m", "x"]], ids=" ".join)
def test_no_server_is_one_line_that_names_the_address_and_code_3(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    address = f"127.0.0.1:{free_port()}"
    assert main([*words, "-n", address]) == 3
    shown = capsys.readouterr()
    assert address in shown.err
    assert "bolide up" in shown.err
    assert shown.err.count("\n") == 1


@pytest.mark.parametrize("variable", ["BOLIDE_NAMESERVER", "NAMESRV_ADDR"])
def test_the_name_server_may_come_from_the_environment(
    variable: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    address = f"127.0.0.1:{free_port()}"
    monkeypatch.setenv(variable, address)
    assert main(["topic", "list"]) == 3
    assert address in capsys.readouterr().err


def test_deleting_wants_to_be_told_twice_where_nobody_can_be_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    assert main(["topic", "delete", "t"]) == 2
    assert "--yes" in capsys.readouterr().err


def test_declaring_the_commands_does_not_load_the_servers() -> None:
    """`bolide --help` and shell completion must answer at once."""
    heavy = ("broker", "client", "nameserver", "net", "admin", "aio", "record", "store", "wire")
    listing = "import sys, bolide.cli.app; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True)
    loaded = {name for name in run.stdout.split() if name.startswith("bolide.")}
    assert "bolide.cli.topic" in loaded
    assert [name for name in loaded if name.split(".")[1] in heavy] == []


def test_nothing_is_imported_before_ctrl_c_is_heard() -> None:
    listing = "import sys; known = {*sys.modules}; import bolide.cli.main; print(*{*sys.modules} - known)"
    run = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert {name for name in loaded if name.startswith("bolide")} == {
        "bolide",
        "bolide.cli",
        "bolide.cli.main",
    }
    assert loaded.isdisjoint({"typing", "enum", "re", "typer"})


def test_ctrl_c_while_modules_are_imported_is_code_130_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted:
        def __getattr__(self, name: str) -> object:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "bolide.cli.run", Interrupted())
    assert main(["--help"]) == 130
    assert capsys.readouterr().err == ""
