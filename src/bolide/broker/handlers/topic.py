"""Topics: create, change, delete, describe."""

from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import replace

from bolide.broker.config_lists import judging, put_each
from bolide.broker.new_topics import Place
from bolide.broker.part import Part
from bolide.broker.state import BrokerState
from bolide.model import names
from bolide.model.addresses import host_of
from bolide.model.errors import InvalidRequest
from bolide.model.offsets import MessageQueue, QueueOffset
from bolide.model.steps import Steps
from bolide.model.topic import Permission, TopicConfig
from bolide.net.link import Link
from bolide.net.registry import Handler, Outcome, bound
from bolide.net.turns import in_turns
from bolide.wire.bodies.admin import TopicRows, decode_topic_list
from bolide.wire.bodies.route import TopicList
from bolide.wire.bodies.topic import (
    QueueBounds,
    alter_attributes,
    encode_topic_config,
    group_list_pieces,
    parse_attribute_changes,
    topic_stats_pieces,
)
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from bolide.wire.headers.topic import TopicRequest, UpdateTopic

FILTER_TYPES = ("SINGLE_TAG", "MULTI_TAG")
TOPICS_PER_TURN = 512
PERM_MAX = Permission.READ_WRITE | Permission.INHERIT

ATTRIBUTES = {
    "message.type": ("NORMAL", "FIFO", "DELAY", "TRANSACTION", "UNSPECIFIED"),
    "queue.type": ("SimpleCQ",),
    "cleanup.policy": ("DELETE",),
}
"""Attributes of a topic and the values that this broker can honour."""


def update_topic(state: BrokerState, link: Link, request: Command) -> Awaitable[Outcome]:
    """17: create or change a topic.  The answer comes when name servers know: whoever asked goes on to use it.

    Fewer queues than before delete nothing: what lies in the others stays until it expires, and comes back to view
    when the number grows again.
    """
    header = UpdateTopic.decode(request.fields)
    if state.new_topics.must_wait(header.topic):
        return state.new_topics.when_free(header.topic, lambda: update_topic(state, link, request))
    known = state.topics.get(header.topic)
    config = TopicConfig(
        header.topic,
        header.read_queues,
        header.write_queues,
        header.perm,
        header.topic_filter_type,
        header.topic_sys_flag or 0,
        header.order,
        _altered_attributes(known, header.attributes or ""),
        {} if known is None else known.extras,
    )
    _check_settings(state, config)
    state.new_topics.put(config)
    return _answer_when_registered(state, request)


def update_topics(state: BrokerState, link: Link, request: Command) -> Awaitable[Command]:
    """18: several at once.  All are looked at before the first one is made, so that a mistake makes none.

    Only a table that becomes full stops it midway, or somebody who changes or deletes one of them meanwhile.
    """
    rows = decode_topic_list(request.body)
    return _update_topics(state, request, rows, state.new_topics.line_up(rows.names))


async def _update_topics(
    state: BrokerState, request: Command, rows: TopicRows, places: Sequence[Place]
) -> Command:
    def altered(config: TopicConfig, known: TopicConfig | None) -> TopicConfig:
        state.topics.check(config)
        _check_settings(state, config)
        attributes = alter_attributes({} if known is None else known.attributes, config.attributes)
        _check_attributes(known, attributes)
        return replace(config, attributes=attributes)

    async with state.new_topics.let_in(places):
        judged = await in_turns(judging(rows, altered, state.topics.get))
        await put_each(judged, altered, state.topics.get, state.new_topics.put)
    return await _answer_when_registered(state, request)


def _check_settings(state: BrokerState, config: TopicConfig) -> None:
    _check_not_built_in(state, config.name)
    if not 0 <= config.perm <= PERM_MAX:
        raise InvalidRequest(f"the permission {config.perm} is not one of 0 to {int(PERM_MAX)}")
    if config.filter_type not in FILTER_TYPES:
        raise InvalidRequest(f"the filter type is neither {FILTER_TYPES[0]} nor {FILTER_TYPES[1]}")


def delete_topic(state: BrokerState, link: Link, request: Command) -> Awaitable[Command]:
    """215: forget the topic, its messages and everybody's progress in it.  One that is not there is no error."""
    topic = names.check_topic(TopicRequest.decode(request.fields).topic)
    _check_not_built_in(state, topic)
    if topic in state.topics:
        # First: a topic that cannot be deleted now stays as it is.
        state.remover.delete(topic, others_wait=state.may_wait_for(topic), host=host_of(link.remote))
        state.waited_for.forget(topic)
        state.topics.delete(topic)
    elif not state.remover.is_leaving(topic):
        return _answer_when_registered(state, request)
    return _answer_when_gone(state, request, topic)


