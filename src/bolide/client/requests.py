"""Requests and their replies: who waits for which one, and what a reply looks like.

A requester sends a message with its client id in it.  The consumer's reply goes to a broker, which hands it to the
requester's connection (326); by the correlation id it finds whoever waits for it here.  Nothing is kept of a reply that
nobody waits for: its sender hears that it came in vain.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

from bolide.client import checks
from bolide.client.instance import ClientInstance
from bolide.client.outgoing import REPLY, Reply
from bolide.client.rounds import Seldom
from bolide.model.errors import ClientNotRunning, InvalidRequest, MalformedRecord, RequestError, RouteNotFound
from bolide.model.message import Message, Property
from bolide.model.names import DEFAULT_TOPIC, reply_topic
from bolide.model.offsets import LogOffset, QueueOffset
from bolide.model.pairs import parse_properties
from bolide.net.link import Link
from bolide.record.compress import unpack_body
from bolide.record.stored import StoredMessage
from bolide.wire.command import Command
from bolide.wire.headers.reply import PushedReply

log = logging.getLogger(__name__)

SAY_AGAIN_MS = 10_000
MEET_S = 1.0
"""So long a first request waits for brokers that are not its own."""

COPIED = (Property.CORRELATION_ID, Property.REPLY_TO_CLIENT, Property.TTL)


def reply_to(
    request: StoredMessage,
    body: bytes,
    *,
    tags: str | None = None,
    keys: Iterable[str] = (),
    properties: Mapping[str, str] | None = None,
) -> Message:
    """The message that answers a request; any producer sends it.

    Example::

        def handle(messages: list[StoredMessage]) -> None:
            for message in messages:
                producer.send(reply_to(message, b"the answer to " + message.body))

    Args:
        request: what a consumer has got; it was sent with `Producer.request`, or by a client of another language.
        body: what the requester gets.
        tags: one word, as in every message.
        keys: words that the reply can be found by, where the broker keeps replies.
        properties: texts of the application's own.

    Raises:
        InvalidRequest: that message is no request: nobody waits for a reply to it.
    """
    if not isinstance(request, StoredMessage):
        raise InvalidRequest(
            f"request is a StoredMessage that a consumer has got, not {checks.described(request)}"
        )
    cluster = request.properties.get(Property.CLUSTER)
    if not cluster or not all(request.properties.get(name) for name in COPIED[:2]):
        raise InvalidRequest(
            f"nobody waits for a reply to {request.message_id}: it was not sent with Producer.request"
        )
    if properties is not None and not isinstance(properties, Mapping):
        raise InvalidRequest(f"properties is a dict of texts, not {checks.described(properties)}")
    own = {name: request.properties[name] for name in COPIED if name in request.properties}
    pairs = {**(properties or {}), **own, Property.MESSAGE_TYPE: REPLY}
    return Reply(reply_topic(cluster), body, tags, keys, pairs, broker_name=request.broker_name)


class Requests:
    """Who waits for a reply.  Each has a deadline of its own, so nothing stays."""

    def __init__(self, instance: ClientInstance) -> None:
        self._instance = instance
        self._waiting: dict[str, asyncio.Future[StoredMessage]] = {}
        self._met: set[str] = set()
        self._say = Seldom(instance.clock, SAY_AGAIN_MS)

    async def meet(self, topic: str) -> None:
        """Be known to every broker that may have to bring the reply.

        Consumers of other languages send it to any broker of the cluster; of brokers that do not have the topic one
        learns by the topic that all of them have, if they create topics on demand.
        """
        if topic in self._met:
            return
        routes = self._instance.routes
        await routes.route_for_sending(topic)
        try:
            async with asyncio.timeout(MEET_S):
                with suppress(RouteNotFound):
                    await routes.route(DEFAULT_TOPIC)
                await self._instance.greet_all()
        except TimeoutError:
            pass  # who is out of reach now is met with the next heartbeats
        self._met.add(topic)

    @contextmanager
    def waiting(self, timeout_ms: int) -> "Iterator[tuple[Mapping[str, str], asyncio.Future[StoredMessage]]]":
        """Properties that make a request of a message, and what its reply is to come to."""
        correlation_id = self._instance.ids.next()
        reply = self._waiting[correlation_id] = asyncio.get_running_loop().create_future()
        own = {
            Property.CORRELATION_ID: correlation_id,
            Property.REPLY_TO_CLIENT: self._instance.client_id,
            Property.TTL: str(timeout_ms),
        }
        try:
            yield own, reply
        finally:
            del self._waiting[correlation_id]
            reply.cancel()

    def close(self) -> None:
        for reply in self._waiting.values():
            if not reply.done():
                reply.set_exception(
                    ClientNotRunning("the client was closed while a request waited for its reply")
                )

    def serve(self, link: Link, request: Command) -> Coroutine[None, None, Command] | None:
        """326: a broker brings a reply."""
        try:
            header = PushedReply.decode(request.fields)
        except RequestError as error:
            if self._say.is_due():
                log.warning("a reply from %s that cannot be read: %s", link.remote, error)
            return None
        properties = parse_properties(header.properties)
        reply = self._waiting.get(properties.get(Property.CORRELATION_ID, ""))
        if reply is None or reply.done():
            return None
        reply.set_result(self._message(link, header, properties, request.body))
        return _taken(request)

    def _message(
        self, link: Link, header: PushedReply, properties: dict[str, str], body: bytes
    ) -> StoredMessage:
        body_error = None
        try:
            body = unpack_body(body, header.sys_flag)
        except MalformedRecord as error:
            body_error = str(error)
        return StoredMessage(
            topic=header.topic,
            body=body,
            properties=properties,
            queue_id=header.queue_id,
            queue_offset=QueueOffset(-1),  # it was handed over, from no queue
            log_offset=LogOffset(-1),
            broker_name=self._instance.routes.name_at(link.remote),
            sys_flag=header.sys_flag,
            flag=header.flag,
            born_timestamp_ms=header.born_timestamp_ms,
            born_host=header.born_host,
            store_timestamp_ms=header.store_timestamp_ms,
            store_host=header.store_host,
            reconsume_times=header.reconsume_times,
            message_id=properties.get(Property.UNIQUE_KEY, ""),
            offset_message_id="",
            body_error=body_error,
        )


async def _taken(request: Command) -> Command:
    return request.answer()
