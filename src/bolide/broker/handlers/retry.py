"""Retry: a message that its group could not consume comes again after a while, or becomes a dead letter (36)."""

import logging
from collections.abc import Coroutine

from bolide.broker.diversions import aside_bytes
from bolide.broker.failures import NO_DELAY, OVER, dead_letters_of, group_for, history_with
from bolide.broker.handlers.send import answer_stored
from bolide.broker.part import Part
from bolide.broker.property_room import with_room
from bolide.broker.state import BrokerState
from bolide.model import names
from bolide.model.errors import InvalidRequest, PermissionDenied, RequestError
from bolide.model.message import Property
from bolide.model.offsets import LogOffset
from bolide.model.topic import GroupConfig, TopicConfig
from bolide.net.link import Link
from bolide.net.provoked import Provoked
from bolide.net.registry import Handler, Outcome
from bolide.record.layout import open_record
from bolide.record.message_id import format_offset_id
from bolide.rules import retry
from bolide.rules.left_out import NAME_LENGTH_MAX
from bolide.rules.topic_creation import topic_for_retry
from bolide.store.entry_rules import has_entry
from bolide.store.new_message import NewMessage
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from bolide.wire.headers.retry import SendBack

log = logging.getLogger(__name__)


class Retrying(Part):
    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._provoked = Provoked(state.clock)

    def handlers(self) -> dict[RequestCode, Handler]:
        return {RequestCode.CONSUMER_SEND_MSG_BACK: self.send_back}

    def send_back(self, link: Link, request: Command) -> Outcome | Coroutine[None, None, Outcome]:
        """36: store the message again, to be brought after its delay, or as a dead letter of its group.

        The consumer goes on behind the message once it hears of success, so it hears of it when the copy is as safe
        as was promised; the original does not wait for a sync here.  A group without retry queues has its failed
        messages dropped, as in the original.
        """
        state = self._state
        header = SendBack.decode(request.fields)
        group = group_for(state, link, header.group)
        if not state.settings.now.writable:
            raise PermissionDenied(f"the broker {state.identity.name} takes no messages now")
        if group.retry_queues <= 0:
            return request.answer()
        topic = _retry_topic(state, group, unit_mode=header.unit_mode)
        if not topic.writable:
            raise PermissionDenied(f"the topic {topic.name} may not be written to")
        message = _failed_message(state, header.offset)
        times_max = retry.times_max(group, header.max_reconsume_times, request.version)
        level = retry.next_level(header.delay_level, message.reconsume_times, times_max)
        if level is None:
            topic = dead_letters_of(state, group.name)
        if state.new_topics.must_wait(topic.name):
            return state.new_topics.when_free(topic.name, lambda: self.send_back(link, request))
        message = self._to_come_again(link, message, topic, level)
        if topic.name not in state.topics:
            state.new_topics.put(topic)  # last: what is refused costs no topic
        (stored,) = state.door.append([message])
        if level is None:
            text = "dead letter of %s: %s, sent back by %s after %d retries"
            key = message.pairs().get(Property.UNIQUE_KEY)
            times = message.reconsume_times - 1
            self._provoked.say(log, logging.INFO, link.remote, text, group.name, key, link.remote, times)
        return answer_stored(state, link, request, request.answer(), topic.name, stored.end)

    def _to_come_again(
        self, link: Link, message: NewMessage, topic: TopicConfig, level: int | None
    ) -> NewMessage:
        """The message as it is stored now: waiting for its time, or dead."""
        state = self._state
        pairs = message.pairs()
        again = message.with_pairs(
            **dict.fromkeys(OVER if level is None else (*OVER, Property.REAL_TOPIC, Property.REAL_QUEUE_ID))
            | {
                Property.RETRY_TOPIC: pairs.get(Property.RETRY_TOPIC, message.topic),
                Property.DELAY: NO_DELAY if level is None else str(level),
                Property.WAIT: "false",
                Property.ATTEMPTS: None,
            }
        )
        queue_id = 0 if level is None else state.surroundings.random.randrange(max(1, topic.write_queues))
        left = 0 if level is None else aside_bytes(topic.name, queue_id)
        properties, left_out = with_room(again.properties, left)
        if left_out:
            text = "%s of %s has no room for what a retry writes into it, and goes on without %s"
            key = pairs.get(Property.UNIQUE_KEY, "a message")[:NAME_LENGTH_MAX]
            self._provoked.say(log, logging.WARNING, link.remote, text, key, message.topic, left_out)
        history = history_with(state, link, pairs.get(Property.ATTEMPTS), level, properties)
        again = again._replace(properties=properties).with_pairs(**{Property.ATTEMPTS: history})
        again = again._replace(
            topic=topic.name,
            queue_id=queue_id,
            reconsume_times=retry.one_more(message.reconsume_times),
            prepared_offset=0,
        )
        return again if level is None else state.diversions.of(again, again.pairs())


def _retry_topic(state: BrokerState, group: GroupConfig, *, unit_mode: bool) -> TopicConfig:
    known = state.topics.get(names.retry_topic(group.name))
    return known or topic_for_retry(group.name, None, group.retry_queues, unit_mode=unit_mode)


def _failed_message(state: BrokerState, offset: int) -> NewMessage:
    """The message at this place of the log, with the id of that place, which it keeps from its first retry on."""
    record = state.store.reader.named_at(offset)
    if record is None:
        raise RequestError(f"there is no message at position {offset} of the log")
    message = NewMessage.of_record(record)
    if message.topic in names.NO_SEND_TOPICS or not has_entry(message.sys_flag):
        raise InvalidRequest(f"the message at position {offset} of the log is none that a consumer has")
    pairs = message.pairs()
    if not pairs.get(Property.ORIGIN_MESSAGE_ID, "").strip():
        at = open_record(record, 0, len(record))
        message = message.with_pairs(
            **{Property.ORIGIN_MESSAGE_ID: format_offset_id(at.store_host, LogOffset(offset))}
        )
    return message
