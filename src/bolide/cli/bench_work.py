"""One process of a benchmark: it sends or reads until it is told to stop, and tells how far it has come.

Its parent keeps the display and the clock of the whole, so that neither costs this process anything.
"""

import os
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

from bolide import LitePullConsumer, Message, MessageQueue, Producer, RemoteError, ResponseCode, SendReceipt
from bolide.cli.bench_figures import Report
from bolide.cli.outcome import explain
from bolide.model.errors import BolideError
from bolide.model.message import BODY_BYTES_MAX
from bolide.model.names import TOOLS_GROUP

if TYPE_CHECKING:
    from bolide.client.terms import Access

READY, GO, STOP, DONE, FAILED = "ready", "go", "stop", "done", "failed"

TELL_S = 0.25
SAMPLE = 16
"""One message of so many is timed where nobody has asked for a rate."""

ERRORS_MAX = 1_000
"""A run that fails this often has told its story."""

ERROR_KINDS_MAX = 20
WINDOW_BYTES_MAX = 32 * 1024 * 1024
POLL_MS = 200
POLL_MESSAGES = 4096
EMPTY_POLLS_MAX = 15

STAMP = struct.Struct(">8sq")
"""Of a message that is timed from end to end: whose it is, and when it was due (monotonic, in nanoseconds)."""


@dataclass(frozen=True)
class Task:
    """What one process is to do; count and rate are its own share."""

    kind: str
    nameserver: str
    access: "Access"
    topic: str
    size_bytes: int
    count: int | None
    seconds: float
    rate: float | None = None
    batch: int = 0
    threads: int = 1
    sync: bool = False
    window: int = 20_000
    linger_ms: int = 5
    queues: Sequence[MessageQueue] = ()
    stamp: bytes = b""
    """Makes every message carry its due time, and lets a reader know its own."""


def work(task: Task, parent: Connection) -> None:
    """The whole life of the process."""
    worker = _Worker(task, parent)
    try:
        {"produce": worker.produce, "consume": worker.consume, "receive": worker.receive}[task.kind]()
    except BolideError as error:
        worker.tell(FAILED, explain(error))
    else:
        worker.tell(DONE)
    finally:
        parent.close()


