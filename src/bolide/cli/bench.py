"""`bolide bench`: load on a topic from this machine, how fast it goes, and what keeps it from going faster."""

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from bolide.cli import bench_options as options
from bolide.cli.access import access
from bolide.cli.ask import ask
from bolide.cli.bench_figures import Report, Speed, together
from bolide.cli.bench_verdict import Bottleneck, Facts, bottleneck
from bolide.cli.options import DEFAULT_NAMESERVER, AsJson, Nameserver
from bolide.cli.outcome import ExitCode
from bolide.cli.output import say, write_json
from bolide.model.errors import ConfigError

if TYPE_CHECKING:
    from bolide.admin.connection import AdminConnection
    from bolide.cli.bench_crew import Crew
    from bolide.cli.bench_place import Place
    from bolide.cli.bench_work import Task
    from bolide.model.offsets import MessageQueue

LATENCY_RATE = 100.0
DRAIN_S = 5.0
"""How long the last messages of `latency` may be on their way."""
QUEUED_EVERY_S = 2.0
FILL_SECONDS = 600.0

app = typer.Typer(no_args_is_help=True, help="Measure a cluster from here, and name the bottleneck.")


@dataclass
class _Bench:
    """One run: which figures count, and how they are told."""

    what: str
    unit: str
    nameserver: str
    place: "Place"
    as_json: bool
    pool: str
    asked: float | None = None
    one_at_a_time: int | None = None

    def run(
        self, tasks: "Sequence[Task]", counted: "Callable[[Task], bool]"
    ) -> tuple[Report, Bottleneck, dict[str, Any]]:
        """Run them; those that are counted make the figures."""
        from bolide.cli.bench_crew import Crew, Machine
        from bolide.cli.bench_show import live

        with Crew(tasks) as crew, live(self.what, self.unit, quiet=self.as_json) as show:
            try:
                crew.start()
            except KeyboardInterrupt:
                say("interrupted before anything was measured: the processes were being started")
                raise
            look = _Look(self, crew, Machine(), [counted(task) for task in tasks])
            interrupted = False
            try:
                crew.run(partial(look.again, show), look.is_enough)
            except KeyboardInterrupt:
                interrupted = True
                crew.stop()
        report, facts = look.facts()
        held = bottleneck(facts)
        result = {
            "messages": report.messages,
            "seconds": round(report.wall_s, 3),
            "per_second": round(facts.per_second, 1),
            "bytes_per_second": round(report.size_bytes / max(report.wall_s, 1e-9)),
            **report.latencies.told(),
            "failed": report.failed,
            "client_processor": round(facts.process_busy, 3),
            "machine_processors": round(facts.machine_busy, 3),
            "bottleneck": held.name,
            "bottleneck_text": held.text,
            "interrupted": interrupted,
        }
        if senders := look.senders():
            result["not_received"] = max(0, sum(one.messages for one in senders) - report.messages)
        return report, held, result

    def tell(self, report: Report, held: Bottleneck, result: dict[str, Any]) -> None:
        from bolide.cli.bench_show import write_result

        if self.as_json:
            write_json(result)
        else:
            write_result(result, report, self.unit, held)
        if result["interrupted"]:
            say("interrupted: this is what was measured until then")
            raise typer.Exit(ExitCode.INTERRUPTED)
        if report.failed or not report.messages:
            raise typer.Exit(ExitCode.FAILED)


