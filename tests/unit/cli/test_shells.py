"""The command line as shells and terminals meet it: letters, flags, pipes, colours, completion."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bolide.cli.app import command, every_command
from bolide.cli.main import main
from bolide.testing import EmbeddedServer
from tests.peers.ports import free_port
from tests.unit.cli.shells import completed, on_a_terminal, shell

COLOR = re.compile(rb"\x1b\[[0-9;]*m")
REAL_COLOR = re.compile(rb"\x1b\[(?:[0-9;]*;)?(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])[0-9;]*m")


def options() -> Iterator[tuple[str, list[str]]]:
    """Every option of every command."""
    for one in every_command(command()):
        for parameter in one.params:
            if parameter.param_type_name == "option":
                yield one.name, parameter.opts


def path_of(one: object, whole: object, path: tuple[str, ...] = ()) -> tuple[str, ...] | None:
    """The words that lead to a command."""
    if one is whole:
        return path
    for name, below in getattr(whole, "commands", {}).items():
        found = path_of(one, below, (*path, name))
        if found is not None:
            return found
    return None


WHOLE = command()
PATHS = [path_of(one, WHOLE) or () for one in every_command(WHOLE)]


def test_a_letter_means_the_same_in_every_command() -> None:
    meanings: dict[str, set[str]] = {}
    for _, names in options():
        longs = {name for name in names if name.startswith("--")}
        for short in set(names) - longs:
            meanings.setdefault(short, set()).update(longs)
    assert {letter: longs for letter, longs in meanings.items() if len(longs) > 1} == {}


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_no_flag_is_explained_as_something_that_takes_a_value(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*path, "--help"]) == 0
    assert "bool" not in capsys.readouterr().out


# ---- pipes


@pytest.mark.parametrize("line", ["bolide --help", "bolide topic create --help", "bolide --version"])
def test_a_reader_that_has_enough_of_the_help_is_no_failure(line: str) -> None:
    done = shell(f"{line} | true")
    assert (done.returncode, done.stderr) == (0, "")
    done = shell(f"{line} | head -n 1")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_doctors_verdict_does_not_depend_on_who_listens() -> None:
    done = shell("bolide doctor | head -n 1", f"127.0.0.1:{free_port()}")
    assert done.returncode == 1
    assert done.stderr == ""


# ---- colours


def test_who_wants_no_colour_gets_none() -> None:
    env = {"TERM": "xterm-256color", "BOLIDE_NAMESERVER": f"127.0.0.1:{free_port()}"}
    for words in (["doctor"], ["--help"]):
        assert REAL_COLOR.search(on_a_terminal(*words, env=env | {"NO_COLOR": ""})), words
        assert not REAL_COLOR.search(on_a_terminal(*words, env=env | {"NO_COLOR": "1"})), words


def test_a_dumb_terminal_gets_plain_text() -> None:
    env = {"TERM": "dumb", "BOLIDE_NAMESERVER": f"127.0.0.1:{free_port()}"}
    for words in (["doctor"], ["--help"], ["topic", "list"]):
        shown = on_a_terminal(*words, env=env)
        assert not COLOR.search(shown), words
        assert shown.isascii(), words


# ---- completion


@pytest.fixture(scope="module")
def nameserver() -> Iterator[str]:
    with EmbeddedServer() as server:
        for topic in ("orders", "orders-late", "payments", "pipe|line"):
            assert main(["topic", "create", topic, "-n", server.nameserver]) == 0
        yield server.nameserver


@pytest.mark.parametrize("line", ["tail ord", "topic describe ord", "message get X --topic ord", "send ord"])
def test_topics_are_completed(line: str, nameserver: str) -> None:
    assert completed(f"bolide {line}", nameserver) == ["orders", "orders-late"]


def test_brokers_and_clusters_are_completed(nameserver: str) -> None:
    assert completed("bolide topic update orders --broker b", nameserver) == ["broker-a"]
    assert completed("bolide topic create x --cluster D", nameserver) == ["DefaultCluster"]


def test_the_name_server_of_the_line_is_asked(nameserver: str) -> None:
    line = f"bolide tail -n {nameserver} pay"
    assert completed(line, f"127.0.0.1:{free_port()}") == ["payments"]


def test_the_account_and_the_tls_of_the_line_are_used(nameserver: str, tmp_path: Path) -> None:
    """The server has no TLS, and hears nothing in the clear; an account without its secret is nobody's."""
    (tmp_path / "secret").write_text("very secret")
    account = f"--access-key ops --secret-key-file {tmp_path}"
    assert completed(f"bolide {account}/secret tail pay", nameserver) == ["payments"]
    assert completed(f"bolide {account}/none tail pay", nameserver) == []
    assert completed("bolide --tls tail pay", nameserver) == []


def test_a_name_that_a_shell_would_take_apart_is_not_offered(nameserver: str) -> None:
    assert completed("bolide tail pi", nameserver) == []


def test_settings_are_completed_for_the_server_in_question(nameserver: str) -> None:
    assert completed("bolide up --set flushDisk", nameserver) == ["flushDiskType="]
    assert completed("bolide nameserver --set flushDisk", nameserver) == []
    assert completed("bolide nameserver --set listenP", nameserver) == ["listenPort="]


def test_without_a_server_nothing_is_offered_and_nothing_is_said() -> None:
    assert completed("bolide tail ord", f"127.0.0.1:{free_port()}") == []
