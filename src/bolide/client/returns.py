"""Returns: messages that the listener could not handle, on their way back to a broker.

A message goes back by its place in the log (36): the broker moves what it has stored, and brings it again later, or
keeps it as a dead letter.  Where its broker does not take it, a copy goes to the group's retry topic as a message of
its own, on any broker.  Orderly consumers of the original send a copy at once; it may be longer than what was stored.

Never keeps anything: what nobody takes is the caller's again, by a `BolideError`.  Except for what has had all its
attempts and will never be taken, for what it is: that is passed over, or it would stop its queue for good.
"""

import asyncio
import logging
from dataclasses import replace
from enum import Enum

from bolide.client.instance import ClientInstance, raise_for
from bolide.client.preparation import PACK_ASIDE_BYTES
from bolide.client.queue_calls import QueueCalls
from bolide.model.errors import BolideError, MessageIllegal, RemoteError, RouteNotFound
from bolide.model.limits import DELAY_LEVELS_MAX, FRAME_BYTES_MAX, HEADER_BYTES_MAX, PROPERTIES_ROOM_BYTES
from bolide.model.message import COMPRESSION_MASK, PROPERTIES_BYTES_MAX, Property, SysFlag
from bolide.model.names import retry_topic
from bolide.model.numbers import INT32_MAX
from bolide.model.offsets import MessageQueue
from bolide.model.pairs import join_properties
from bolide.record.compress import pack_body
from bolide.record.stored import StoredMessage
from bolide.rules.left_out import fitting
from bolide.rules.retry import FIRST_LEVEL, next_level, one_more
from bolide.rules.timed import ASKING
from bolide.wire.codes import RequestCode, ResponseCode
from bolide.wire.command import Command
from bolide.wire.headers.send import SendRequest

log = logging.getLogger(__name__)

PRODUCER_GROUP = "CLIENT_INNER_PRODUCER"
"""What the original's clients send by themselves goes by this name."""

SEND_TIMEOUT_MS = 3_000

ENDLESS = INT32_MAX
"""A limit that a message can be stored with the count of is none."""

COPY_BYTES_MAX = FRAME_BYTES_MAX - HEADER_BYTES_MAX
"""A larger body makes a frame for which brokers close the connection."""

BURY = -1
"""The delay level that asks for a dead letter."""

_OVER = {
    *ASKING,
    Property.DELAY,
    Property.TRANSACTION_PREPARED,
    Property.REAL_TOPIC,
    Property.REAL_QUEUE_ID,
}
"""What made a message wait before it came: it says nothing of how long it waits now."""

_FOR_GOOD = (
    "MESSAGE_ILLEGAL",
    "PROPERTIES_SIZE_EXCEEDED",
    "look message by offset failed",
    "there is no message at",
)
"""So begins what brokers say with SYSTEM_ERROR when they will not take a message back later either: the first ones are
states of the original's store (PutMessageStatus), the last is our own word for the third."""


class Fate(Enum):
    """What becomes of a message that was given back."""

    AGAIN = "it comes again"
    BURIED = "it is a dead letter"
    PASSED_OVER = "nobody will ever take it"


