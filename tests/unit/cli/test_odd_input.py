"""What people and shells really give to a command: bytes that are no text, moments that no calendar has, closed
descriptors, an output that is full.  Each ends with one line on stderr or with the work done, never with a traceback.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from bolide.cli import app as commands
from bolide.cli.main import main
from bolide.cli.since import format_moment, parse_since
from bolide.cli.sources import read_lines
from bolide.model.errors import ConfigError
from bolide.model.limits import LINE_BYTES_MAX
from bolide.testing import EmbeddedServer
from tests.peers.waiting import PATIENCE_SECONDS
from tests.unit.cli.shells import BOLIDE, shell

NOT_UTF8 = os.fsdecode(b"\xff\xfe")


def only_line(capsys: pytest.CaptureFixture[str]) -> str:
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("error: ")
    assert shown.err.count("\n") == 1
    return shown.err


@pytest.fixture(scope="module")
def nameserver() -> Iterator[str]:
    with EmbeddedServer() as server:
        yield server.nameserver


# ---- bytes


def test_a_body_on_the_command_line_may_be_any_bytes(
    nameserver: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["send", "bytes", "-m", NOT_UTF8, "-n", nameserver]) == 0
    assert main(["tail", "bytes", "--no-follow", "-f", "%v{hex}", "-n", nameserver]) == 0
    assert capfd.readouterr().out == "fffe"


@pytest.mark.parametrize(
    "words",
    [
        ["send", "t", "-m", "x", "--key", NOT_UTF8],
        ["send", "t", "-m", "x", "--tag", NOT_UTF8],
        ["send", "t", "-m", "x", "--property", f"a={NOT_UTF8}"],
        ["message", "find", "t", "--key", NOT_UTF8],
    ],
    ids=lambda words: f"{words[0]} {words[-2]}",
)
def test_other_words_that_are_no_text_are_wrong_usage(
    words: list[str], nameserver: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["topic", "create", "t", "--if-not-exists", "-n", nameserver]) == 0
    capsys.readouterr()
    assert main([*words, "-n", nameserver]) == 2
    assert "UTF-8" in only_line(capsys)


def test_what_the_terminal_cannot_show_is_no_reason_to_fail(nameserver: str) -> None:
    shown = shell("PYTHONIOENCODING=ascii bolide doctor", nameserver)
    assert "python: Python 3" in shown.stdout
    assert "Traceback" not in shown.stderr


# ---- lines


def lines_through_a_pipe(data: bytes) -> int:
    """The number of lines that come out of a pipe filled with `data`."""

    reading, writing = os.pipe()
    feeding = threading.Thread(target=_feed, args=(writing, data))
    feeding.start()
    try:
        return sum(len(lines) for lines in read_lines(reading, lambda read: None, lambda descriptor: True))
    finally:
        os.close(reading)
        feeding.join()


def _feed(descriptor: int, data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), open(descriptor, "wb") as file:
        file.write(data)


def test_a_long_line_in_many_pieces_is_one_line() -> None:
    assert lines_through_a_pipe(b"x" * 3_000_000 + b"\n" + b"y\n" * 10) == 11


def test_a_line_that_never_ends_is_refused_with_its_number() -> None:
    with pytest.raises(ConfigError, match="line 2 is longer than"):
        lines_through_a_pipe(b"a\n" + bytes(LINE_BYTES_MAX + 1_000_000))


def test_what_was_sent_before_a_line_that_never_ends_is_counted(nameserver: str) -> None:
    refused = shell(f"(echo a; head -c {LINE_BYTES_MAX + 100_000} /dev/zero) | bolide send long", nameserver)
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert "1 message is stored: line 2 is longer than" in refused.stderr


def test_a_message_of_the_command_line_is_not_called_a_line(
    nameserver: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["send", "t", "-m", "a", "-m", "", "--on-error", "skip", "-n", nameserver]) == 1
    assert "message 2 is skipped: a message cannot have an empty body" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([""], "message 1 cannot be sent: a message cannot have an empty body"),
        (["-m", "a", "-m", ""], "message 2 cannot be sent: a message cannot have an empty body"),
        (["-m", "{}", "--json"], "message 1 cannot be sent: no 'body' in this JSON object"),
        (["-m", "a", "--tag", "b||c"], "tags is one word"),
        (["--tag", "b||c"], "tags is one word"),
        (["-f", "csv", "--key", "b c"], "each of keys is one word"),
        (["--tag", "b||c", "--on-error", "skip"], "tags is one word"),
        (["--sharding-key", ""], "sharding_key is a text"),
        (["--property", "TRAN_MSG=true"], "the property TRAN_MSG"),
    ],
    ids=str,
)
def test_words_that_no_message_can_have_are_wrong_usage_and_nothing_is_sent(
    words: list[str], said: str, nameserver: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lines of a file and of stdin are another matter: what is wrong with them comes to light when some are stored."""
    assert main(["send", "unsent", *words, "-n", nameserver]) == 2
    assert said in only_line(capsys)
    assert main(["topic", "describe", "unsent", "-n", nameserver]) == 4