class _Look:
    """What is known at a moment."""

    def __init__(self, bench: _Bench, crew: "Crew", machine: Any, counted: list[bool]) -> None:
        self._bench, self._crew, self._machine = bench, crew, machine
        self._counted = counted
        self._asked_at = time.monotonic()
        self._queued_ms = 0
        self._speed = Speed()
        self._drained_at: float | None = None

    def facts(self) -> tuple[Report, Facts]:
        reports = self._crew.reports
        bench = self._bench
        whole = together(one for one, counts in zip(reports, self._counted, strict=True) if counts)
        if senders := self.senders():  # when the last was sent: the rate is theirs
            whole.wall_s = max(one.wall_s for one in senders) or whole.wall_s  # they may not have told yet
        seconds = max(whole.wall_s, 1e-9)
        total = max(1, whole.messages + whole.failed)
        return whole, Facts(
            seconds=seconds,
            per_second=whole.messages / seconds,
            asked_per_second=bench.asked,
            process_busy=max((one.processor_s / max(one.wall_s, 1e-9) for one in reports), default=0.0),
            processes=len(reports),
            machine_busy=self._machine.busy(),
            cores=self._machine.cores,
            broker_is_here=bench.place.is_here,
            syncs_before_answers=bench.place.syncs_before_answers,
            failed_share=whole.failed / total,
            busy_share=whole.busy / total,
            one_at_a_time=bench.one_at_a_time,
            answer_ms=whole.latencies.at(0.5) / 1000,
            under_way=max(0, whole.given - whole.messages - whole.failed),
            window_full=whole.waiting_s / seconds / max(1, sum(self._counted)),
            queued_ms=self._queued_ms,
            is_sender=bench.what != "consume",
        )

    def again(self, show: Callable[[Report, float, Bottleneck], None]) -> None:
        from bolide.cli.bench_place import queued_ms

        now = time.monotonic()
        if now - self._asked_at >= QUEUED_EVERY_S:
            self._asked_at = now
            bench = self._bench
            self._queued_ms = max(self._queued_ms, queued_ms(bench.nameserver, bench.place, bench.pool))
        report, facts = self.facts()
        show(report, self._speed.now(report.wall_s, report.messages), bottleneck(facts))

    def senders(self) -> list[Report]:
        """Of those that are read, where the readers are what counts."""
        return [one for one, counts in zip(self._crew.reports, self._counted, strict=True) if not counts]

    def is_enough(self) -> bool:
        """Where readers are what counts: all has come that was sent, or has had its time."""
        senders = self.senders()
        if not senders or self._crew.at_work > len(self._crew.tasks) - len(senders):
            return False
        now = time.monotonic()
        if self._drained_at is None:
            self._drained_at = now + DRAIN_S
        return self.facts()[0].messages >= sum(one.messages for one in senders) or now >= self._drained_at


