"""A message that waits in the log for its time, the one that it becomes then, and how that is stored."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from bolide.broker.door import Door
from bolide.model import names
from bolide.model.clock import Clock
from bolide.model.errors import BolideError, MalformedRecord, RecordTooLarge
from bolide.model.message import Property
from bolide.model.numbers import is_int32, parse_count
from bolide.net.provoked import Provoked
from bolide.store.deletions import Deletions
from bolide.store.new_message import NewMessage

log = logging.getLogger(__name__)


class Undeliverable(BolideError):
    """It cannot go where it says."""


class Due(Protocol):
    @property
    def message(self) -> NewMessage | None:
        """As it goes to its own queue; None for one that does not."""


T = TypeVar("T", bound=Due)


class GoneTopics:
    """Tells which messages have waited for a topic that was deleted meanwhile.

    Deleting a topic takes its messages along, and those that wait are its messages.  What decides is the deletion and
    not the table of topics: one of that name that was made since has none of them, and a table that was lost is no
    reason to lose messages.
    """

    def __init__(self, deletions: Deletions, clock: Clock) -> None:
        self._deletions = deletions
        self._provoked = Provoked(clock)

    def had(self, topic: str, log_offset: int) -> bool:
        """Whether the message that waits there goes with its topic; the log says so then."""
        if self._deletions.place_of(topic) <= log_offset:
            return False
        text = "messages of %.255s that waited are dropped: their topic was deleted meanwhile"
        self._provoked.say(log, logging.WARNING, topic, text, topic)
        return True


def append_due(
    door: Door,
    due: Sequence[T],
    done: Callable[[Sequence[T], int | None], None],
    pass_over: Callable[[T, Exception], None],
) -> None:
    """Store what is due, all at once; one by one if it does not go so, and pass over what never goes.

    `done` is told of those that are dealt with, and of the log's end behind what was stored for them, None if nothing
    was.  Of what it has not been told when an error comes out of here nothing is stored.
    """
    messages = [one.message for one in due if one.message is not None]
    end: int | None = None
    try:
        if messages:
            end = int(door.append(messages)[-1].end)
    except (RecordTooLarge, ValueError) as error:  # of one of them, or of all together
        if len(due) > 1:
            for one in due:
                append_due(door, [one], done, pass_over)
            return
        pass_over(due[0], error)
    done(due, end)


def delivered(record: bytes) -> NewMessage:
    """What a record of the schedule topic becomes when it is due: the same message in its own topic, and the queue that
    its sender meant; whoever stores it asks the table of topics whether there is such a queue still.

    Its properties stay as they are, as in the original: DELAY, REAL_TOPIC and REAL_QID among them.  So whoever stores
    it must not ask the diversions again.
    """
    try:
        waiting = NewMessage.of_record(record)
    except (MalformedRecord, UnicodeDecodeError) as error:
        raise Undeliverable(f"it is no message: {error}") from error
    topic, queue_id = own_queue(waiting.pairs())
    return waiting._replace(topic=topic, queue_id=queue_id, prepared_offset=0)


def own_queue(properties: Mapping[str, str]) -> tuple[str, int]:
    """Topic and queue that the sender of a waiting message meant (`diversions.set_aside` writes them)."""
    topic = properties.get(Property.REAL_TOPIC, "")
    queue_id = parse_count(properties.get(Property.REAL_QUEUE_ID, ""))
    try:
        names.check_topic(topic)
    except BolideError as error:
        raise Undeliverable(f"its own topic is not known: {error}") from error
    if topic in names.NO_SEND_TOPICS:  # a half message with a delay level, in the original's store
        raise Undeliverable(f"its own topic is {topic}, which takes no messages")
    if not is_int32(queue_id):
        raise Undeliverable("its own queue is not known")
    return topic, queue_id
