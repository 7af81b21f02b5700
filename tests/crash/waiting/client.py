"""Client: the producers and the consumer of one life, and what each answer makes the broker promise.

It runs in virtual time against a broker on a simulated machine (`host.py`), and in real time against a process that is
killed (`tests/fault/waiting_kills.py`).

Each request goes out once.  One without an answer may have been served or not; nobody repeats it, so whatever is there
twice in the end was doubled by the broker.
"""

import random
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from bolide.model import names
from bolide.model.clock import Clock
from bolide.model.errors import BolideError
from bolide.net.caller import Caller
from bolide.net.link import Link
from bolide.record.decode import decode_messages
from bolide.record.message_id import parse_offset_id
from bolide.record.stored import StoredMessage
from bolide.wire.bodies.group import HeartbeatData
from bolide.wire.command import Command
from bolide.wire.headers.retry import SendBack
from bolide.wire.headers.send import RecallRequest
from bolide.wire.headers.transaction import CheckTransaction, EndTransaction, Verdict
from tests.crash.waiting.promises import NOT_YET_MS, Fate, Moment, Place, Promise, Promises
from tests.unit.broker.stage import properties_of, send_request

TOPIC, FAILING = "T", "F"
MAKERS, WORKERS = "makers", "workers"
RETRY_TOPIC, DEAD_TOPIC = names.retry_topic(WORKERS), names.DEAD_LETTER_PREFIX + WORKERS
QUEUES = 2
RETRIES = 3
"""Then a failed message is dead."""

BODY_BYTES = (1, 10, 300, 1500)
CALL_MS = 20_000
HEARTBEAT_S = 30.0
VERSION = 479

VERDICTS = (Verdict.COMMIT, Verdict.ROLLBACK, Verdict.UNKNOWN)


