"""OddRows: messages of a run that need a decision are decided one by one, and stored and answered together.

A delayed, timed or half message is none for the compiled path, but it needs no request object of its own either: its
row has all that is stored of it.  Whatever is not an ordinary single message of a topic that has a lane, and whatever
is refused, is left to the general path, which has every error.
"""

import re
from collections.abc import Sequence

from bolide.broker.sent_message import checked_properties, sent_message
from bolide.broker.state import BrokerState
from bolide.model.errors import RequestError, StoreRefusal
from bolide.model.message import PROPERTIES_BYTES_MAX, Property
from bolide.model.names import TIMER_TOPIC
from bolide.model.recall import handle_of
from bolide.net.link import Link
from bolide.store.append import TopicLane
from bolide.store.new_message import NewMessage
from bolide.wire.codes import RequestCode
from bolide.wire.send_run import SendRun

# A key that may stand in an answer as it is.
_PLAIN_KEY = re.compile(r"[ !#-\[\]-~]+")


class OddRows:
    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def store(
        self, link: Link, run: SendRun, lanes: Sequence[TopicLane | None], first: int, count_max: int
    ) -> int:
        """Store rows from the first on, all or none; how many.  None when the general path has to see the first."""
        state = self._state
        if link.waited_ms and state.dispatcher.is_overdue(link.waited_ms, RequestCode.SEND_MESSAGE_V2):
            return 0
        decided: list[tuple[NewMessage, str]] = []
        for row in range(first, min(run.count, first + count_max)):
            try:
                one = self._decide(link, run, lanes, row, is_odd=row == first)
            except Exception:  # the general path meets the same and says so
                break
            if one is None:
                break
            decided.append(one)
        if not decided:
            return 0
        try:
            appended = state.door.append([message for message, _ in decided])
        except (RequestError, StoreRefusal):
            return 0
        for number, ((message, key), place) in enumerate(zip(decided, appended, strict=True)):
            handle = None
            if message.topic == TIMER_TOPIC:
                handle = handle_of(message.pairs(), state.identity.name)
            run.stored(first + number, number, place.log_offset, place.queue_offset, key, handle or "")
        return len(decided)

    def _decide(
        self, link: Link, run: SendRun, lanes: Sequence[TopicLane | None], row: int, *, is_odd: bool
    ) -> tuple[NewMessage, str] | None:
        """The message of a row as it is stored, and its key; None when the row is not for us.

        Of those behind one that is odd, a message that goes where it says is plain, most likely.
        """
        sent = run.sent(row)
        lane = lanes[sent.topic_number]
        if lane is None or sent.batch or not 0 <= sent.queue_id < len(lane.tails):
            return None
        if len(sent.properties) > PROPERTIES_BYTES_MAX:  # before anything is made of them
            return None
        topic, body = lane.topic.decode(), run.body(row)
        properties = checked_properties(self._state, sent, topic, body)
        key = properties.get(Property.UNIQUE_KEY)
        if key is None or _PLAIN_KEY.fullmatch(key) is None or properties.get(Property.WAIT) == "false":
            return None
        message = sent_message(self._state, link, sent, topic, sent.queue_id, body, properties)
        diverted = self._state.diversions.of(message, properties)
        return (diverted, key) if is_odd or diverted is not message else None