class Returns:
    """Gives back in the name of one group; `attempts_max` is how often a message may come again."""

    def __init__(self, instance: ClientInstance, calls: QueueCalls, group: str, attempts_max: int) -> None:
        self._instance = instance
        self._calls = calls
        self._retry_topic = retry_topic(group)
        self.attempts_max = attempts_max

    async def give_back(self, queue: MessageQueue, message: StoredMessage, level: int) -> Fate:
        """Have it brought again after a delay level, unless that was its last attempt."""
        if level == 0 and message.reconsume_times < 0:
            level = FIRST_LEVEL  # the original would add the count to it: no delay at all
        next_one = next_level(level, message.reconsume_times, self.attempts_max)
        if not await self._give(queue, message, level, next_one):
            return Fate.PASSED_OVER
        return Fate.BURIED if next_one is None else Fate.AGAIN

    def is_over(self, message: StoredMessage) -> bool:
        """Whether a message that failed here has had all its attempts; never where they have no end."""
        return ENDLESS > self.attempts_max <= message.reconsume_times

    async def give_up(self, queue: MessageQueue, message: StoredMessage) -> bool:
        """Make a dead letter of a message that has had all its attempts, of a queue that is consumed in order.

        Whether it is one now; else nobody will ever take it.
        """
        return await self._give(queue, message, BURY, None)

    async def _give(self, queue: MessageQueue, message: StoredMessage, asked: int, level: int | None) -> bool:
        """To its broker, which is asked for a level, or else as a copy, which has this one; None for the dead."""
        try:
            await self._calls.send_back(queue, message, asked, self.attempts_max)
        except BolideError as error:
            refusal = error
        else:
            return True
        log.warning("%s does not take a message back, a copy is sent instead: %s", queue, refusal)
        try:
            await self._send_copy(queue, message, level)
        except BolideError as trouble:
            if level is not None or not (_is_for_good(refusal) and _is_for_good(trouble)):
                raise
            log.error(
                "the message %s of %s at offset %d is passed over: it has had all its attempts, and no broker takes it,"
                " not even as a dead letter: %s",
                *(message.message_id, queue, message.queue_offset, trouble),
            )
            return False
        return True

    async def _send_copy(self, queue: MessageQueue, message: StoredMessage, level: int | None) -> None:
        """To a queue of the retry topic, of the message's own broker, or else of another.

        It comes from there after its delay level; one that has had more attempts than are allowed goes to the dead.
        """
        route = await self._instance.routes.route(self._retry_topic)
        queues = route.writable(self._retry_topic)
        near = [one for one in queues if one.broker_name == queue.broker_name]
        far = [one for one in queues if one.broker_name != queue.broker_name]
        troubles: list[BolideError] = []
        body, sys_flag = await self._body_of(message)
        times = one_more(message.reconsume_times)
        header = SendRequest(
            topic=self._retry_topic,
            producer_group=PRODUCER_GROUP,
            queue_id=0,
            sys_flag=sys_flag,
            born_timestamp_ms=message.born_timestamp_ms,
            flag=message.flag,
            properties="",
            reconsume_times=times if level is not None else min(max(times, self.attempts_max + 1), INT32_MAX),
            max_reconsume_times=self.attempts_max,
        )
        texts = _properties_of(message, level)
        for some in filter(None, (near, far)):
            target = self._instance.surroundings.random.choice(some)
            for text, left_out in texts:
                sent = replace(header, queue_id=target.queue_id, properties=text)
                request = Command(RequestCode.SEND_MESSAGE_V2, sent.encode(), body)
                try:
                    address = await self._instance.queue_address(target)
                    raise_for(await self._instance.call(address, request, SEND_TIMEOUT_MS))
                except BolideError as error:
                    troubles.append(error)
                    if not _is_for_good(error):
                        break
                else:
                    if left_out:
                        log.warning(
                            "the copy of %s has no room, and goes without %s", message.message_id, left_out
                        )
                    return
        no_queue = RouteNotFound(f"no queue of {self._retry_topic!r} can be sent to now")
        raise next((one for one in troubles if not _is_for_good(one)), troubles[-1] if troubles else no_queue)

    async def _body_of(self, message: StoredMessage) -> tuple[bytes, int]:
        """The body as it came, and its flags: a large one is packed in a thread, because nothing waits for it.

        `MessageIllegal` when no frame holds it.
        """
        body, packing = message.body, message.sys_flag & int(SysFlag.COMPRESSED | COMPRESSION_MASK)
        if not packing & SysFlag.COMPRESSED:
            packing = 0
        elif message.body_error is None:
            kind = packing & COMPRESSION_MASK or SysFlag.COMPRESSION_ZLIB
            if len(body) < PACK_ASIDE_BYTES:
                body = pack_body(body, kind)
            else:
                threads = self._instance.surroundings.threads("bolide-pack")
                try:
                    body = await asyncio.get_running_loop().run_in_executor(threads, pack_body, body, kind)
                finally:
                    threads.shutdown(wait=False)
        if len(body) > COPY_BYTES_MAX:
            raise MessageIllegal(
                f"a copy has {len(body)} bytes, and a frame holds {COPY_BYTES_MAX} of a body"
            )
        return body, packing


def _properties_of(message: StoredMessage, level: int | None) -> list[tuple[str, str]]:
    """As they are; and with room for what any broker writes, with what is said of those that give way for that.

    What was stored once is not judged again.
    """
    kept = {name: value for name, value in message.properties.items() if name not in _OVER}
    kept.setdefault(Property.RETRY_TOPIC, message.topic)
    kept.setdefault(Property.ORIGIN_MESSAGE_ID, message.offset_message_id)
    if level is not None:  # 4.x would have a dead letter wait, too
        kept[Property.DELAY] = str(min(level, DELAY_LEVELS_MAX))
    text = join_properties(kept)
    shorter, left_out = fitting(text.encode(), PROPERTIES_BYTES_MAX - PROPERTIES_ROOM_BYTES)
    return [(text, ""), (shorter.decode(), left_out)] if left_out else [(text, "")]


def _is_for_good(refusal: BolideError) -> bool:
    """Whether a message was refused for what it is, and not for how the broker is now."""
    if not isinstance(refusal, RemoteError):
        return isinstance(refusal, MessageIllegal)
    if refusal.response_code == ResponseCode.SYSTEM_ERROR:
        return refusal.remark.startswith(_FOR_GOOD)
    return refusal.response_code == ResponseCode.MESSAGE_ILLEGAL
