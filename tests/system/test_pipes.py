"""`bolide send` and `bolide tail` in pipes, as shells use them."""

import json
import signal
import subprocess
from pathlib import Path

from tests.peers.bolide import Bolide
from tests.peers.server import Together
from tests.peers.waiting import PATIENCE_SECONDS
from tests.system.command import BOLIDE, RUN_SECONDS, launch, lines_of, run


def test_lines_in_are_lines_out(server: Together) -> None:
    lines = [f"line {number} é" for number in range(5_000)]
    sent = run("send", "lines", "-n", server.nameserver, stdin="\n".join(lines).encode())
    assert sent.code == 0, sent.err
    assert "sent 5000 messages" in sent.err
    assert sent.out == ""
    shown = run("tail", "lines", "-n", server.nameserver, "--since", "beginning", "--no-follow")
    assert sorted(shown.out.splitlines()) == sorted(lines)


def test_lines_of_one_queue_stay_in_their_order(server: Together) -> None:
    run("topic", "create", "single", "--queues", "1", "-n", server.nameserver)
    lines = [str(number) for number in range(3_000)]
    lines[1_000] = "x" * 5_000  # too large for a batch
    assert run("send", "single", "-n", server.nameserver, stdin="\n".join(lines).encode()).code == 0
    shown = run("tail", "single", "-n", server.nameserver, "--since", "beginning", "--no-follow")
    assert shown.out.splitlines() == lines


def test_line_ends_of_windows_are_cut_and_empty_lines_skipped(server: Together) -> None:
    run("send", "odd", "-n", server.nameserver, stdin=b"a\r\n\nb")
    shown = run("tail", "odd", "-n", server.nameserver, "--no-follow", "--json")
    assert sorted(json.loads(line)["body"] for line in shown.out.splitlines()) == ["a", "b"]


def test_json_copies_a_topic_with_keys_tags_properties_and_bytes(server: Together) -> None:
    lines = [
        {"body": "one", "tag": "a", "keys": ["k1", "k2"], "properties": {"color": "red"}},
        {"body_base64": "/wD+", "key": "k3"},
    ]
    given = "\n".join(map(json.dumps, lines)).encode()
    assert run("send", "origin", "--json", "-n", server.nameserver, stdin=given).code == 0
    shown = run("tail", "origin", "--json", "--no-follow", "-n", server.nameserver)
    assert run("send", "copy", "--json", "-n", server.nameserver, stdin=shown.out.encode()).code == 0
    copied = run("tail", "copy", "--no-follow", "-n", server.nameserver, "-f", r"%T|%k|%p{color}|%v{hex}\n")
    assert sorted(copied.out.splitlines()) == ["a|k1 k2|red|6f6e65", "|k3||ff00fe"]


def test_a_line_that_is_no_json_stops_there_and_says_which(server: Together) -> None:
    given = b'{"body": "1"}\n{"body": "2"}\nnonsense\n{"body": "4"}\n'
    refused = run("send", "stopped", "--json", "-n", server.nameserver, stdin=given)
    assert refused.code == 1
    assert refused.err.count("\n") == 1
    assert "line 3 failed, 2 messages are stored" in refused.err


def test_a_follower_sees_what_is_sent_later_and_stops_when_it_has_enough(
    server: Together, tmp_path: Path
) -> None:
    run("send", "later", "-m", "first", "-n", server.nameserver)
    log = tmp_path / "tail.log"
    tail = launch(log, "tail", "later", "--count", "3", "--since", "1h", "-n", server.nameserver)
    tail.wait_ready(lambda: lines_of(log) == ["first"], PATIENCE_SECONDS)
    run("send", "later", "-m", "second", "-m", "third", "-n", server.nameserver)
    assert tail.wait_exit(PATIENCE_SECONDS) == 0
    assert sorted(lines_of(log)) == ["first", "second", "third"]


def test_a_follower_waits_for_a_server_that_restarts(tmp_path: Path) -> None:
    server = Together(Bolide(), tmp_path / "server").start()
    run("send", "again", "-m", "before", "-n", server.nameserver)
    log = tmp_path / "tail.log"
    tail = launch(log, "tail", "again", "-n", server.nameserver)
    tail.wait_ready(lambda: "before" in lines_of(log), PATIENCE_SECONDS)
    server.stop()
    server.start()
    run("send", "again", "-m", "after", "-n", server.nameserver)
    tail.wait_ready(lambda: "after" in lines_of(log), PATIENCE_SECONDS)
    tail.kill()
    server.stop()


def test_a_reader_that_has_enough_is_no_error(server: Together) -> None:
    run("send", "headed", "-n", server.nameserver, stdin=b"x\n" * 2_000)
    with subprocess.Popen(
        [BOLIDE, "tail", "headed", "--since", "beginning", "-n", server.nameserver],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as tail:
        assert tail.stdout is not None
        assert tail.stderr is not None
        assert tail.stdout.readline() == b"x\n"
        tail.stdout.close()
        run("send", "headed", "-m", "one more", "-n", server.nameserver)
        assert tail.wait(RUN_SECONDS) == 0
        assert tail.stderr.read() == b""


def test_an_interrupt_ends_the_reading_and_says_what_is_stored(server: Together) -> None:
    with subprocess.Popen(
        [BOLIDE, "send", "halted", "--receipts", "-n", server.nameserver],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as sending:
        assert sending.stdin is not None
        assert sending.stdout is not None
        assert sending.stderr is not None
        sending.stdin.write(b"one\ntwo\nhalf a li")
        sending.stdin.flush()
        receipts = [json.loads(sending.stdout.readline()) for _ in range(2)]  # they come while stdin is open
        assert {receipt["status"] for receipt in receipts} == {"SEND_OK"}
        sending.send_signal(signal.SIGINT)
        assert sending.wait(RUN_SECONDS) == 130
        said = sending.stderr.read().decode()
    assert (
        "interrupted; 2 messages are stored, nothing behind line 2 was sent, and nothing is under way" in said
    )
    shown = run("tail", "halted", "--no-follow", "-n", server.nameserver)
    assert sorted(shown.out.splitlines()) == ["one", "two"]


def test_a_broker_that_goes_away_ends_it_and_what_is_not_acknowledged_is_named(tmp_path: Path) -> None:
    server = Together(Bolide(), tmp_path / "server").start()
    with subprocess.Popen(
        [BOLIDE, "send", "cut", "--receipts", "-n", server.nameserver],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as sending:
        assert sending.stdin is not None
        assert sending.stdout is not None
        assert sending.stderr is not None
        sending.stdin.write(b"one\n")
        sending.stdin.flush()
        sending.stdout.readline()
        server.kill()
        sending.stdin.write(b"two\nthree\n")
        sending.stdin.flush()
        assert sending.wait(RUN_SECONDS) == 3  # though stdin stays open
        said = sending.stderr.read().decode()
    assert "line 2 failed, 1 message is" in said
    assert "lines 2-3" in said


def test_completion_knows_the_commands(server: Together) -> None:
    env = {"_BOLIDE_COMPLETE": "complete_bash", "COMP_WORDS": "bolide t", "COMP_CWORD": "1"}
    assert set(run(env=env).out.split()) == {"tail", "topic"}