class Hands(Protocol):
    """Where the client lives."""

    @property
    def clock(self) -> Clock: ...

    @property
    def now(self) -> float:
        """Seconds since some moment."""

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something; an error in it is a finding."""

    async def sleep(self, seconds: float) -> None: ...


class Server(Protocol):
    """A broker, now this process and now that one."""

    @property
    def address(self) -> str: ...

    @property
    def is_ready(self) -> bool: ...

    @property
    def now(self) -> Moment: ...

    def is_heard(self) -> bool:
        """Whether an answer that comes now binds it: nobody has seen one of a machine without power."""

    def log_end(self) -> int:
        """Behind what has just been answered; 0 where that cannot be lost."""

    def stored_ms(self, log_offset: int) -> int | None:
        """When the record there was stored, if that can be told."""

    def seen(self, topic: str, queue_id: int) -> Sequence[StoredMessage]:
        """What consumers see of a queue now."""


@dataclass(frozen=True)
class Pace:
    """How long things wait."""

    levels_ms: Sequence[int] = (1_000, 2_000, 3_000, 5_000, 8_000)
    timed_ms: Sequence[int] = (10, 900, 2_500, 6_000, 30_000, 70_000)
    together_ms: Sequence[int] = (20_000, 40_000)
    undecided_s: Sequence[float] = (0, 0.1, 2, 10)

    @property
    def levels_setting(self) -> str:
        return " ".join(f"{ms // 1000}s" for ms in self.levels_ms)


class Client:
    def __init__(
        self, hands: Hands, server: Server, promises: Promises, rng: random.Random, pace: Pace
    ) -> None:
        self._hands = hands
        self._server = server
        self._promises = promises
        self._rng = rng
        self._pace = pace
        self._number = 0
        self._together_ms = 0
        self._caller: Caller
        self._beaten = 0.0
        self._handles: dict[Place, tuple[str, Promise]] = {}
        self._verdicts: dict[str, Verdict] = {}
        self._begun: dict[str, tuple[Promise, int]] = {}  # by key: what a commit promises, and its delay
        self._sent_back: set[Place] = set()
        self.acts: dict[str, Callable[[], None]] = {
            "plain": self.send,
            "delayed": self.send_delayed,
            "timed": self.send_timed,
            "burst": self.send_burst,
            "together": self.send_together,
            "recall": self.recall,
            "half": self.send_half,
            "failing": self.send_failing,
        }

    # ---- the connection ------------------------------------------------------------------------------------

    def connect(self) -> None:
        """To a broker that has just come up; what the one before might still say is not heard."""
        self._caller = Caller(self._hands.clock, on_request=self._on_request)
        self._beaten = -HEARTBEAT_S
        self.beat()

    def beat(self) -> None:
        """So that it is known and may be asked."""
        if self._hands.now - self._beaten >= HEARTBEAT_S:
            self._beaten = self._hands.now
            self._hands.begin(self._beat())

    async def _beat(self) -> None:
        beat = HeartbeatData("maker", (MAKERS,)).encode()
        await self._ask(Command(34, {}, beat))

    async def _ask(self, request: Command) -> Command | None:
        """None when nothing is heard of it while the broker lives."""
        caller = self._caller
        try:
            answer = await caller.call(self._server.address, request, CALL_MS)
        except BolideError:
            return None
        return answer if caller is self._caller and self._server.is_heard() else None

    async def _tell(self, request: Command) -> None:
        """As producers say how a transaction has ended: nobody answers."""
        with suppress(BolideError):
            await self._caller.notify(self._server.address, request)

    def _on_request(self, link: Link, request: Command) -> None:
        """39: how a transaction has ended."""
        header = CheckTransaction.decode(request.fields)
        (message,) = decode_messages(request.body, "broker")
        key = message.properties["UNIQ_KEY"]
        if (verdict := self._verdicts.get(key)) is not None:
            end = self._end(key, header.commit_log_offset, header.tran_state_table_offset, verdict)
            link.notify(end)

    # ---- sending -------------------------------------------------------------------------------------------

    def send(self) -> None:
        self._begin_send("plain", TOPIC, {})

    def send_failing(self) -> None:
        self._begin_send("failing", FAILING, {})

    def send_delayed(self) -> None:
        level = self._rng.randint(1, len(self._pace.levels_ms))
        self._begin_send("delayed", TOPIC, {"DELAY": str(level)}, self._pace.levels_ms[level - 1])

    def send_timed(self) -> None:
        delay_ms = self._rng.choice(self._pace.timed_ms) + self._rng.randrange(1000)
        name = self._rng.choice(("TIMER_DELIVER_MS", "TIMER_DELAY_MS", "TIMER_DELAY_SEC"))
        if name == "TIMER_DELIVER_MS":
            due_ms = self._server.now.wall_ms + delay_ms
            self._begin_send("timed", TOPIC, {name: str(due_ms)}, due_ms=due_ms)
        elif name == "TIMER_DELAY_MS":
            self._begin_send("timed", TOPIC, {name: str(delay_ms)}, delay_ms)
        else:
            seconds = 1 + delay_ms // 1000
            self._begin_send("timed", TOPIC, {name: str(seconds)}, seconds * 1000)

    def send_burst(self) -> None:
        """Several for one second, which is soon."""
        second_ms = self._server.now.wall_ms // 1000 * 1000 + self._rng.choice((1000, 2000, 3000))
        for _ in range(self._rng.randint(2, 6)):
            due_ms = second_ms + self._rng.randint(1, 1000)
            self._begin_send("timed", TOPIC, {"TIMER_DELIVER_MS": str(due_ms)}, due_ms=due_ms)

    def send_together(self) -> None:
        """One more for a moment that others wait for, or will: it is some time ahead."""
        now_ms = self._server.now.wall_ms
        ahead_ms = self._rng.choice(self._pace.together_ms)
        if not now_ms + 1000 < self._together_ms < now_ms + 2 * ahead_ms:
            self._together_ms = (now_ms + ahead_ms) // 1000 * 1000
        due_ms = self._together_ms + self._rng.randint(1, 500)
        self._begin_send("timed", TOPIC, {"TIMER_DELIVER_MS": str(due_ms)}, due_ms=due_ms)

    def _begin_send(
        self, what: str, topic: str, pairs: dict[str, str], delay_ms: int = 0, *, due_ms: int | None = None
    ) -> None:
        place = Place(topic, self._next_key())
        promise = self._promises.expect(place, what, Fate.PERHAPS, due_ms or 0)
        if due_ms is None:
            promise.wait(self._server.now, delay_ms)
        self._hands.begin(self._send(place, promise, pairs))

    async def _send(self, place: Place, promise: Promise, pairs: dict[str, str]) -> None:
        answer = await self._ask(self._message(place.topic, place.key, pairs))
        if answer is None or answer.code != 0:
            return
        log_offset = parse_offset_id(answer.fields["msgId"])[1]
        promise.fate, promise.log_end = Fate.ONCE, log_offset + 1
        promise.heard(self._server.now)
        stored_ms = self._server.stored_ms(log_offset)
        if promise.began is None:
            promise.not_behind_ms = promise.not_before_ms
        elif stored_ms is not None and promise.delay_ms and not self._promises.clock_is_set:
            # It is counted from the end of the millisecond in which it was stored.
            promise.not_before_ms = stored_ms + promise.delay_ms + 1
        if (handle := answer.fields.get("recallHandle")) is not None:
            self._handles[place] = handle, promise

    def _message(self, topic: str, key: str, pairs: dict[str, str], sys_flag: int = 0) -> Command:
        properties = properties_of(0, **{"UNIQ_KEY": key, **pairs})
        body = self._rng.randbytes(self._rng.choice(BODY_BYTES))
        return send_request(
            body,
            topic=topic,
            queue_id=0 if topic == FAILING else self._rng.randrange(QUEUES),
            properties=properties,
            born_timestamp_ms=self._server.now.wall_ms,
            sys_flag=sys_flag,
        )

    def _next_key(self) -> str:
        self._number += 1
        return f"K{self._number}"

    # ---- recalling -----------------------------------------------------------------------------------------

    def recall(self) -> None:
        if self._handles:
            place = self._rng.choice(list(self._handles))
            self._hands.begin(self._recall(*self._handles.pop(place)))

    async def _recall(self, handle: str, promise: Promise) -> None:
        before = promise.fate
        promise.fate = Fate.PERHAPS
        answer = await self._ask(Command(370, RecallRequest(TOPIC, handle, MAKERS).encode()))
        if answer is None:
            return
        if answer.code == 0:
            promise.what = "recalled"
            promise.fate, promise.log_end = Fate.NEVER, self._server.log_end()
        else:  # too late for that
            promise.fate = before

    # ---- transactions --------------------------------------------------------------------------------------

    def send_half(self) -> None:
        key = self._next_key()
        verdict = self._verdicts[key] = self._rng.choices(VERDICTS, (3, 1, 1))[0]
        level = self._rng.choice((0, 0, 0, 1, 2))
        given_up = self._promises.expect(
            Place(names.TRANS_CHECK_MAX_TOPIC, key),
            f"half ({verdict.name})",
            Fate.PERHAPS if verdict is Verdict.UNKNOWN else Fate.NEVER,
        )
        ended = self._promises.expect(
            Place(TOPIC, key),
            f"half ({verdict.name})",
            Fate.PERHAPS if verdict is Verdict.COMMIT else Fate.NEVER,
        )
        pairs = {"TRAN_MSG": "true", "PGROUP": MAKERS}
        if level:
            pairs["DELAY"] = str(level)
            ended.not_before_ms = NOT_YET_MS
            self._begun[key] = ended, self._pace.levels_ms[level - 1]
        kept = {Verdict.COMMIT: ended, Verdict.UNKNOWN: given_up}.get(verdict)
        self._hands.begin(self._send_half(key, kept, verdict, pairs))

    async def _send_half(
        self, key: str, promise: Promise | None, verdict: Verdict, pairs: dict[str, str]
    ) -> None:
        answer = await self._ask(self._message(TOPIC, key, pairs, sys_flag=4))
        if answer is None or answer.code != 0:
            return
        log_offset = parse_offset_id(answer.fields["msgId"])[1]
        if promise is not None:
            promise.fate, promise.log_end = Fate.ONCE, log_offset + 1
        if self._rng.random() < 0.3:  # its producer forgets to say so, and is asked
            return
        await self._hands.sleep(self._rng.choice(self._pace.undecided_s))
        if self._server.is_ready and verdict is not Verdict.UNKNOWN:
            end = self._end(key, log_offset, int(answer.fields["queueOffset"]), verdict)
            await (self._tell(end) if self._rng.random() < 0.7 else self._ask(end))

    def _end(self, key: str, log_offset: int, number: int, verdict: Verdict) -> Command:
        if verdict is Verdict.COMMIT and (begun := self._begun.pop(key, None)) is not None:
            begun[0].wait(self._server.now, begun[1])
        header = EndTransaction(MAKERS, number, log_offset, int(verdict), msg_id=key, transaction_id=key)
        return Command(37, header.encode())

    # ---- failing -------------------------------------------------------------------------------------------

    def consume(self) -> None:
        """Nothing works for this consumer: whatever it sees it sends back, once."""
        for topic in (FAILING, RETRY_TOPIC):
            for message in self._server.seen(topic, 0):
                place = Place(topic, message.properties["UNIQ_KEY"], message.reconsume_times)
                if place not in self._sent_back:
                    self._sent_back.add(place)
                    self._fail(place, int(message.log_offset))

    def _fail(self, place: Place, log_offset: int) -> None:
        retries = place.retries + 1
        is_dead = place.retries >= RETRIES
        level = self._rng.choice((0, 0, 1))
        delay_ms = (
            0
            if is_dead
            else self._pace.levels_ms[min(level or 3 + place.retries, len(self._pace.levels_ms)) - 1]
        )
        promise = self._promises.expect(
            Place(DEAD_TOPIC if is_dead else RETRY_TOPIC, place.key, retries),
            "dead" if is_dead else "retried",
            Fate.PERHAPS,
        )
        promise.wait(self._server.now, delay_ms)
        header = SendBack(log_offset, WORKERS, level, max_reconsume_times=RETRIES)
        self._hands.begin(self._send_back(Command(36, header.encode(), version=VERSION), promise))

    async def _send_back(self, request: Command, promise: Promise) -> None:
        answer = await self._ask(request)
        if answer is not None and answer.code == 0:
            promise.fate, promise.log_end = Fate.ONCE, self._server.log_end()
            promise.heard(self._server.now)
