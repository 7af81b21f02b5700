"""Redrive: the dead letters of a plan are sent once more, each as a new message of the topic that it was of.

They are written as a part of a stream's batch is (`account.py`), under the name of the plan: a broker of ours that has
a letter already, from a run that was killed, is not given it again.  Needs no Spark.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa

from bolide.admin.queues import Place, messages_from, queues_of
from bolide.arrow.frames import Frame
from bolide.model.errors import MalformedRecord, NoBroker, RouteNotFound
from bolide.model.limits import SPARK_WRITE_TOPICS_MAX
from bolide.model.message import Property
from bolide.model.names import dead_letter_topic
from bolide.model.offsets import MessageQueue
from bolide.net.clock import SystemClock
from bolide.pipeline.access import ClusterAccess
from bolide.pipeline.account import Scope
from bolide.pipeline.dead_letters.plan import KnownBy, Letter, Plan
from bolide.pipeline.dead_letters.record import Record
from bolide.pipeline.pace import Pace
from bolide.pipeline.refused import refused
from bolide.pipeline.write_options import WriteOptions
from bolide.pipeline.write_task import write_batches
from bolide.record.stored import StoredMessage

GROUP = "bolide-redrive"
"""The group of producers in whose name letters are sent."""

REDRIVE_ID = "REDRIVE_ID"
"""The property that names the plan."""

REDRIVE_OF = "REDRIVE_OF"
"""The message id of the dead letter."""

REDRIVE_FROM = "REDRIVE_FROM"
"""Its place: broker, queue and offset in the topic of dead letters, with blanks between them."""

REDRIVE_TIMES = "REDRIVE_TIMES"
"""How often it was redriven, this time counted too."""

BLOCK = 32
"""Letters that are read and sent together."""

TOPICS_AT_ONCE = SPARK_WRITE_TOPICS_MAX // 2
"""So many topics does one write have: well below what it takes."""

_COUNT = re.compile("[0-9]{1,9}")
_OURS = (REDRIVE_ID, REDRIVE_OF, REDRIVE_FROM, REDRIVE_TIMES)
_SCHEMA = pa.schema(
    {
        "topic": pa.string(),
        "body": pa.binary(),
        "tags": pa.string(),
        "keys": pa.list_(pa.string()),
        "properties": pa.map_(pa.string(), pa.string()),
    }
)

T = TypeVar("T")


@dataclass
class Outcome:
    """What became of the letters of a plan."""

    letters: int
    sent_before: int
    """Those that the record had."""
    sent: int = 0
    topics: Counter[str] = field(default_factory=Counter)
    """Where letters go, or went."""
    missing: list[tuple[Letter, str]] = field(default_factory=list)
    """Letters that cannot be sent, each with the reason."""


def look(plan: Plan, cluster: ClusterAccess, to: str | None, sent: set[KnownBy]) -> Outcome:
    """What a redrive would do."""
    outcome = _outcome(plan, sent)
    with _Reading(plan, cluster) as reading:
        for block in reading.blocks(_left(plan, sent), outcome):
            _sort_out(plan, block, to, outcome)
    return outcome


def redrive(
    plan: Plan,
    cluster: ClusterAccess,
    record: Record,
    *,
    to: str | None = None,
    rate: int | None = None,
    now: Callable[[], str],
    progress: Callable[[int], None] = lambda sent: None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Send what the record does not have; `now` is the moment as the record tells it."""
    outcome = _outcome(plan, record.sent)
    given: dict[str, Letter] = {}

    def receipts(frame: Frame, queue: MessageQueue, first: int) -> None:
        for number, properties in enumerate(frame.properties()):
            letter = given.pop(properties[REDRIVE_FROM])
            stored = {"broker": queue.broker_name, "queue": queue.queue_id, "offset": first + number}
            new_id = properties.get(Property.UNIQUE_KEY)
            record.add(letter, {"to": queue.topic, "at": now(), "new_id": new_id, "stored": stored})
        outcome.sent = record.added
        progress(record.added)

    def batches(letters: Sequence[Letter]) -> Iterator[pa.RecordBatch]:
        for block in reading.blocks(letters, outcome):
            if is_stopped():
                return
            rows = _sort_out(plan, block, to, outcome)
            given.update({_from(letter): letter for letter, _, _ in rows})
            if rows:
                yield _batch(plan, rows)

    with _Reading(plan, cluster) as reading:
        options = WriteOptions(cluster, group=GROUP, rate=rate)
        scope, pace = Scope(f"redrive-{plan.id}-{plan.secret}", 0, 0), Pace(rate, SystemClock())
        for letters in _by_topics(_left(plan, record.sent), to):
            if is_stopped():
                break
            write_batches(options, scope, batches(letters), receipts, pace)
            for letter in given.values():  # the broker had them, and nobody had heard of it
                record.add(letter, {"to": to or letter.to, "at": now(), "new_id": None, "stored": None})
            given.clear()
    outcome.sent = record.added
    return outcome


def _outcome(plan: Plan, sent: set[KnownBy]) -> Outcome:
    return Outcome(len(plan.letters), sum(letter.known_by in sent for letter in plan.letters))


def _left(plan: Plan, sent: set[KnownBy]) -> list[Letter]:
    return [letter for letter in plan.letters if letter.known_by not in sent]


