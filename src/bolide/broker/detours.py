"""Detours: where messages of a run wait that ask for it, told to compiled code as a value.

A delayed, timed or half message is a plain one but for the pair that asks for it, and what is written into it differs
only by its key and its queue.  So the rules of `state.diversions` are asked about an example, and what they make of it
is taken for all messages of the topic that ask in the same words.  What the example does not show is left to the
general path, which has every error: words that are refused, properties that lose a pair, messages that are nearly too
long.

Some rules hold until a setting or a topic changes, and their detours are kept in the lane.  Others go by the clock:
what they say holds for this millisecond.
"""

from bolide.broker.sent_message import checked_properties
from bolide.broker.state import BrokerState
from bolide.model.limits import HALF_ROOM_BYTES, PROPERTIES_ROOM_BYTES
from bolide.model.message import PROPERTIES_BYTES_MAX, TRANSACTION_MASK, Property
from bolide.model.names import SCHEDULE_TOPIC, TIMER_TOPIC
from bolide.model.pairs import NAME_END, PAIR_END
from bolide.model.recall import handle_before_key
from bolide.store.append import Detour, TopicLane
from bolide.store.entry_rules import entry_code
from bolide.store.new_message import NewMessage
from bolide.wire.send_run import SentRow

KEPT_PER_LANE = 64
EXAMPLES_MAX = 256

_HAS_GROUP = 1
_KEY = "~the key of the example~"
_KEY_PAIR = f"{Property.UNIQUE_KEY}{NAME_END}{_KEY}{PAIR_END}"
_GROUP_PAIR = f"{Property.PRODUCER_GROUP}{NAME_END}g{PAIR_END}"
_KEY_END = f"{_KEY}{PAIR_END}".encode()
_QUEUE_NAME = f"{Property.REAL_QUEUE_ID}{NAME_END}".encode()
_QUEUE_END = f"0{PAIR_END}".encode()
_BODY = b"0"


class Detours:
    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._now_ms = -1
        self._of_now: dict[tuple[TopicLane, bytes], Detour] = {}
        self._examples: dict[tuple[bytes, bytes], tuple[NewMessage, dict[str, str]]] = {}
        self._asked = 0

    def take_asked(self) -> int:
        """How many decisions were asked for since the last call."""
        asked, self._asked = self._asked, 0
        return asked

    def find(self, lane: TopicLane, asked: bytes) -> Detour | None:
        """Where messages of a lane wait that ask so (`store/asking_twin.py` has the form)."""
        self._asked += 1
        now_ms = self._state.clock.now_ms()
        if now_ms != self._now_ms:
            self._now_ms = now_ms
            self._of_now.clear()
        detour = self._of_now.get((lane, asked))
        if detour is not None:
            return detour
        try:
            detour, holds = self._decided(lane, asked)
        except Exception:  # the general path meets the same and says so
            return None
        if detour is None:
            return None
        if holds:
            if len(lane.detours) >= KEPT_PER_LANE:
                lane.detours.clear()
            lane.detours[asked] = detour
        else:
            self._of_now[lane, asked] = detour
        return detour

    def _decided(self, lane: TopicLane, asked: bytes) -> tuple[Detour | None, bool]:
        state = self._state
        example, pairs = self._example(lane.topic, asked)
        aside, holds = state.diversions.decided(example, pairs)
        if aside is example or aside.sys_flag or not aside.properties.startswith(example.properties):
            return None, False
        written, _, queue = aside.properties[len(example.properties) :].rpartition(_QUEUE_NAME)
        if queue != _QUEUE_END:
            return None, False
        key_name, key, behind = written.partition(_KEY_END)
        delay_ms, handle = -1, None
        if aside.topic == SCHEDULE_TOPIC:
            delay_ms = entry_code(aside.topic, aside.properties, 0, state.settings.now.delay_levels)
        state.waited_for.note(example.topic)  # before it is stored; the topic's lanes last no longer than it
        if aside.topic == TIMER_TOPIC:
            handle = handle_before_key(aside.pairs(), state.identity.name)
        return Detour(
            state.store.tail(aside.topic, aside.queue_id),
            key_name if key else b"",
            (behind if key else written) + _QUEUE_NAME,
            delay_ms,
            (handle or "").encode(),
            PROPERTIES_BYTES_MAX - PROPERTIES_ROOM_BYTES,
            state.settings.now.segment_bytes - HALF_ROOM_BYTES,
        ), holds

    def _example(self, topic: bytes, asked: bytes) -> tuple[NewMessage, dict[str, str]]:
        """A message that asks so, and its properties; `RequestError` when nobody may."""
        known = self._examples.get((topic, asked))
        if known is not None:
            return known
        text = f"{asked[1:].decode()}{PAIR_END}{_KEY_PAIR}{_GROUP_PAIR if asked[0] & _HAS_GROUP else ''}"
        sys_flag, host = asked[0] & TRANSACTION_MASK, self._state.identity.store_host
        sent = SentRow(0, 0, sys_flag, 0, 0, text, 0, batch=False)
        pairs = checked_properties(self._state, sent, topic.decode(), _BODY)
        example = NewMessage(topic.decode(), 0, _BODY, text.encode(), 0, sys_flag, 0, host)
        if len(self._examples) >= EXAMPLES_MAX:
            self._examples.clear()
        self._examples[topic, asked] = example, pairs
        return example, pairs