@app.command()
def produce(
    topic: options.Topic = None,
    size: options.Size = options.SIZE_BYTES,
    count: options.Count = None,
    seconds: options.Seconds = options.SECONDS,
    rate: options.Rate = None,
    sync: options.Sync = False,
    batch: options.Batch = 0,
    threads: options.Threads = 1,
    window: options.Window = options.WINDOW,
    processes: options.Processes = 1,
    queues: options.Queues = options.QUEUES,
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Send as fast as it goes, or at a rate; every message is acknowledged.

    Latencies are from the moment a message is given (with --rate: from the moment it was due) to its acknowledgement.

    [bold]Examples[/bold]

        bolide bench produce
        bolide bench produce --size 1024 --seconds 30 --processes 2
        bolide bench produce --sync --threads 16
        bolide bench produce --topic orders --rate 500 --json
    """
    from bolide.cli.bench_place import bench_place
    from bolide.cli.bench_work import Task

    if sync and batch:
        raise ConfigError("--sync sends one message at a time and --batch several: give one of them")
    with bench_place(nameserver, topic, queues) as place:
        at_once = threads * processes if sync or batch else None
        bench = _Bench("produce", "answers", nameserver, place, as_json, "send", rate, at_once)
        tasks = [
            Task(
                "produce",
                nameserver,
                access(),
                place.topic,
                size,
                part,
                seconds,
                share,
                batch,
                threads,
                sync,
                window,
            )
            for part, share in _shares(count, rate, processes)
        ]
        outcome = bench.run(tasks, lambda task: True)
    bench.tell(*outcome)


@app.command()
def consume(
    topic: options.Topic = None,
    size: options.Size = options.SIZE_BYTES,
    count: options.Count = None,
    seconds: options.Seconds = options.SECONDS,
    processes: options.Processes = 1,
    queues: options.Queues = options.QUEUES,
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Read a topic from its beginning to its present end, and every body; without a group, so nothing is left behind.

    Without --topic one is made and filled first, with --count messages (a million). Latencies are those of a poll.

    [bold]Examples[/bold]

        bolide bench consume
        bolide bench consume --count 100000 --size 1024
        bolide bench consume --topic orders --processes 2
    """
    from bolide.cli.bench_place import bench_place
    from bolide.cli.bench_work import Task

    with bench_place(nameserver, topic, queues) as place:
        if topic is None:
            count = _fill(nameserver, place, size, count or 1_000_000, as_json)
        held = _held(nameserver, place)
        there = sum(held.values())
        wanted = there if count is None else min(count, there)
        if wanted == 0:
            raise ConfigError(
                f"the topic {place.topic} has no messages: fill it with `bolide bench produce -t`"
            )
        bench = _Bench("consume", "polls", nameserver, place, as_json, "pull")
        tasks = []
        for number in range(min(processes, len(held))):
            own = sorted(held)[number::processes]
            part = -(-sum(held[queue] for queue in own) * wanted // there)
            task = Task("consume", nameserver, access(), place.topic, size, part, seconds, queues=own)
            tasks.append(task)
        outcome = bench.run(tasks, lambda task: True)
    bench.tell(*outcome)


@app.command()
def latency(
    topic: options.Topic = None,
    size: options.Size = options.SIZE_BYTES,
    count: options.Count = None,
    seconds: options.Seconds = options.SECONDS,
    rate: options.Rate = LATENCY_RATE,
    queues: options.Queues = options.QUEUES,
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """The way from send to receive, at a rate: one process sends, another waits for the messages.

    Latencies are from the moment a message was due by the timetable to its arrival in the reading process, so a stall
    counts for everything that it has delayed. What has not come 5 s after the last send is counted as not received.

    [bold]Examples[/bold]

        bolide bench latency
        bolide bench latency --rate 1000 --seconds 60 --size 1024
    """
    from bolide.cli.bench_place import bench_place
    from bolide.cli.bench_work import STAMP, Task

    size = max(size, STAMP.size)
    with bench_place(nameserver, topic, queues) as place:
        bench = _Bench("latency", "send to receive", nameserver, place, as_json, "pull", rate)
        stamp = secrets.token_bytes(8)
        common = ("receive", nameserver, access(), place.topic, size)
        read = Task(
            *common, None, seconds + 2 * DRAIN_S, queues=sorted(_held(nameserver, place)), stamp=stamp
        )
        sent = Task("produce", *common[1:], count, seconds, rate, linger_ms=0, stamp=stamp)
        outcome = bench.run([read, sent], lambda task: task is read)
    bench.tell(*outcome)


def _shares(count: int | None, rate: float | None, processes: int) -> list[tuple[int | None, float | None]]:
    """Of the messages and of the rate, for each process."""
    counts = [
        None if count is None else count // processes + (number < count % processes)
        for number in range(processes)
    ]
    return [(part, None if rate is None else rate / processes) for part in counts if part != 0]


def _fill(nameserver: str, place: "Place", size: int, count: int, as_json: bool) -> int:
    """So many messages for a reader; returns how many there are."""
    from bolide.cli.bench_work import Task

    bench = _Bench("fill", "answers", nameserver, place, as_json, "send")
    task = Task("produce", nameserver, access(), place.topic, size, count, FILL_SECONDS)
    report, _, result = bench.run([task], lambda task: True)
    if result["interrupted"]:
        raise KeyboardInterrupt
    return report.messages


def _held(nameserver: str, place: "Place") -> "dict[MessageQueue, int]":
    """How many messages each queue has."""
    from bolide.admin.topics import describe_topic
    from bolide.model.offsets import MessageQueue

    async def look(servers: "AdminConnection") -> "dict[MessageQueue, int]":
        told = await describe_topic(servers, place.topic)
        return {MessageQueue(place.topic, one.broker_name, one.queue_id): one.messages for one in told.queues}

    return ask(nameserver, look)
