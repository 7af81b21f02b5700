"""`bolide bench`: what it counts, what it names, and that it leaves nothing behind."""

import json
import random
import signal
import subprocess

import pytest

from bolide.cli.bench_crew import Crew
from bolide.cli.bench_figures import Latencies, Report, Speed, bucket_end, bucket_of, together
from bolide.cli.bench_place import is_here
from bolide.cli.bench_verdict import Facts, bottleneck
from bolide.testing import EmbeddedServer
from tests.peers.waiting import PATIENCE_SECONDS
from tests.unit.cli.conftest import Command
from tests.unit.cli.shells import BOLIDE


def test_a_bucket_is_at_most_three_per_cent_wide_and_buckets_follow_each_other() -> None:
    before = -1
    for value in [*range(5_000), *(2**power + 7 for power in range(13, 40))]:
        bucket = bucket_of(value)
        assert before <= bucket
        assert value <= bucket_end(bucket) <= value * 1.035
        before = bucket
    ends = [bucket_end(bucket) for bucket in range(500)]
    assert [bucket_of(end) for end in ends] == list(range(500))
    assert [bucket_of(end + 1) for end in ends] == list(range(1, 501))


def test_percentiles_are_those_of_the_sorted_values() -> None:
    values = [random.Random(5).randrange(1, 1_000_000) for _ in range(5_000)]
    half, rest = Latencies(), Latencies()
    for number, value in enumerate(values):
        (half if number % 2 else rest).add(value)
    half.merge(rest)
    values.sort()
    for share in (0.5, 0.99, 0.999):
        exact = values[int(share * len(values)) - 1]
        assert exact <= half.at(share) <= exact * 1.035
    assert half.max_us == half.at(1.0) == values[-1]
    assert Latencies().told() == {"p50_ms": 0, "p99_ms": 0, "p999_ms": 0, "max_ms": 0}


def test_the_speed_of_the_moment_is_that_of_the_last_second_however_often_one_looks() -> None:
    speed = Speed()
    assert speed.now(0.0, 0) == 0
    assert speed.now(0.25, 50) == 200  # of what there is
    assert speed.now(0.25, 50) == 200  # no news is no standstill
    assert speed.now(1.25, 150) == pytest.approx(120)
    assert speed.now(1.5, 1150) == pytest.approx(120)  # too short a time to tell
    assert speed.now(2.25, 1150) == pytest.approx(1000)
    assert speed.now(3.25, 1150) == 0  # it does stand still


def test_reports_of_processes_add_up() -> None:
    one = Report(messages=2, size_bytes=10, errors={"x": 1}, processor_s=1, wall_s=3)
    other = Report(messages=3, size_bytes=20, errors={"x": 2, "y": 1}, processor_s=2, wall_s=4)
    whole = together([one, other])
    assert (whole.messages, whole.size_bytes, whole.failed) == (5, 30, 4)
    assert (whole.errors, whole.processor_s, whole.wall_s) == ({"x": 3, "y": 1}, 3, 4)


@pytest.mark.parametrize(
    ("facts", "name", "said"),
    [
        (Facts(1, 0), "nothing", "nothing yet"),
        (Facts(1, 0, failed_share=1.0), "nothing", "errors"),
        (Facts(1, 99, busy_share=0.02, process_busy=0.99), "busy-answers", "2.0%"),
        (Facts(1, 99, asked_per_second=100, process_busy=0.99), "rate", "100 per second"),
        (Facts(1, 50, asked_per_second=100, process_busy=0.98), "client-processor", "98% of one core"),
        (Facts(1, 50, process_busy=0.98, cores=4), "client-processor", "--processes"),
        (Facts(1, 50, machine_busy=1.0, broker_is_here=True), "machine-processors", "broker"),
        (Facts(1, 50, syncs_before_answers=True, answer_ms=4), "disk-sync", "SYNC_FLUSH"),
        (Facts(1, 50, queued_ms=200, one_at_a_time=1), "broker", "200 ms"),
        (Facts(1, 50, one_at_a_time=4, answer_ms=2), "answers", "2.00 ms x 4 under way = 2,000"),
        (Facts(1, 50, window_full=0.9, under_way=20_000, answer_ms=80), "broker", "20,000 messages"),
        (Facts(1, 50, is_sender=False, syncs_before_answers=True, answer_ms=3), "answers", "3.0 ms a poll"),
        (Facts(1, 50, process_busy=0.2), "unclear", "20% of one core"),
    ],
)
def test_the_bottleneck_is_named_by_what_was_measured(facts: Facts, name: str, said: str) -> None:
    held = bottleneck(facts)
    assert held.name == name
    assert said in held.text


