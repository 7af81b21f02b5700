"""Which delayed messages were delivered already, as the log shows it.

A broker that was killed had delivered more than `delayOffset.json` says.  Messages of a level are delivered in the
order of their queue, none before it is due, and a delivered one is as the one that waited.  So each is looked for in
its own queue, among the messages that were stored since it was due, and if its topic has fewer queues by now also in
the one that takes what was meant for it; the first that is not there was not delivered.
"""

from bolide.broker.waiting_message import Undeliverable, delivered
from bolide.model.errors import MalformedRecord
from bolide.model.message import Property, SysFlag
from bolide.model.steps import Steps
from bolide.record.layout import RECORD_CHECKSUM_BYTES, open_record
from bolide.store.new_message import NewMessage
from bolide.store.queue_entry import ENTRY, GAP_SIZE
from bolide.store.queue_index import ConsumeQueue
from bolide.store.store import MessageStore
from bolide.store.tables import TopicTable

STEP_ENTRIES = 512


def first_undelivered(
    store: MessageStore, topics: TopicTable, queue: ConsumeQueue, first: int, now_ms: int
) -> Steps[int]:
    """The number of the first message of a level's queue, from `first` on, that is not in its own queue.

    What is due later than the newest message of the log cannot be.  Unless that is from the future: the clock was set
    back, and messages have come after their delay and before the time in their entries.
    """
    newest_ms = store.newest_stored_ms or 0
    is_set_back = now_ms < newest_ms
    places: dict[tuple[str, int], int] = {}  # of queues: the number behind the last that was found there
    number = undelivered = first
    while (entry := queue.entry(number)) is not None and (is_set_back or entry[2] <= newest_ms):
        number += 1
        if number % (STEP_ENTRIES // 8) == 0:
            yield
        record = None if entry[1] == GAP_SIZE else store.reader.message_of(queue, number - 1, entry[0])
        if record is None:
            continue
        try:
            message = delivered(record)
        except Undeliverable:
            continue
        if is_set_back and Property.UNIQUE_KEY not in message.pairs():
            break  # among so many there may be equal ones, and twice is better than never
        if store.queues.deletions.place_of(message.topic) > entry[0]:
            continue  # its topic was deleted since: nobody can tell, and it is not delivered any more
        size = len(message.topic) - len(queue.tail.key[0]) + entry[1]
        found: int | None = None
        for queue_id in dict.fromkeys((message.queue_id, topics.queue_now(message.topic, message.queue_id))):
            own = (message.topic, queue_id)
            if own not in places:
                since_ms = _stored_ms(record) if is_set_back else entry[2]
                places[own] = int(store.reader.search_offset(*own, since_ms))
            found = yield from _find(store, own, message, size, places[own])
            if found is not None:
                places[own] = found + 1
                undelivered = number
                break
        if found is None:
            break
    return undelivered


def _find(
    store: MessageStore, own: tuple[str, int], message: NewMessage, size: int, first: int
) -> Steps[int | None]:
    """The number that a message of about this size has in this queue, from `first` on."""
    queue = store.queues.find(*own)
    wanted = _identity(message)
    while queue is not None and (entries := queue.read(first, STEP_ENTRIES)):
        for number, entry in enumerate(ENTRY.iter_unpack(entries), first):
            if abs(entry[1] - size) <= RECORD_CHECKSUM_BYTES:
                record = store.reader.message_of(queue, number, entry[0])
                if record is not None and _identity_of(record) == wanted:
                    return number
        first += len(entries) // ENTRY.size
        yield
    return None


def _stored_ms(record: bytes) -> int:
    return open_record(record, 0, len(record)).store_timestamp_ms


def _identity_of(record: bytes) -> object:
    try:
        return _identity(NewMessage.of_record(record))
    except (MalformedRecord, UnicodeDecodeError):
        return None


def _identity(message: NewMessage) -> object:
    """What makes it this message, wherever it is stored and in whatever order its properties are."""
    return (
        message.body,
        message.pairs(),
        message.flag,
        message.sys_flag & ~SysFlag.STORE_HOST_V6,
        message.born_timestamp_ms,
        message.born_host,
        message.reconsume_times,
    )
