"""What a pull is told beside its messages: where to go on, and which broker of the name to ask next.

There is no replication here, so there is no other broker to ask unless somebody runs one of the original's beside this
one; a client that is told of a broker that is not there goes on here.
"""

from bolide.broker.state import BrokerState
from bolide.model.topic import GroupConfig
from bolide.store.reading import PullResult, PullStatus

MASTER_ID = 0


def next_offset(state: BrokerState, result: PullResult) -> int:
    """Where to go on.  Up to 4.9.3 the original sent who was beyond the end of a young queue to its beginning."""
    is_young = result.status is PullStatus.OFFSET_OVERFLOW_BADLY and result.offset_min == 0
    return 0 if is_young and state.settings.now.overflow_to_first else result.next_offset


def broker_id(state: BrokerState, group: str, topic: str, queue_id: int, result: PullResult) -> int:
    """Which broker to ask next: another one for who reads what is no longer in memory, if it is so wished."""
    if not state.settings.now.slave_read:
        return MASTER_ID
    config = state.groups.get(group) or GroupConfig(group)
    if result.status is PullStatus.FOUND:
        behind = state.store.reader.bytes_behind(topic, queue_id, result.next_offset - 1)
        if behind > state.recent_bytes:
            return config.which_broker_when_consume_slowly
    return config.broker_id