def test_the_option_that_is_nearest_to_an_unknown_one_is_named_first(
    nameserver: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["send", "t", "x", "--tags", "a", "-n", nameserver]) == 2
    assert "--tags (Possible options: --tag, --at)" in only_line(capsys)


# ---- moments


@pytest.mark.parametrize("text", ["0001-01-01", "1969-12-31T23:59"])
def test_a_moment_before_all_messages_is_the_beginning(text: str) -> None:
    assert parse_since(text, 0) == 0


@pytest.mark.parametrize("text", ["9999-12-31T23:59:59-14:00", "9999-12-31T23:59:59"])
def test_a_moment_at_the_end_of_all_calendars_is_a_moment_or_wrong_usage(text: str) -> None:
    with contextlib.suppress(ConfigError):
        assert parse_since(text, 0)


@pytest.mark.parametrize("moment_ms", [2**63 - 1, -(2**63)])
def test_a_time_that_no_calendar_holds_can_still_be_shown(moment_ms: int) -> None:
    assert format_moment(moment_ms) == f"{moment_ms}ms"


# ---- descriptors


def test_receipts_that_nobody_reads_do_not_stop_the_sending(nameserver: str) -> None:
    sent = shell("seq 20000 | bolide send unread --receipts | head -1 >/dev/null", nameserver)
    assert (sent.returncode, sent.stderr) == (0, "sent 20000 messages to unread\n")


def test_receipts_that_cannot_be_written_stop_the_sending_and_say_why(nameserver: str) -> None:
    stopped = shell("seq 20000 | bolide send full --receipts >/dev/full", nameserver)
    assert stopped.returncode == 1
    assert stopped.stderr.count("\n") == 1
    assert "messages are stored: No space left on device" in stopped.stderr


def test_a_full_output_is_one_line_without_error_numbers() -> None:
    full = shell("bolide --version >/dev/full")
    assert (full.returncode, full.stderr) == (1, "error: No space left on device\n")


@pytest.mark.parametrize(
    "line",
    ["bolide send closed <&-", "bolide tail there --no-follow >&-", "bolide topic list 2>&-"],
)
def test_closed_descriptors_lead_nowhere(line: str, nameserver: str) -> None:
    main(["send", "there", "-q", "-m", "x", "-n", nameserver])
    done = shell(line, nameserver)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


# ---- what nobody thought of


def test_an_unforeseen_error_is_one_line_that_asks_for_a_report(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def break_down(*words: object, **options: object) -> None:
        raise ExceptionGroup("many", [ZeroDivisionError("by zero")])

    monkeypatch.setattr(commands, "command", lambda: break_down)
    assert main([]) == 1
    told = only_line(capsys)
    assert "ZeroDivisionError: by zero" in told
    assert "BOLIDE_DEBUG=1" in told


def test_the_debugger_gets_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def break_down(*words: object, **options: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(commands, "command", lambda: break_down)
    monkeypatch.setenv("BOLIDE_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main([])


def test_ctrl_c_is_heard_while_the_commands_are_loaded() -> None:
    """The command is interrupted the moment it begins to import Typer."""
    script = """if True:
        import builtins, os, signal, sys
        from bolide.cli.main import main

        found = builtins.__import__

        def loading(name, *rest):
            if name == "typer":
                os.kill(os.getpid(), signal.SIGINT)
            return found(name, *rest)

        builtins.__import__ = loading
        sys.exit(main(["--version"]))
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_an_interrupted_send_says_how_much_was_acknowledged(nameserver: str) -> None:
    with subprocess.Popen(
        [BOLIDE, "send", "cut", "-n", nameserver, "--receipts"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
    ) as sending:
        assert sending.stdin is not None
        assert sending.stdout is not None
        assert sending.stderr is not None
        sending.stdin.write(b"one\ntwo\n")
        sending.stdin.flush()
        for _ in range(2):
            sending.stdout.readline()
        sending.send_signal(signal.SIGINT)
        assert sending.wait(PATIENCE_SECONDS) == 130
        assert sending.stderr.read().startswith(b"interrupted; 2 messages are stored")


def test_no_is_no_interruption(
    nameserver: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["topic", "create", "kept", "-n", nameserver]) == 0
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda *words, **options: False)
    capsys.readouterr()
    assert main(["topic", "delete", "kept", "-n", nameserver]) == 1
    assert capsys.readouterr().err == "nothing was deleted\n"
    assert main(["topic", "describe", "kept", "-n", nameserver]) == 0
