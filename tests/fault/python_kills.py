"""Kill -9 under the Python clients: a broker ended at random moments while they send and consume.

    python -m tests.fault.python_kills --count 200 --seed 7

Two senders wait for each receipt, a third one uses `send_soon`; three groups consume: a concurrent one, an orderly one
and one that polls.  One half of the kills meets the blocking clients and the other those of asyncio, each with a broker
of its own and a flush mode of its own.  In the end

- every acknowledged message has come to each group at least once, and was acknowledged in the order of its sender;
- the orderly group has seen each queue without a gap: what comes next is the next one, or one that it has seen before;
- no call has taken longer than its time, and everybody could be closed;
- no thread, task, socket or selector is left.
"""

import asyncio
import os
import random
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import bolide
import bolide.aio
from bolide import BolideError, Message, SendReceipt, StoredMessage
from bolide.client.loop_thread import shared_loop
from tests.fault import campaign as campaigns
from tests.peers import frames
from tests.peers.bolide import Bolide
from tests.peers.server import Broker, NameServer
from tests.peers.waiting import PATIENCE_SECONDS, Overdue, let_pass, wait_until

TOPIC = "endured"
QUEUES = 4
RUN_SECONDS_MAX = 0.7
ACKS_OF_A_ROUND = 30
SEND_MS = 3_000
REST_S = 0.002
"""Between two messages of a sender: the machine has two cores, and a broker that comes back needs one."""
UNACKED_MAX = 2_000

Place = tuple[int, int]
"""A queue's number, and an offset in it."""


@dataclass
class Summary(campaigns.Summary):
    redelivered: int = 0

    def __str__(self) -> str:
        return (
            f"{self.rounds} kills, {self.acknowledged} messages acknowledged, {self.failed_sends} sends failed,"
            f" {self.redelivered} deliveries of what had come before; {len(self.problems)} problems; seed {self.seed}"
        )


@dataclass
class Books:
    """What was acknowledged, and what each group has seen; written by many threads."""

    acked: dict[bytes, Place] = field(default_factory=dict)
    failed: int = 0
    seen: dict[str, set[bytes]] = field(default_factory=lambda: defaultdict(set))
    deliveries: int = 0
    problems: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _newest: dict[tuple[int, bytes], Place] = field(default_factory=dict)
    _next: dict[int, int] = field(default_factory=lambda: defaultdict(int))

    def told(self, sender: bytes, body: bytes, receipt: SendReceipt | None) -> None:
        with self._lock:
            if receipt is None:
                self.failed += 1
                return
            place = (receipt.queue.queue_id, receipt.queue_offset)
            self.acked[body] = place
            before = self._newest.get((place[0], sender), (place[0], -1))
            if place <= before:
                self.problems.append(f"{body!r} was acknowledged at {place}, behind {before}")
            self._newest[place[0], sender] = place

    def saw(self, group: str, messages: list[StoredMessage]) -> None:
        with self._lock:
            self.deliveries += len(messages)
            self.seen[group].update(message.body for message in messages)

    def saw_in_order(self, group: str, messages: list[StoredMessage]) -> None:
        with self._lock:
            for message in messages:
                if message.queue_offset > self._next[message.queue_id]:
                    self.problems.append(
                        f"disorder: {message.queue_id}/{message.queue_offset} came when"
                        f" {self._next[message.queue_id]} was next"
                    )
                self._next[message.queue_id] = message.queue_offset + 1
        self.saw(group, messages)

    def missing(self, group: str) -> list[bytes]:
        with self._lock:
            return sorted(self.acked.keys() - self.seen[group])

    def has_all(self, group: str) -> bool:
        return not self.missing(group)


