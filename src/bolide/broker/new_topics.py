"""NewTopics: topics that are made, and those that topics.json does not hold yet.

There is no topic of a name that is leaving (`broker/topic_remover.py`): whoever makes one waits, a while and not
longer, until the one before it is gone.  Requests that wait for a name are served in the order in which they came, and
until none is left whoever comes stands behind them: or a producer's later messages would be stored before its earlier
ones.

A message of such a topic is not acknowledged before the file holds it: a broker killed in between would have messages
of a topic that nobody knows.  While the file cannot be written, its sender hears that.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

from bolide.broker.table_files import TableFiles
from bolide.broker.topic_remover import TopicRemover
from bolide.model.errors import TooBusy
from bolide.model.topic import TopicConfig
from bolide.net.registry import Outcome
from bolide.net.turns import Slices
from bolide.store.tables import TopicTable
from bolide.wire.command import Command

FREE_WAIT_S = 2.0
"""Less than clients wait for an answer."""

SERVED_PER_TURN = 32

_Outcome = Outcome | Awaitable[Outcome]


class Place(NamedTuple):
    """In the line of a name."""

    topic: str
    serve: Callable[[], _Outcome] | None
    """None for who is let in, and keeps those behind it waiting until it is done."""
    outcome: "asyncio.Future[_Outcome]"
    given_up: asyncio.TimerHandle


class NewTopics:
    def __init__(self, topics: TopicTable, files: TableFiles, remover: TopicRemover) -> None:
        self._topics = topics
        self._files = files
        self._remover = remover
        self._unwritten: dict[str, asyncio.Future[None]] = {}  # done when the file holds the topic
        self._lines: dict[str, deque[Place]] = {}  # by name
        self._free: deque[str] = deque()  # names of lines that can be served
        self._serving = ""  # the name for which one of its line is served just now
        self._serving_some = Slices(self._serve_some)

    def put(self, topic: TopicConfig) -> None:
        """Create the topic or change it; `TooBusy` while one of that name is leaving."""
        is_new = topic.name not in self._topics
        if is_new and self._remover.is_leaving(topic.name):
            raise _still_leaving(topic.name)
        self._topics.put(topic)
        if is_new:
            written = self._unwritten[topic.name] = self._files.written(self._topics)
            written.add_done_callback(lambda _: self._known(topic.name, written))

    def must_wait(self, topic: str) -> bool:
        """Whether there can be no topic of that name yet, or others have waited for it who come first."""
        if self._remover.is_leaving(topic):
            return True
        return topic in self._lines and topic != self._serving

    def when_free(self, topic: str, serve: Callable[[], _Outcome]) -> Coroutine[None, None, Outcome]:
        """Serve a request that must wait for its topic's name, behind those that wait for it already."""
        return _outcome(self._line_up(topic, serve))

    def line_up(self, topics: Iterable[str]) -> list[Place]:
        """A place in the line of each of these names that must be waited for."""
        return [self._line_up(topic) for topic in dict.fromkeys(topics) if self.must_wait(topic)]

    @asynccontextmanager
    async def let_in(self, places: Sequence[Place]) -> AsyncIterator[None]:
        """Wait until all these names are free, and keep those behind waiting; `TooBusy` when that takes too long."""
        try:
            for place in places:
                await place.outcome
            yield
        finally:
            for place in places:
                place.given_up.cancel()
                if not place.outcome.done():
                    place.outcome.cancel()
                elif not place.outcome.cancelled() and place.outcome.exception() is None:
                    self._name_is_free(place.topic)

    def _line_up(self, topic: str, serve: Callable[[], _Outcome] | None = None) -> Place:
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[_Outcome] = loop.create_future()
        given_up = loop.call_later(FREE_WAIT_S, _give_up, outcome, topic)
        place = Place(topic, serve, outcome, given_up)
        line = self._lines.get(topic)
        if line is None:
            line = self._lines[topic] = deque()
            self._remover.when_gone(topic, lambda: self._name_is_free(topic))
        line.append(place)
        return place

    def _name_is_free(self, topic: str) -> None:
        self._free.append(topic)
        self._serving_some.go()

    def _serve_some(self) -> bool:
        """Of those who wait for names that are free; the others in the next turns."""
        for _ in range(SERVED_PER_TURN):
            if not self._free:
                return False
            if not self._serve_one(self._free[0]):
                self._free.popleft()
        return bool(self._free)

    def _serve_one(self, topic: str) -> bool:
        """The first one in the line of a name; whether others can be served now."""
        if self._remover.is_leaving(topic):  # it was deleted once more
            self._remover.when_gone(topic, lambda: self._name_is_free(topic))
            return False
        line = self._lines[topic]
        while line:
            place = line.popleft()
            if place.outcome.done():  # it has given up, or was cancelled
                continue
            if place.serve is None:
                place.outcome.set_result(None)
                return False
            self._serving = topic
            try:
                place.outcome.set_result(place.serve())
            except Exception as error:
                place.outcome.set_exception(error)
            self._serving = ""
            break
        if not line:
            del self._lines[topic]
        return bool(line)

    def is_unwritten(self, topic: str) -> bool:
        return topic in self._unwritten

    async def known(self) -> None:
        """Wait until the file holds all topics of this moment; `StoreUnavailable` when it cannot be written now."""
        await self._files.saved(self._topics)

    def _known(self, topic: str, written: "asyncio.Future[None]") -> None:
        """The file holds it, unless it was deleted and made again meanwhile."""
        if self._unwritten.get(topic) is written:
            del self._unwritten[topic]


async def _outcome(place: Place) -> Outcome:
    try:
        outcome = await place.outcome
    finally:
        place.given_up.cancel()
    return outcome if outcome is None or isinstance(outcome, Command) else await outcome


def _give_up(outcome: "asyncio.Future[_Outcome]", topic: str) -> None:
    if not outcome.done():
        outcome.set_exception(_still_leaving(topic))


def _still_leaving(topic: str) -> TooBusy:
    return TooBusy(f"the topic {topic} is still being deleted; try again in a moment")
