"""PlainEnds: ends of transactions that need no decision of their own, stored by compiled code, many at once.

What an end makes of a half message depends on the message's topic, if it asks for nothing but its transaction.  So the
rules of `state.diversions` and the guard are asked about the topic, once for the ends of a read, and `store/ends.py`
does the rest: it looks at the half messages, and writes the committed ones with their marks.
"""

from collections.abc import Sequence

from bolide.broker.half_messages import OP_PROPERTIES, HalfMessages
from bolide.broker.state import BrokerState
from bolide.broker.waiting_message import own_queue
from bolide.model.errors import RequestError, StoreRefusal
from bolide.model.limit import KIB
from bolide.model.message import Property, SysFlag
from bolide.net.link import Link
from bolide.store.append import QueueTail
from bolide.store.new_message import NewMessage
from bolide.wire.send_run import SendRun

END_BYTES_MAX = 16 * KIB
"""Half messages whose ends are served with others: all ends of a run are served in one turn."""

NEAR = 1024
"""Half messages whose places are read together lie so near to each other in their queue."""

_COMMITTED = int(SysFlag.COMMIT)


class PlainEnds:
    def __init__(self, state: BrokerState, halves: HalfMessages) -> None:
        self._state = state
        self._halves = halves

    def store(self, link: Link, run: SendRun, first: int, last: int) -> int:
        """End transactions of a run from this row on, as long as they are plain; the first row that is not."""
        numbers = run.half_numbers(first, last)
        numbers = numbers[: self._halves.open_in_front(numbers)]
        if not numbers:
            return first
        near = [number for number in numbers if abs(number - numbers[0]) < NEAR]
        try:
            row = self._state.door.append_ends(
                run,
                first,
                first + len(numbers),
                range(min(near), max(near) + 1),
                END_BYTES_MAX,
                lambda topic: self._tails(link, topic),
                OP_PROPERTIES,
            )
        except (RequestError, StoreRefusal):  # each by itself meets the same, and says so
            return first
        self._halves.window.finish(*numbers[: row - first])
        return row

    def _tails(self, link: Link, name: bytes) -> Sequence[QueueTail | None] | None:
        """The queues of a topic whose messages, once committed, go there at once; None when somebody has to decide."""
        state = self._state
        try:
            topic, _ = own_queue({Property.REAL_TOPIC: name.decode(), Property.REAL_QUEUE_ID: "0"})
            queues = state.topics.require(topic).queues
            host = state.identity.store_host
            example = NewMessage(topic, 0, b"0", b"", 0, _COMMITTED, 0, host)
            is_plain = state.diversions.of(example, {}, is_taken=True) is example
        except Exception:  # the general way meets the same and says so
            return None
        if not is_plain or not state.passes.may_send(link, name):
            return None
        return state.store.queues.tails(topic, queues)
