"""What `bolide tail` chooses and how it writes it, against a real server; a pseudo-terminal where colour is claimed."""

import os
import pty
import subprocess

import pytest

from bolide.cli.grep import COLOUR, PLAIN, Grep
from bolide.cli.tail import tail
from bolide.cli.template import FIELDS, compile_template, is_template
from bolide.model.errors import ConfigError
from bolide.testing import EmbeddedServer
from tests.unit.cli.conftest import Command
from tests.unit.cli.samples import SAMPLE, sample
from tests.unit.cli.shells import BOLIDE

EVERYTHING = ("--since", "beginning", "--no-follow")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("{topic} {queue} {offset} {keys} {tags} {body}", b"orders 3 17 42 43 eu paid 42\n"),
        ("{store_time}|{store_ms}|{born_ms}", b"2023-11-14T22:13:20.123Z|1700000000123|1700000000000\n"),
        ("{body:hex} {body:base64} {size}", b"70616964203432 cGFpZCA0Mg== 7\n"),
        ("{properties.source},{properties.missing},", b"web,,\n"),
        (r"{{{queue:>4}}}\t{queue:<3}|{queue:^3}|{queue:2}", b"{   3}\t3  | 3 |3 \n"),
    ],
)
def test_names_become_the_parts_of_a_message(text: str, written: bytes) -> None:
    assert is_template(text)
    assert compile_template(text)(SAMPLE) == written


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{stor_time}", "did you mean {store_time}?"),
        ("{zzz}", "known are topic"),
        ("{body", "lone '{'"),
        ("{queue} }", "lone '}'"),
        ("{queue:x}", ":hex and :base64"),
        ("{queue:>9999}", "up to 1000"),
        (r"{queue}\q", "known are"),
        ("{body!r}", "the format has {body!r}"),
    ],
)
def test_a_format_that_cannot_be_meant_names_what_is_near(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        compile_template(text)
    assert said in str(refused.value)


def test_a_format_with_a_mark_is_no_template_whatever_braces_it_has() -> None:
    assert not is_template('{"body": "%v"}')
    assert not is_template("plain")


def test_every_name_is_explained_in_the_help() -> None:
    assert tail.__doc__ is not None
    assert [name for name in FIELDS if f"{{{name}}}" not in tail.__doc__] == []


def test_names_are_written_by_the_command(command: Command) -> None:
    command("send", "named", "one", "--key", "k", "--tag", "red")
    assert command("tail", "named", "--no-follow", "-f", "{tags} {keys} {body}").out == "red k one\n"
    assert "did you mean {keys}?" in command("tail", "named", "-f", "{kays}", code=2).err


def test_grep_chooses_by_the_body(command: Command) -> None:
    command("send", "searched", "-m", "timeout 1", "-m", "fine", "-m", "refused 22")
    shown = command("tail", "searched", *EVERYTHING, "--grep", r"timeout|refused \d\d")
    assert sorted(shown.out.splitlines()) == ["refused 22", "timeout 1"]
    assert "no regular expression" in command("tail", "searched", "--grep", "(", code=2).err


def test_grep_marks_what_it_found_and_nothing_that_a_stranger_wrote() -> None:
    grep = Grep("a+")
    marked = grep.coloured(grep.marked_body(sample(body=b"xaay <b>")))
    assert marked == b"x" + COLOUR + b"aa" + PLAIN + b"y <b>"
    assert Grep("z*").marked_body(sample(body=b"ab")) == b"ab"


def test_on_a_terminal_what_was_found_is_in_colour_and_escapes_are_tamed(
    bolide_module_server: EmbeddedServer, command: Command
) -> None:
    command("send", "coloured", "an \x1b[2Jerror here")
    leader, follower = pty.openpty()
    words = ["tail", "coloured", "--no-follow", "--grep", "error", "-n", bolide_module_server.nameserver]
    env = {**os.environ, "TERM": "xterm"}
    env.pop("NO_COLOR", None)
    with subprocess.Popen([BOLIDE, *words], stdout=follower, env=env) as process:
        os.close(follower)
        shown = b""
        while chunk := _read(leader):
            shown += chunk
        assert process.wait() == 0
    os.close(leader)
    assert COLOUR + b"error" + PLAIN in shown
    assert b"\x1b[2J" not in shown


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # the other side has gone
        return b""


def test_sql_chooses_by_properties_among_the_last_and_since_a_moment(command: Command) -> None:
    for price in (1, 5, 9):
        command("send", "priced", f"costs {price}", "--property", f"price={price}")
    dear = ("--no-follow", "--sql", "price > 3")
    assert sorted(command("tail", "priced", *dear).out.splitlines()) == ["costs 5", "costs 9"]
    assert command("tail", "priced", *dear, "--last", "1").out == "costs 9\n"
    assert sorted(command("tail", "priced", *dear, "--since", "1h").out.splitlines()) == [
        "costs 5",
        "costs 9",
    ]
    command("tail", "priced", "--sql", "price >", code=2)
    assert "not both" in command("tail", "priced", *dear, "--tag", "x", code=2).err


def test_until_ends_before_a_moment(command: Command) -> None:
    command("send", "bounded", "first")
    first_ms = command("tail", "bounded", "--no-follow", "-f", "{store_ms}").out.strip()
    assert command("tail", "bounded", "--until", "now").out == "first\n"
    assert command("tail", "bounded", "--since", "beginning", "--until", "now").out == "first\n"
    assert command("tail", "bounded", "--since", "beginning", "--until", first_ms).out == ""
    assert command("tail", "bounded", "--until", first_ms).out == ""
    assert "still to come" in command("tail", "bounded", "--until", "2999-01-01", code=2).err


def test_a_member_of_a_group_goes_on_where_the_group_is(command: Command) -> None:
    words = [word for number in range(5) for word in ("-m", str(number))]
    command("send", "shared", *words)
    places = ("-f", "%q %o %v\\n", "--since", "beginning")  # a message that was sent twice has two of them
    stored = command("tail", "shared", "--no-follow", *places).out.splitlines()
    assert len({line.split()[-1] for line in stored}) == 5
    as_member = ("tail", "shared", "--group", "tail-readers", *places)
    first = command(*as_member, "--count", "2").out.splitlines()
    rest = command(*as_member, "--no-follow").out.splitlines()
    assert len(first) == 2
    assert sorted(first + rest) == sorted(stored)
    assert command(*as_member, "--no-follow").out == ""
    (lag,) = command("group", "lag", "tail-readers", "--topic", "shared", "--json").json
    assert lag["behind"] == 0
    assert "goes on from its offsets" in command(*as_member, "--until", "now", code=2).err


def test_without_a_group_nothing_is_left_behind(command: Command) -> None:
    command("send", "untouched", "x")
    command("tail", "untouched", *EVERYTHING)
    groups = {
        one["group"] for one in command("queue", "describe", "untouched", "0", "--json").json[0]["groups"]
    }
    assert groups == set()