class _Worker:
    def __init__(self, task: Task, parent: Connection) -> None:
        self._task = task
        self._parent = parent
        self._told = threading.Lock()
        self._stop = threading.Event()
        self._room = threading.Event()
        self._count = threading.Lock()
        self._report = Report()
        self._began = self._began_processor = 0.0

    # ---- with the parent -----------------------------------------------------------------------------------

    def tell(self, word: str, about: str = "") -> None:
        report = self._report.copy()  # it goes on changing while it is told
        if self._began:
            report.wall_s = time.monotonic() - self._began
            report.processor_s = time.process_time() - self._began_processor
        try:
            with self._told:
                self._parent.send((word, about, report))
        except OSError:  # nobody is there any more
            self._stop.set()

    def _ready(self) -> bool:
        """Wait with all others for the start; False when it is not to be."""
        self.tell(READY)
        try:
            if self._parent.recv() != GO:
                return False
        except EOFError:
            return False
        self._began, self._began_processor = time.monotonic(), time.process_time()
        threading.Thread(target=self._tell_on, daemon=True).start()
        return True

    def _tell_on(self) -> None:
        while not self._stop.is_set():
            try:
                if self._parent.poll(TELL_S):
                    self._parent.recv()
                    self._stop.set()
            except (EOFError, OSError):
                self._stop.set()
            self.tell(GO)

    @property
    def _is_over(self) -> bool:
        return self._stop.is_set() or time.monotonic() - self._began >= self._task.seconds

    # ---- sending -------------------------------------------------------------------------------------------

    def produce(self) -> None:
        task = self._task
        with Producer(
            task.nameserver,
            group="bolide-bench",
            pack_from_bytes=BODY_BYTES_MAX + 1,
            linger_ms=task.linger_ms,
            **task.access,
        ) as producer:
            producer.queues(task.topic)
            if not self._ready():
                return
            one_by_one = task.sync or task.batch > 0
            loop = self._send_each if one_by_one else self._send_soon
            threads = [
                threading.Thread(target=loop, args=(producer, number)) for number in range(task.threads)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            if not one_by_one:
                producer.flush()

    def _send_soon(self, producer: Producer, number: int) -> None:
        task, report = self._task, self._report
        window = max(1, min(task.window, WINDOW_BYTES_MAX // task.size_bytes))
        body = os.urandom(task.size_bytes)
        for turn, due in self._turns(number):
            while report.given - report.messages - report.failed >= window:
                if not self._wait_for_room(window):
                    return
            timed = task.rate is not None or turn % SAMPLE == 0
            callback = partial(self._answered_at, due) if timed else self._answered
            message = Message(task.topic, self._stamped(body, due))
            with self._count:
                report.given += 1
            try:
                producer.send_soon(message, callback=callback)
            except BolideError as error:
                self._answered(None, error)

    def _wait_for_room(self, window: int) -> bool:
        began = time.monotonic()
        self._room.clear()
        report = self._report
        if report.given - report.messages - report.failed >= window:
            self._room.wait(TELL_S)
        report.waiting_s += time.monotonic() - began
        return not self._is_over

    def _answered(self, receipt: SendReceipt | None, error: Exception | None) -> None:
        report = self._report
        if receipt is not None:
            report.messages += 1
            report.size_bytes += self._task.size_bytes
        else:
            self._failed(error, 1)
        if not self._room.is_set():
            self._room.set()

    def _answered_at(self, due: float, receipt: SendReceipt | None, error: Exception | None) -> None:
        if receipt is not None:
            self._report.latencies.add(int((time.monotonic() - due) * 1_000_000))
        self._answered(receipt, error)

    def _send_each(self, producer: Producer, number: int) -> None:
        task, report = self._task, self._report
        body, many = os.urandom(task.size_bytes), max(1, task.batch)
        for _, due in self._turns(number, many):
            message = Message(task.topic, self._stamped(body, due))
            error: Exception | None = None
            try:
                if task.batch:
                    producer.send_batch([message] * many)
                else:
                    producer.send(message)
            except BolideError as failure:
                error = failure
            with self._count:
                report.given += many
                if error is None:
                    report.messages += many
                    report.size_bytes += many * task.size_bytes
                    report.latencies.add(int((time.monotonic() - due) * 1_000_000))
                else:
                    self._failed(error, many)

    def _turns(self, number: int, many: int = 1) -> Iterator[tuple[int, float]]:
        """The turns of one thread, each with the moment at which it is due: with a rate that is part of a timetable,
        so that a stall counts for everything that it has delayed.
        """
        task, threads = self._task, self._task.threads
        turn = number
        while not self._is_over and self._report.failed < ERRORS_MAX:
            if task.count is not None and turn * many >= task.count:
                return
            due = time.monotonic()
            if task.rate is not None:
                due = self._began + turn * many / task.rate
                while (left := due - time.monotonic()) > 0:
                    if self._stop.wait(min(left, TELL_S)) or self._is_over:
                        return
            yield turn, due
            turn += threads

    def _stamped(self, body: bytes, due: float) -> bytes:
        stamp = self._task.stamp
        return STAMP.pack(stamp, int(due * 1e9)) + body[STAMP.size :] if stamp else body

    def _failed(self, error: Exception | None, count: int) -> None:
        report = self._report
        text = explain(error) if error is not None else "?"
        if text not in report.errors and len(report.errors) >= ERROR_KINDS_MAX:
            text = "others"
        report.errors[text] = report.errors.get(text, 0) + count
        if isinstance(error, RemoteError) and error.response_code == ResponseCode.SYSTEM_BUSY:
            report.busy += count

    # ---- reading -------------------------------------------------------------------------------------------

    def consume(self) -> None:
        task, report = self._task, self._report
        with self._reader("first") as consumer:
            if not self._ready():
                return
            empty = 0
            while not self._is_over and (task.count is None or report.messages < task.count):
                left = (
                    POLL_MESSAGES if task.count is None else min(POLL_MESSAGES, task.count - report.messages)
                )
                began = time.monotonic()
                messages = consumer.poll(POLL_MS, left)
                report.latencies.add(int((time.monotonic() - began) * 1_000_000))
                report.messages += len(messages)
                report.size_bytes += sum([len(message.body) for message in messages])
                empty = 0 if messages else empty + 1
                if empty == EMPTY_POLLS_MAX:
                    return

    def receive(self) -> None:
        """Read what the others of this run send, and take the time from when it was due."""
        task, report = self._task, self._report
        with self._reader("last") as consumer:
            if not self._ready():
                return
            while not self._is_over and (task.count is None or report.messages < task.count):
                messages = consumer.poll(POLL_MS, POLL_MESSAGES)
                now_ns = time.monotonic_ns()
                for message in messages:
                    body = message.body
                    if len(body) < STAMP.size:
                        continue
                    stamp, due_ns = STAMP.unpack_from(body)
                    if stamp == task.stamp:
                        report.messages += 1
                        report.size_bytes += len(body)
                        report.latencies.add((now_ns - due_ns) // 1000)

    def _reader(self, place: str) -> "_Reader":
        return _Reader(self._task, place)


class _Reader:
    """A consumer of some queues, from one end of them on; it leaves no trace."""

    def __init__(self, task: Task, place: str) -> None:
        self._queues, self._place = task.queues, place
        self._consumer = LitePullConsumer(
            task.nameserver, group=TOOLS_GROUP, auto_commit=False, **task.access
        )

    def __enter__(self) -> LitePullConsumer:
        self._consumer.assign(self._queues)
        self._consumer.start()
        for queue in self._queues:
            self._consumer.seek(queue, self._place)
        return self._consumer

    def __exit__(self, *error: object) -> None:
        self._consumer.close()