class Siege:
    """One shell's clients at one broker."""

    def __init__(self, shell: ModuleType, nameserver: str) -> None:
        self.books = Books()
        self._shell = shell
        self._nameserver = nameserver
        self._over = threading.Event()
        self._all_has_come = threading.Event()
        self._threads: list[threading.Thread] = []
        self._ends = ExitStack()

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """Sending and consuming; behind it, everything that was acknowledged has been consumed."""
        with self._ends:
            do = self._ends.enter_context(calls_of(self._shell))
            producer = self._client(do, "Producer", timeout_ms=SEND_MS)
            for group, orderly, saw in (
                ("concurrent", False, self.books.saw),
                ("orderly", True, self.books.saw_in_order),
            ):
                self._client(
                    *(do, "PushConsumer", TOPIC),
                    group=group,
                    start_from="first",
                    orderly=orderly,
                    messages_max=8,
                    listener=lambda messages, group=group, saw=saw: saw(group, messages),
                )
            poller = self._client(do, "LitePullConsumer", TOPIC, group="polling", start_from="first")
            for work in (
                lambda: self._send(do, producer, b"a"),
                lambda: self._send(do, producer, b"b"),
                lambda: self._send_soon(do, producer, b"soon"),
                lambda: self._poll(do, poller),
            ):
                self._threads.append(threading.Thread(target=work, name="endurance"))
                self._threads[-1].start()
            try:
                yield
                self._until_all_has_come()
            finally:
                self._over.set()
                self._all_has_come.set()
                for thread in self._threads:
                    thread.join(PATIENCE_SECONDS)
                    if thread.is_alive():
                        self.books.problems.append("a call has not come back")

    def wait_acks(self, more: int) -> None:
        wanted = len(self.books.acked) + more
        wait_until(
            lambda: len(self.books.acked) >= wanted,
            campaigns.COME_BACK_SECONDS,
            lambda: f"{len(self.books.acked)} acknowledged, {wanted} wanted",
        )

    def _client(self, do: Callable[[Any], Any], kind: str, topic: str = "", **settings: Any) -> Any:
        client = getattr(self._shell, kind)(self._nameserver, **settings)
        if topic:
            do(client.subscribe(topic))
        do(client.start())
        self._ends.callback(lambda: do(client.close()))
        return client

    def _send(self, do: Callable[[Any], Any], producer: Any, sender: bytes) -> None:
        number = 0
        while not self._over.is_set():
            number += 1
            body = b"%s-%d" % (sender, number)
            try:
                receipt = do(producer.send(Message(TOPIC, body, sharding_key=sender.decode())))
            except BolideError:
                receipt = None
            self.books.told(sender, body, receipt)
            let_pass(REST_S)

    def _send_soon(self, do: Callable[[Any], Any], producer: Any, sender: bytes) -> None:
        room = threading.BoundedSemaphore(UNACKED_MAX)
        number = 0
        while not self._over.is_set():
            if not room.acquire(timeout=PATIENCE_SECONDS):
                self.books.problems.append("messages of send_soon have no outcome")
                return
            number += 1
            body = b"%s-%d" % (sender, number)

            def told(receipt: SendReceipt | None, error: Exception | None, body: bytes = body) -> None:
                room.release()
                self.books.told(body, body, receipt)  # to any queue, in no order

            try:
                do(producer.send_soon(Message(TOPIC, body), callback=told))
            except BolideError:
                told(None, None)
            let_pass(REST_S)
        do(producer.flush())

    def _poll(self, do: Callable[[Any], Any], poller: Any) -> None:
        while not self._all_has_come.is_set():
            self.books.saw("polling", do(poller.poll(timeout_ms=200)))

    def _until_all_has_come(self) -> None:
        self._over.set()
        for thread in self._threads[:-1]:  # the senders; then nothing more is acknowledged
            thread.join(PATIENCE_SECONDS)
        for group in ("concurrent", "orderly", "polling"):
            try:
                wait_until(partial(self.books.has_all, group), PATIENCE_SECONDS, group)
            except Overdue:
                missing = [(body, self.books.acked[body]) for body in self.books.missing(group)]
                self.books.problems.append(f"{len(missing)} messages never came to {group}: {missing[:5]}")


@contextmanager
def calls_of(shell: ModuleType) -> Iterator[Callable[[Any], Any]]:
    """How a method of a client is waited for: a blocking one has been, an awaitable one runs on a loop of its own."""
    if shell is bolide:
        yield lambda outcome: outcome
        return
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="endurance-loop")
    thread.start()
    try:
        yield lambda coroutine: asyncio.run_coroutine_threadsafe(coroutine, loop).result(PATIENCE_SECONDS)
        left = asyncio.all_tasks(loop)
        assert not left, f"tasks are left: {left}"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE_SECONDS)
        loop.close()


def holdings() -> dict[str, list[str]]:
    """What this process has: threads, tasks of the blocking clients, sockets and selectors."""
    loop = shared_loop()._loop  # first: it has a thread and descriptors of its own, and stays
    descriptors = []
    for name in os.listdir("/proc/self/fd"):
        try:
            kind = os.readlink(f"/proc/self/fd/{name}").split(":")[0]
        except FileNotFoundError:  # the one of this look
            continue
        if kind in ("socket", "anon_inode"):  # not the pipes and logs of a broker, which was started again
            descriptors.append(kind)
    return {
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "tasks": sorted(task.get_name() for task in asyncio.all_tasks(loop)),
        "descriptors": sorted(descriptors),
    }


def endure(
    shell: ModuleType,
    mode: str,
    nameserver: NameServer,
    home: Path,
    count: int,
    chance: random.Random,
    summary: Summary,
    progress: campaigns.Progress,
) -> None:
    """One broker, some kills, and what is left then."""
    settings = {**campaigns.SMALL_FILES, "flushDiskType": mode}
    broker = Broker(Bolide(), home, f"broker-{mode[:5].lower()}", [nameserver], settings)
    siege = Siege(shell, nameserver.address)
    books = siege.books
    try:
        broker.start()
        frames.set_topic(broker.address, TOPIC, QUEUES, QUEUES)
        before = holdings()
        with siege.under_way():
            for number in range(1, count + 1):
                siege.wait_acks(ACKS_OF_A_ROUND)
                let_pass(chance.uniform(0, RUN_SECONDS_MAX))
                broker.kill()
                broker.start()
                siege.wait_acks(1)
                summary.rounds += 1
                progress(f"{shell.__name__} {mode} {number}/{count}: {len(books.acked)} acknowledged")
        try:
            wait_until(lambda: holdings() == before, PATIENCE_SECONDS, "the end of everything")
        except Overdue:
            books.problems.append(f"left behind: {holdings()}, before: {before}")
        broker.stop()  # in order, so that the next one's clients hear nothing of it
    finally:
        broker.kill()
        summary.acknowledged += len(books.acked)
        summary.failed_sends += books.failed
        summary.redelivered += books.deliveries - sum(map(len, books.seen.values()))
        summary.problems += [f"{shell.__name__} {mode}: {problem}" for problem in books.problems]


def campaign(home: Path, count: int, seed: int, progress: campaigns.Progress) -> Summary:
    summary = Summary(seed)
    progress(f"seed {seed}")
    chance = random.Random(seed)
    shells = [bolide, bolide.aio]
    chance.shuffle(shells)
    nameserver = NameServer(Bolide(), home / "nameserver").start()
    try:
        shares = (count - count // 2, count // 2)
        for shell, mode, share in zip(shells, campaigns.FLUSH_MODES, shares, strict=True):
            endure(shell, mode, nameserver, home / mode, share, chance, summary, progress)
    finally:
        nameserver.stop()
    return summary


if __name__ == "__main__":
    campaigns.command(campaign, __doc__, count=200)