def test_an_address_of_this_machine_is_known_as_one() -> None:
    assert is_here("127.0.0.1:10911")
    assert not is_here("192.0.2.1:10911")


def bench_topics(command: Command) -> list[str]:
    return [topic for topic in command("topic", "list", "--json").json if topic.startswith("bolide-bench-")]


@pytest.mark.parametrize(
    "words",
    [
        ["--count", "3000"],
        ["--count", "3000", "--processes", "2", "--in-flight", "100"],
        ["--count", "50", "--sync", "--threads", "2"],
        ["--count", "300", "--batch", "100"],
        ["--count", "20", "--rate", "200"],
    ],
)
def test_produce_sends_so_many_and_deletes_its_topic(command: Command, words: list[str]) -> None:
    told = command("bench", "produce", "--seconds", "120", "--json", *words).json
    assert told["messages"] == int(words[1])
    assert told["failed"] == 0
    assert 0 < told["p50_ms"] <= told["p99_ms"] <= told["p999_ms"] <= told["max_ms"]
    assert told["bottleneck_text"]
    assert bench_topics(command) == []


def test_a_topic_that_is_given_is_filled_read_and_left(command: Command) -> None:
    command("topic", "create", "measured", "--queues", "3")
    command("bench", "produce", "-t", "measured", "--count", "2000", "--size", "100", "--seconds", "120")
    for words in ([], ["--processes", "2"]):
        told = command("bench", "consume", "-t", "measured", "--seconds", "120", "--json", *words).json
        assert told["messages"] == 2000
    assert command("topic", "describe", "measured", "--json").json["messages"] == 2000
    assert command("bench", "consume", "-t", "measured", "--count", "500", "--json").json["messages"] == 500


def test_consume_fills_a_topic_of_its_own_and_names_what_held_it_back(command: Command) -> None:
    shown = command("bench", "consume", "--count", "2000", "--seconds", "120")
    assert "messages         2,000 in" in shown.out
    assert "held back by     " in shown.out
    assert bench_topics(command) == []


def test_latency_receives_what_it_sends(command: Command) -> None:
    told = command("bench", "latency", "--count", "30", "--rate", "100", "--seconds", "60", "--json").json
    assert (told["messages"], told["not_received"]) == (30, 0)
    assert told["max_ms"] > 0
    assert bench_topics(command) == []


def test_what_cannot_be_measured_is_refused(command: Command) -> None:
    command("topic", "create", "unfilled", "--queues", "1")
    assert "has no messages" in command("bench", "consume", "-t", "unfilled", code=2).err
    assert "give one of them" in command("bench", "produce", "--sync", "--batch", "5", code=2).err
    assert "nowhere-at-all" in command("bench", "produce", "-t", "nowhere-at-all", code=4).err
    for size in ("5mb", "0", "4194305", "1e3", "-1"):
        said = f"--size': a number of bytes from 1 to 4194304, not '{size}'"
        assert said in command("bench", "produce", "--size", size, code=2).err


def test_an_interrupt_tells_what_was_measured_and_removes_the_topic(
    bolide_module_server: EmbeddedServer, command: Command
) -> None:
    words = ["bench", "produce", "--seconds", "3600", "--rate", "100", "-n", bolide_module_server.nameserver]
    with subprocess.Popen(
        [BOLIDE, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("produce: messages")  # it runs
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 130
    assert "held back by" in out
    assert "interrupted: this is what was measured until then" in err
    assert bench_topics(command) == []


def test_an_interrupt_before_the_start_says_that_nothing_was_measured(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(crew: Crew) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Crew, "start", interrupted)
    shown = command("bench", "latency", code=130)
    assert "interrupted before anything was measured" in shown.err
    assert shown.out == ""


def test_json_is_the_only_thing_on_stdout(command: Command) -> None:
    shown = command("bench", "produce", "--count", "10", "--json")
    assert json.loads(shown.out)["messages"] == 10
    assert shown.err == ""