def all_topics(state: BrokerState, link: Link, request: Command) -> Awaitable[Command | None]:
    """21: in one piece, also to clients that would take it in parts."""
    return state.large_answers.make(link, request, state.topics.answer_pieces)


def one_topic(state: BrokerState, link: Link, request: Command) -> Command:
    """351."""
    config = state.topics.require(TopicRequest.decode(request.fields).topic)
    return request.answer(body=encode_topic_config(config))


def topic_stats(state: BrokerState, link: Link, request: Command) -> Awaitable[Command | None]:
    """202: the bounds of every queue and when its last message came, each as it is when its turn comes."""
    config = state.topics.require(TopicRequest.decode(request.fields).topic)

    def pieces() -> Iterator[bytes]:
        return topic_stats_pieces(_queues_of(state, config), state.statistics.rate_of_topic(config.name))

    return state.large_answers.make(link, request, pieces)


async def built_in_topics(state: BrokerState, link: Link, request: Command) -> Command:
    """305."""
    return request.answer(body=TopicList(tuple(await in_turns(_built_in(state)))).encode())


def groups_of_topic(state: BrokerState, link: Link, request: Command) -> Awaitable[Command | None]:
    """300: groups that subscribe to the topic now, and groups that have consumed from it."""
    topic = TopicRequest.decode(request.fields).topic
    return state.large_answers.make(link, request, lambda: group_list_pieces(_groups_of(state, topic)))


def _built_in(state: BrokerState) -> Steps[list[str]]:
    """Their names: a few, among all topics."""
    found: list[str] = []
    for number, config in enumerate(list(state.topics), 1):
        if _is_built_in(state, config.name):
            found.append(config.name)
        if number % TOPICS_PER_TURN == 0:
            yield
    return found


def _queues_of(state: BrokerState, config: TopicConfig) -> Iterator[tuple[MessageQueue, QueueBounds]]:
    for queue_id in range(config.queues):
        queue = MessageQueue(config.name, state.identity.name, queue_id)
        yield queue, _bounds_of(state, config.name, queue_id)


def _groups_of(state: BrokerState, topic: str) -> Iterator[str]:
    online = dict.fromkeys(state.clients.groups_of_topic(topic))
    yield from online
    yield from (group for group in state.offsets.groups_of(topic) if group not in online)


async def _answer_when_gone(state: BrokerState, request: Command, topic: str) -> Command:
    await state.remover.gone(topic)
    # Or a kill would bring offsets back that a topic made again never had, and groups would skip its messages.
    await state.files.saved(state.offsets)
    return await _answer_when_registered(state, request)


async def _answer_when_registered(state: BrokerState, request: Command) -> Command:
    await state.known_everywhere()
    return request.answer()


def _is_built_in(state: BrokerState, topic: str) -> bool:
    cluster = state.identity.cluster
    own = (cluster, state.identity.name, names.reply_topic(cluster))
    return names.is_system_topic(topic) or topic in own


def _check_not_built_in(state: BrokerState, topic: str) -> None:
    if _is_built_in(state, topic):
        raise InvalidRequest(f"the topic {topic} belongs to the broker and cannot be changed")


def _altered_attributes(known: TopicConfig | None, changes: str) -> dict[str, str]:
    current = {} if known is None else known.attributes
    altered = alter_attributes(current, parse_attribute_changes(changes))
    _check_attributes(known, altered)
    return altered


def _check_attributes(known: TopicConfig | None, altered: Mapping[str, str]) -> None:
    current = {} if known is None else known.attributes
    for key, value in altered.items():
        if current.get(key) == value:
            continue
        allowed = ATTRIBUTES.get(key)
        if allowed is None:
            raise InvalidRequest(f"the attribute {key[:64]!r} is not known; known: {', '.join(ATTRIBUTES)}")
        if value not in allowed:
            raise InvalidRequest(f"{key} cannot be {value[:64]!r}; possible: {', '.join(allowed)}")


def _bounds_of(state: BrokerState, topic: str, queue_id: int) -> QueueBounds:
    start, end = state.store.reader.queue_range(topic, queue_id)
    last_ms = state.store.reader.store_time(topic, queue_id, QueueOffset(end - 1)) if end > start else None
    return QueueBounds(start, end, last_ms or 0)


class Topics(Part):
    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def handlers(self) -> dict[RequestCode, Handler]:
        return bound(
            self._state,
            {
                RequestCode.UPDATE_AND_CREATE_TOPIC: update_topic,
                RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: update_topics,
                RequestCode.DELETE_TOPIC_IN_BROKER: delete_topic,
                RequestCode.GET_ALL_TOPIC_CONFIG: all_topics,
                RequestCode.GET_TOPIC_CONFIG: one_topic,
                RequestCode.GET_TOPIC_STATS_INFO: topic_stats,
                RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: built_in_topics,
                RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: groups_of_topic,
            },
        )
