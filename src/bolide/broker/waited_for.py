"""WaitedFor: topics for which delayed and timed messages may wait.

Deleting a topic takes along what waits for it, and the place in the log that says so (`store/deletions.py`) takes room
for as long as the log has it.  A topic without messages, for which none waits, leaves nothing to say.

What is stored from the start on is known by its topic.  What was there before is not: as long as any of that waits, it
may wait for whatever topic.
"""

from collections.abc import Iterable
from typing import Final

from bolide.model.limits import TOPICS_MAX
from bolide.model.message import Property
from bolide.model.names import SCHEDULE_TOPIC, TIMER_TOPIC
from bolide.store.new_message import NewMessage

NAMES_MAX: Final = 2 * int(TOPICS_MAX)
"""More can only come of topics that no table has."""


class WaitedFor:
    def __init__(self, log_end: int) -> None:
        self._known_from = log_end  # in the log
        self._topics: set[str] = set()
        self._too_many = False

    def note(self, topic: str) -> None:
        """A message may be stored that waits for this topic."""
        if topic not in self._topics and len(self._topics) >= NAMES_MAX:
            self._too_many = True
        else:
            self._topics.add(topic)

    def stored(self, messages: Iterable[NewMessage]) -> None:
        """Note those of these messages that wait."""
        for message in messages:
            if message.topic in (SCHEDULE_TOPIC, TIMER_TOPIC):
                self.note(message.pairs().get(Property.REAL_TOPIC, ""))

    def forget(self, topic: str) -> None:
        """The topic is deleted, and what waits for it is known by that."""
        self._topics.discard(topic)

    def has(self, topic: str, oldest: int | None) -> bool:
        """Whether a message may wait for the topic, when the oldest that waits at all is in this place of the log."""
        if oldest is None:
            return False
        return oldest < self._known_from or self._too_many or topic in self._topics
