"""Replies (324, 325): a consumer answers a request, and the broker hands the answer to whoever waits for it (326).

A requester is a producer that sends a message with its client id in it and waits.  The reply names that id, and goes
to the connection from which the client's heartbeats as a producer come.  It is stored too, unless the settings say
otherwise, and the replier hears when both have happened.  A copy that cannot be stored is no error: what counts is
whether the requester has the reply.  The requester may take its time, and the topic be deleted meanwhile; one of that
name that is made again has none of its replies.
"""

import logging

from bolide.broker.handlers.send import answer_stored
from bolide.broker.part import Part
from bolide.broker.sent_message import check_numbers, checked_properties, sent_message
from bolide.broker.state import BrokerState
from bolide.model import names
from bolide.model.errors import ClientError, InvalidRequest, MessageIllegal, RequestError, StoreRefusal
from bolide.model.limits import REPLY_MS_MAX
from bolide.model.message import Property
from bolide.model.offsets import LogOffset
from bolide.model.pairs import join_properties
from bolide.model.response_code import ResponseCode
from bolide.net.link import Link
from bolide.net.provoked import Provoked
from bolide.net.registry import Handler
from bolide.record.message_id import format_offset_id
from bolide.rules.transactions import is_half
from bolide.store.new_message import NewMessage
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from bolide.wire.headers.reply import PushedReply
from bolide.wire.headers.send import SendAnswer, SendRequest

log = logging.getLogger(__name__)


class Replies(Part):
    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._provoked = Provoked(state.clock)

    def handlers(self) -> dict[RequestCode, Handler]:
        return {RequestCode.SEND_REPLY_MESSAGE: self.reply, RequestCode.SEND_REPLY_MESSAGE_V2: self.reply}

    async def reply(self, link: Link, request: Command) -> Command | None:
        if request.code == RequestCode.SEND_REPLY_MESSAGE:
            header = SendRequest.decode_long(request.fields)
        else:
            header = SendRequest.decode(request.fields)
        check_numbers(header)
        properties = checked_properties(self._state, header, header.topic, request.body)
        message = self._message(link, request, header, properties)
        life = self._state.topics.life_of(message.topic)
        refused = None
        try:
            await self._push(link, request, header, properties)
        except RequestError as error:
            refused = error
        answer, end = self._store(request, message, life)  # also what came too late, as in the original
        if refused is not None:
            raise refused
        outcome = answer_stored(self._state, link, request, answer, message.topic, end)
        return None if outcome is None else await outcome

    def _message(
        self, link: Link, request: Command, header: SendRequest, properties: dict[str, str]
    ) -> NewMessage:
        """The reply as it is stored; everything about it that can be refused is."""
        topic = self._state.topics.require(names.check_topic(header.topic))
        if header.topic in names.NO_SEND_TOPICS:
            raise InvalidRequest(f"a reply cannot go to {header.topic}: it is the broker's own")
        if not -1 <= header.queue_id < topic.queues:
            raise InvalidRequest(
                f"queue {header.queue_id} does not exist: {topic.name} has {topic.queues} queues"
            )
        if header.batch or is_half(properties, header.reconsume_times):
            raise MessageIllegal(
                "a reply is handed over at once: it is no batch, and waits for no transaction"
            )
        if not properties.get(Property.REPLY_TO_CLIENT):
            raise MessageIllegal(
                f"a reply names its requester in {Property.REPLY_TO_CLIENT}: make it from the request's message"
            )
        return sent_message(
            self._state, link, header, topic.name, max(0, header.queue_id), request.body, properties
        )

    async def _push(
        self, link: Link, request: Command, header: SendRequest, properties: dict[str, str]
    ) -> None:
        """Hand it over; `RequestError` says why the requester does not have it."""
        client_id = properties[Property.REPLY_TO_CLIENT]
        requester = self._state.clients.producer_connection(client_id)
        if requester is None or not requester.is_open:
            raise RequestError(f"the requester {client_id[:255]!r} is not connected to this broker")
        if requester.is_congested:
            raise RequestError(f"the requester {client_id[:255]!r} does not read what it was sent before")
        now = self._state.clock.now_ms()
        pushed = PushedReply.of(
            header,
            properties=join_properties({**properties, Property.PUSH_REPLY_TIME: str(now)}),
            born_host=link.remote,
            store_host=self._state.identity.address,
            store_timestamp_ms=now,
        )
        call = Command(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, pushed.encode(), request.body)
        try:
            answer = await requester.call(call, REPLY_MS_MAX)
        except ClientError as error:
            raise RequestError(f"the requester {client_id[:255]!r} did not take the reply: {error}") from None
        if answer.code != ResponseCode.SUCCESS:
            raise RequestError(f"the requester {client_id[:255]!r} refuses the reply: {answer.remark}")

    def _store(self, request: Command, message: NewMessage, life: int | None) -> tuple[Command, LogOffset]:
        """Keep it, if it is to be kept; the answer that says where, and where the log ends with it."""
        settings = self._state.settings.now
        end, msg_id, queue_offset = LogOffset(0), "0", 0  # as the original says it: clients expect a number
        if settings.store_replies:
            try:
                self._check_still_there(message, life)
                (stored,) = self._state.door.append([message])
                msg_id = format_offset_id(self._state.identity.store_host, stored.log_offset)
                end, queue_offset = stored.end, stored.queue_offset
            except (RequestError, StoreRefusal) as error:  # whether the requester has it is what counts
                text = "a reply in %.255r could not be stored: %s"
                self._provoked.say(log, logging.WARNING, "", text, message.topic, error)
        trace_on = "true" if settings.trace_on else "false"
        header = SendAnswer(msg_id, message.queue_id, queue_offset, region=settings.region, trace_on=trace_on)
        return request.answer(fields=header.encode()), end

    def _check_still_there(self, message: NewMessage, life: int | None) -> None:
        topic = self._state.topics.require(message.topic)
        if self._state.topics.life_of(topic.name) != life or message.queue_id >= topic.queues:
            raise RequestError("its topic was deleted meanwhile, or has fewer queues")
