"""Cleaning on an operator's word: 306, 316 and 329.

306 and 316 look through all queues and topics, so all who ask share a run (`net/shared_run.py`).  They ask for it when
they come, and not when they have a turn: on a busy loop each would have a run of its own by then.
"""

from collections.abc import Awaitable
from functools import partial

from bolide.broker.cleaner import Cleaner, RetentionFigures
from bolide.broker.part import Part, Work
from bolide.broker.state import BrokerState
from bolide.model import names
from bolide.model.numbers import INT64_MAX
from bolide.model.steps import Steps
from bolide.net.link import Link
from bolide.net.registry import Handler
from bolide.net.shared_run import SharedRun
from bolide.net.turns import in_turns
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command

LIGHT_QUEUE_PREFIX = "%LMQ%"
"""Queues of the original that never are in its topic table; a store that was taken over may have some."""

TOPICS_PER_TURN = 512


class Cleaning(Part):
    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self.cleaner = Cleaner(
            state.store,
            state.disk,
            state.root,
            lambda: state.settings.now,
            state.surroundings,
            state.checkpointer.checkpoint,
            kept_from=self._kept_from,
        )
        self._expired = SharedRun(self._clean_expired)
        self._unused = SharedRun(partial(self._drop_unknown, with_messages=True))

    def handlers(self) -> dict[RequestCode, Handler]:
        return {
            RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE: self.clean_expired_queues,
            RequestCode.CLEAN_UNUSED_TOPIC: self.clean_unused_topics,
            RequestCode.DELETE_EXPIRED_COMMITLOG: self.delete_expired_log,
        }

    def work(self) -> list[Work]:
        return [
            *((f"retention {number}", work) for number, work in enumerate(self.cleaner.work(), 1)),
            ("expired queues", self._expired.run()),
            ("unused topics", self._unused.run()),
        ]

    def figures(self) -> dict[str, str]:
        return retention_state(self.cleaner.figures())

    def close(self) -> None:
        self.cleaner.close()

    def _kept_from(self) -> int:
        places = (kept_from() for kept_from in self._state.kept_from)
        return min((place for place in places if place is not None), default=INT64_MAX)

    def delete_expired_log(self, link: Link, request: Command) -> Command:
        """329: delete expired segments in the next runs, at whatever hour.  Age counts as always."""
        self.cleaner.ask()
        return request.answer()

    def clean_expired_queues(self, link: Link, request: Command) -> Awaitable[Command]:
        """306: delete queue files whose messages are gone.

        The original also forgets queues that have no message left, and their next message gets offset 0 again: a group
        that had consumed them would miss it.  Here a queue keeps its number for as long as its topic lives.
        """
        return _answer_after(request, self._expired.done())

    def clean_unused_topics(self, link: Link, request: Command) -> Awaitable[Command]:
        """316: forget the queues of topics that do not exist any more."""
        return _answer_after(request, self._unused.done())

    async def _clean_expired(self) -> None:
        await self.cleaner.clean_queues()
        await self._drop_unknown(with_messages=False)

    async def _drop_unknown(self, *, with_messages: bool) -> None:
        await in_turns(self._drop_unknown_topics(with_messages=with_messages))

    def _drop_unknown_topics(self, *, with_messages: bool) -> Steps[None]:
        """One in a turn, which looks through all its queues and moves its folder; of those that are known, more."""
        for number, topic in enumerate(self.cleaner.topics(), 1):
            if self._is_unknown(topic):
                if with_messages or not self.cleaner.has_messages(topic):
                    self._state.remover.delete(topic)
                yield
            elif number % TOPICS_PER_TURN == 0:
                yield

    def _is_unknown(self, topic: str) -> bool:
        return not (
            topic in self._state.topics
            or names.is_system_topic(topic)
            or topic.startswith(LIGHT_QUEUE_PREFIX)
        )


def retention_state(figures: RetentionFigures) -> dict[str, str]:
    """What retention has left, under the names that tools know."""
    earliest_ms = figures.earliest_stored_ms
    state = {
        "earliestMessageTimeStamp": str(-1 if earliest_ms is None else earliest_ms),
        f"commitLogDiskRatio_{figures.log_folder}": f"{figures.disk_used_ratio:.4f}",
    }
    if figures.refusal is not None:
        state["putMessageRefusal"] = figures.refusal
    return state


async def _answer_after(request: Command, done: Awaitable[None]) -> Command:
    await done
    return request.answer()
