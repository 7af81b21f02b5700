"""Messages by key, unique key or tag (12), one message by its place in the log (33), and where a queue's messages are
(321)."""

from bolide.broker.indexer import Indexer
from bolide.broker.part import Part, Work
from bolide.broker.state import BrokerState
from bolide.model.errors import InvalidRequest, RequestError, TooBusy
from bolide.model.limits import QUERY_BYTES_MAX, QUERY_MESSAGES_MAX, QUEUE_ENTRIES_MAX
from bolide.model.message import PROPERTIES_BYTES_MAX
from bolide.model.offsets import LogOffset
from bolide.model.response_code import ResponseCode
from bolide.net.link import Link
from bolide.net.registry import Handler
from bolide.store.index_query import Lookup
from bolide.store.queue_entry import ENTRY
from bolide.wire.bodies.admin import QueueEntry, encode_queue_entries
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from bolide.wire.headers.admin import QueueEntriesRequest
from bolide.wire.headers.query import TAG_INDEX, QueryAnswer, QueryMessage, ViewMessage

UNIQUE_COUNT_MAX = 32
"""RocketMQ: defaultQueryMaxNum, whatever a query for a unique key asks for."""


class Querying(Part):
    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self.indexer = Indexer(state.store, state.surroundings)

    def handlers(self) -> dict[RequestCode, Handler]:
        return {
            RequestCode.QUERY_MESSAGE: self.query_message,
            RequestCode.VIEW_MESSAGE_BY_ID: self.view_message,
            RequestCode.QUERY_CONSUME_QUEUE: self.queue_entries,
        }

    def work(self) -> list[Work]:
        return [("key index", self.indexer.run())]

    def close(self) -> None:
        self.indexer.close()

    async def query_message(self, link: Link, request: Command) -> Command:
        """12: the newest messages of a topic that have a key, oldest of them first.

        Nobody is asked whether the topic exists: what was deleted is not found.  Keys of the same
        hash are not told apart.
        """
        header = QueryMessage.decode(request.fields)
        for what, text in (("topic", header.topic), ("key", header.key)):
            if len(text) > PROPERTIES_BYTES_MAX:  # none of a message is longer, and it would be hashed here
                raise InvalidRequest(
                    f"the {what} has {len(text)} characters; {PROPERTIES_BYTES_MAX} are allowed"
                )
        lookup = Lookup(
            topic=header.topic,
            word=header.key,
            count_max=UNIQUE_COUNT_MAX
            if header.unique_key
            else max(0, min(header.max_num, QUERY_MESSAGES_MAX)),
            begin_ms=header.begin_timestamp,
            end_ms=header.end_timestamp,
            size_bytes_max=QUERY_BYTES_MAX,
            by_tag=header.index_type == TAG_INDEX and not header.unique_key,
        )
        found = await self.indexer.find(link, lookup)
        if link.is_congested:  # many large answers to somebody who reads none would fill the memory
            raise TooBusy("answers that were sent before have not been read yet")
        fields = QueryAnswer(found.last_stored_ms, found.last_offset).encode()
        if found.records:
            return request.answer(fields=fields, body=b"".join(found.records))
        why = f"no message of {header.topic[:255]} with this key was stored in this time"
        if not self._state.settings.now.index_enabled:
            why = "this broker does not index messages (messageIndexEnable is false)"
        return request.answer(ResponseCode.QUERY_NOT_FOUND, fields, remark=why)

    def view_message(self, link: Link, request: Command) -> Command:
        """33: one record as the log holds it."""
        offset = ViewMessage.decode(request.fields).offset
        record = self._state.store.reader.read_at(LogOffset(offset)) if offset >= 0 else None
        if record is None:
            raise RequestError(f"there is no message at position {offset} of the log")
        return request.answer(body=record)

    def queue_entries(self, link: Link, request: Command) -> Command:
        """321: places, sizes and tag codes of a queue's messages; beside what a group wants of the topic."""
        header, state = QueueEntriesRequest.decode(request.fields), self._state
        queue = state.store.queues.find(header.topic, header.queue_id)
        if queue is None:
            raise RequestError(
                f"nothing was ever stored in queue {header.queue_id} of the topic {header.topic[:255]}"
            )
        subscription = filter_text = None
        if header.consumer_group:
            group = state.clients.group(header.consumer_group)
            subscription = None if group is None else group.subscriptions.get(header.topic)
            if subscription is None:
                filter_text = f"{header.consumer_group[:255]}@{header.topic[:255]} is not online!"
            else:
                filter_text = "null"  # what the original says of a group without an SQL expression
        first = max(header.index, queue.start)
        count = min(header.count, QUEUE_ENTRIES_MAX, queue.end - first)
        entries = ENTRY.iter_unpack(queue.read(first, count)) if count > 0 else ()
        body = encode_queue_entries(
            (QueueEntry(*entry) for entry in entries), queue.start, queue.end, subscription, filter_text
        )
        return request.answer(body=body)