def _by_topics(letters: Sequence[Letter], to: str | None) -> Iterator[Sequence[Letter]]:
    """In parts that go to few topics each, and keep their order: a write has a buffer for every topic."""
    if to is not None:
        yield letters
        return
    topics = sorted({letter.to for letter in letters})
    for at in range(0, len(topics), TOPICS_AT_ONCE):
        part = set(topics[at : at + TOPICS_AT_ONCE])
        yield [letter for letter in letters if letter.to in part]


Row = tuple[Letter, StoredMessage, str]


def _sort_out(
    plan: Plan, block: Sequence[tuple[Letter, StoredMessage]], to: str | None, outcome: Outcome
) -> list[Row]:
    """Those that can be sent, with where they go."""
    rows: list[Row] = []
    for letter, message in block:
        topic = to or letter.to
        if not topic:
            outcome.missing.append(
                (letter, "nobody knows which topic it was of: write one into the plan, as its `to`")
            )
        elif message.body_error is not None:
            outcome.missing.append((letter, f"its body does not unpack: {message.body_error}"))
        elif not message.body:
            outcome.missing.append((letter, "it has no body, and a message must have one"))
        elif why := refused(_batch(plan, [(letter, message, topic)])):
            outcome.missing.append((letter, why[0]))
        else:
            outcome.topics[topic] += 1
            rows.append((letter, message, topic))
    return rows


def _batch(plan: Plan, rows: Sequence[Row]) -> pa.RecordBatch:
    columns: dict[str, list[Any]] = {name: [] for name in _SCHEMA.names}
    for letter, message, topic in rows:
        columns["topic"].append(topic)
        columns["body"].append(message.body)
        columns["tags"].append(message.tags)
        columns["keys"].append(list(message.keys))
        columns["properties"].append(list(_properties(plan, letter, message).items()))
    return pa.record_batch(columns, schema=_SCHEMA)


def _properties(plan: Plan, letter: Letter, message: StoredMessage) -> Mapping[str, str]:
    """Those of the application; what brokers and clients write themselves the write leaves out."""
    kept = {name: value for name, value in message.properties.items() if name not in _OURS}
    times = message.properties.get(REDRIVE_TIMES, "0")
    return {
        **kept,
        REDRIVE_ID: plan.id,
        REDRIVE_OF: letter.id,
        REDRIVE_FROM: _from(letter),
        REDRIVE_TIMES: str(int(times) + 1 if _COUNT.fullmatch(times) else 1),
    }


def _from(letter: Letter) -> str:
    return f"{letter.broker} {letter.queue} {letter.offset}"


class _Reading:
    """Letters of a plan from their brokers, with a loop of its own: whoever sends them has another."""

    def __init__(self, plan: Plan, cluster: ClusterAccess) -> None:
        self._topic = dead_letter_topic(plan.group)
        self._runner = asyncio.Runner()
        self._servers = cluster.admin()
        self._places: dict[tuple[str, int], Place] = {}

    def __enter__(self) -> "_Reading":
        try:
            self._run(self._find_places())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._run(self._servers.close())
        self._runner.close()

    def blocks(
        self, letters: Sequence[Letter], outcome: Outcome
    ) -> Iterator[list[tuple[Letter, StoredMessage]]]:
        """Sorted letters, those near to each other together; what is not there any more is said in the outcome."""
        at = 0
        while at < len(letters):
            first = letters[at]
            end = at + 1
            while (
                end < len(letters)
                and letters[end].place[:2] == first.place[:2]
                and letters[end].offset < first.offset + BLOCK
            ):
                end += 1
            yield self._run(self._read(letters[at:end], outcome))
            at = end

    async def _find_places(self) -> None:
        try:
            queues = await queues_of(self._servers, self._topic)
        except NoBroker:
            raise  # the letters are where they were
        except RouteNotFound:
            return  # every letter is missing then
        self._places = {(one.place.queue.broker_name, one.place.queue.queue_id): one.place for one in queues}

    async def _read(self, letters: Sequence[Letter], outcome: Outcome) -> list[tuple[Letter, StoredMessage]]:
        place = self._places.get(letters[0].place[:2])
        if place is None:
            why = f"its queue is not there: the broker {letters[0].broker} is not up, or has it no more"
            outcome.missing += [(letter, why) for letter in letters]
            return []
        first, last = letters[0].offset, letters[-1].offset
        try:
            there = await self._stored(place, first, last - first + 1)
        except MalformedRecord as error:
            if len(letters) == 1:
                outcome.missing.append((letters[0], f"it is damaged in the broker's store: {error}"))
                return []
            # Each alone: a damaged one, which need not be of the plan, makes a whole answer unreadable.
            return [pair for letter in letters for pair in await self._read([letter], outcome)]
        packed = [at for at, message in there.items() if message.body_error is not None]
        for at in packed:  # each alone: bodies of one answer share the room to unpack in
            there |= await self._stored(place, at, 1)
        found: list[tuple[Letter, StoredMessage]] = []
        for letter in letters:
            message = there.get(letter.offset)
            if message is None:
                outcome.missing.append((letter, "it is not there any more: it has expired"))
            elif message.message_id != letter.id:
                outcome.missing.append(
                    (letter, f"{message.message_id} is in its place: the topic was made anew")
                )
            else:
                found.append((letter, message))
        return found

    async def _stored(self, place: Place, first: int, count: int) -> dict[int, StoredMessage]:
        messages = await messages_from(self._servers, place, first, count)
        return {int(message.queue_offset): message for message in messages}

    def _run(self, work: Any) -> Any:
        return self._runner.get_loop().run_until_complete(work)
