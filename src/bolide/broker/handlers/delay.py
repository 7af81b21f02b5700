"""Messages with a delay level wait in a queue of the level and are delivered when they are due; 45.

The delivery is in `broker/deliveries.py`.
"""

from collections.abc import Mapping

from bolide.broker.deliveries import Deliveries
from bolide.broker.diversions import set_aside
from bolide.broker.part import Part, Work
from bolide.broker.state import BrokerState
from bolide.model.errors import MessageIllegal
from bolide.model.message import Property
from bolide.model.names import SCHEDULE_TOPIC
from bolide.model.numbers import is_int32, parse_whole
from bolide.net.link import Link
from bolide.net.registry import Handler
from bolide.rules.timed import ASKING
from bolide.rules.transactions import is_whole
from bolide.store.new_message import NewMessage
from bolide.store.tables import DelayOffsetTable
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command


class Delays(Part):
    def __init__(self, state: BrokerState) -> None:
        config = state.settings.now
        self._levels = config.delay_levels
        self.table = state.files.open(DelayOffsetTable, "delayOffset.json", config.persist_delays_ms)
        self.deliveries = Deliveries(
            state.store, state.door, state.topics, self.table, self._levels, state.clock
        )
        state.diversions.add(self.divert, holds=True)
        state.kept_from.append(self.deliveries.oldest_waiting)

    def handlers(self) -> dict[RequestCode, Handler]:
        return {RequestCode.GET_ALL_DELAY_OFFSET: self.all_delay_offsets}

    def work(self) -> list[Work]:
        return [("delayed messages", self.deliveries.run())]

    def figures(self) -> dict[str, str]:
        places = self.deliveries.places()
        return {f"scheduleMessageOffset_{level}": f"{next_},{end}" for level, (next_, end) in places.items()}

    def close(self) -> None:
        self.deliveries.close()

    def divert(
        self, message: NewMessage, properties: Mapping[str, str], *, is_taken: bool
    ) -> NewMessage | None:
        """A message with a delay level waits in the queue of its level; a level above the highest acts as the highest.

        A time of its own that it has as well does not count, as in the original.
        """
        text = properties.get(Property.DELAY)
        if text is None or not is_whole(message.sys_flag):
            return None
        asked = parse_whole(text)
        if not is_int32(asked):
            raise MessageIllegal(f"the delay level (DELAY) is {text[:64]!r}, not a whole number")
        if asked <= 0:
            return None
        level = self._levels.level(asked)
        if level != asked:
            message = message.with_pairs(**{Property.DELAY: str(level)})
        if not properties.keys().isdisjoint(ASKING):
            message = message.with_pairs(**dict.fromkeys(ASKING))
        return set_aside(message, SCHEDULE_TOPIC, level - 1)

    def all_delay_offsets(self, link: Link, request: Command) -> Command:
        """45: how far each level was delivered, for slaves and tools."""
        return request.answer(body=b"".join(self.table.answer_pieces()))
