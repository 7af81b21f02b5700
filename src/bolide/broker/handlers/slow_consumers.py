"""SlowConsumers: groups that read what has long left memory may be kept from reading, if the settings say so.

They cost everybody else the disk.  A group that is kept away stays away until somebody permits it again
(`consumeEnable`), as in the original.
"""

import logging
from collections.abc import Iterable
from dataclasses import replace

from bolide.broker.part import Part, Work
from bolide.broker.state import BrokerState
from bolide.model.steps import Steps
from bolide.model.topic import GroupConfig
from bolide.net.ticks import ticks
from bolide.net.trouble import goes_on
from bolide.net.turns import in_turns

log = logging.getLogger(__name__)

LOOK_S = 180.0
GROUPS_PER_STEP = 64
QUEUES_PER_STEP = 256


class SlowConsumers(Part):
    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def work(self) -> list[Work]:
        return [("slow consumers", self._watch())]

    @goes_on("looking for slow consumers")
    async def _watch(self) -> None:
        async for _ in ticks(LOOK_S):
            await in_turns(self.look())

    def look(self) -> Steps[None]:
        """One look at all groups, in steps."""
        for count, group in enumerate(list(self._state.groups)):
            if not self._state.settings.now.disable_slow_groups:
                return
            if group.consume_enable and self._state.clients.group(group.name) is not None:
                yield from self._look_at(group)
            if count % GROUPS_PER_STEP == 0:
                yield

    def _look_at(self, group: GroupConfig) -> Steps[None]:
        for count, behind in enumerate(self._behind(group.name)):
            if behind > self._state.settings.now.slow_group_bytes:
                self._keep_away(group.name, behind)
                return
            if count % QUEUES_PER_STEP == QUEUES_PER_STEP - 1:
                yield

    def _keep_away(self, name: str, behind: int) -> None:
        """As the group is now: it may have been changed or deleted since the look began."""
        group = self._state.groups.get(name)
        if group is not None:
            log.warning("the group %s is %d bytes behind and may not consume any more", name, behind)
            self._state.groups.put(replace(group, consume_enable=False))

    def _behind(self, group: str) -> Iterable[int]:
        """How many bytes of the log came after what its members pulled last, by queue."""
        state = self._state
        members = state.clients.group(group)
        for topic in () if members is None else list(members.subscriptions):
            config = state.topics.get(topic)
            for queue_id in range(0 if config is None else config.read_queues):
                offset = state.offsets.last_pull(group, topic, queue_id)
                if offset is not None:
                    yield state.store.reader.bytes_behind(topic, queue_id, offset)
