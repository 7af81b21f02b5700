"""Failed messages on their way back, by either way (`rules/retry.py`): what is written into them, and where they go.

A message that comes again keeps its body, its tags and keys, and where and when it was born.  Beside what the original
writes into it, it keeps the history of its attempts (`rules/attempts.py`), which gives way when there is no room.  So
do its own properties, in the last resort (`rules/left_out.py`): it is refused for no length of them.
"""

from dataclasses import replace

from bolide.broker.diversions import aside_bytes
from bolide.broker.property_room import room_in, with_room
from bolide.broker.state import BrokerState
from bolide.model import names
from bolide.model.addresses import host_of
from bolide.model.errors import GroupNotFound, InvalidRequest
from bolide.model.limits import PROPERTIES_ROOM_BYTES
from bolide.model.message import TRANSACTION_MASK, Property
from bolide.model.numbers import INT32_MAX, parse_count
from bolide.model.pairs import join_properties, parse_properties
from bolide.model.properties import NOT_STORED
from bolide.model.topic import GroupConfig, TopicConfig
from bolide.net.link import Link
from bolide.rules import attempts, retry
from bolide.rules.timed import ASKING
from bolide.rules.topic_creation import topic_for_dead_letters
from bolide.wire.headers.send import SendRequest

NO_DELAY = "0"

OVER = (*ASKING, Property.TRANSACTION_PREPARED)
"""What made a message wait before it came to its consumer: it says nothing of how long it waits now."""

KEY_AND_WAIT_BYTES = 64
"""What a send may write into properties beside what the broker says of itself, at most."""


def group_for(state: BrokerState, link: Link, name: str) -> GroupConfig:
    """The group, made on demand; for a name that cannot be one the original says that there is no such group."""
    try:
        auto_create = state.settings.now.auto_create_group
        return state.groups.find(name, auto_create=auto_create, host=host_of(link.remote))
    except InvalidRequest as error:
        raise GroupNotFound(str(error)) from None


def dead_letters_of(state: BrokerState, group: str) -> TopicConfig:
    """Where dead letters of the group go; perhaps still to be created."""
    made = topic_for_dead_letters(group)
    return state.topics.get(made.name) or made


def history_with(
    state: BrokerState, link: Link, history: str | None, level: int | None, others: bytes
) -> str | None:
    """The history of a message that has failed once more, if there is room for one beside its other properties.

    What the broker writes behind it: its region, the queue that the message waits for, a checksum.
    """
    entry = attempts.attempt(state.clock.now_ms(), link.remote, level)
    return attempts.with_attempt(history, entry, room_in(others, PROPERTIES_ROOM_BYTES))


def sent_to_retry(
    state: BrokerState, link: Link, header: SendRequest, topic: TopicConfig, client_version: int
) -> tuple[SendRequest, TopicConfig]:
    """A message that comes by itself to a retry topic, and its topic: as it is, or as a dead letter."""
    group = group_for(state, link, topic.name.removeprefix(names.RETRY_PREFIX))
    pairs = parse_properties(header.properties)
    is_dead = retry.is_dead_on_arrival(
        header.reconsume_times,
        retry.times_max(group, header.max_reconsume_times, client_version),
        is_ordered=retry.is_retry(header.reconsume_times, header.max_reconsume_times)
        and state.locks.is_any_held(group.name, state.clock.monotonic_ms()),
    )
    if header.reconsume_times > 0:  # it was consumed; old clients leave in it that it was a half message
        pairs = {name: text for name, text in pairs.items() if name not in OVER}
        header = replace(header, sys_flag=header.sys_flag & ~TRANSACTION_MASK)
    elif not is_dead:  # somebody's first message to this topic
        return header, topic
    if is_dead:
        topic, level = dead_letters_of(state, group.name), None
        header = replace(header, topic=topic.name, queue_id=0)
        pairs[Property.DELAY] = NO_DELAY
    else:
        level = _level(pairs)
    history = pairs.pop(Property.ATTEMPTS, None)
    pairs = _stored_with_room(state, pairs, topic.name if level else None)
    history = history_with(state, link, history, level, join_properties(pairs).encode())
    if history is not None:
        pairs[Property.ATTEMPTS] = history
    return replace(header, properties=join_properties(pairs)), topic


def _stored_with_room(state: BrokerState, pairs: dict[str, str], waits_for: str | None) -> dict[str, str]:
    """The same, or without those that have no room beside what is written when they are stored, and set aside."""
    rewritten, left = NOT_STORED, len(state.identity.properties_suffix) + KEY_AND_WAIT_BYTES
    if waits_for is not None:
        rewritten = (*rewritten, Property.REAL_TOPIC, Property.REAL_QUEUE_ID)
        left += aside_bytes(waits_for, INT32_MAX)
    own = join_properties({name: text for name, text in pairs.items() if name not in rewritten})
    properties, left_out = with_room(own.encode(), left)
    if not left_out:
        return pairs
    shorter = parse_properties(properties.decode())
    return shorter | {Property.WAIT: pairs[Property.WAIT]} if Property.WAIT in pairs else shorter


def _level(pairs: dict[str, str]) -> int:
    return parse_count(pairs.get(Property.DELAY, NO_DELAY)) or 0
