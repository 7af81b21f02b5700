"""Opening a broker's directory: its store and its tables, and what a crash has left of them brought in order."""

import logging
from typing import NamedTuple

from bolide.broker.config import BrokerConfig
from bolide.broker.identity import Identity
from bolide.broker.table_files import TableFiles
from bolide.model.limits import TOPIC_QUEUES_MAX
from bolide.model.names import SCHEDULE_TOPIC, group_of
from bolide.net.surroundings import Surroundings
from bolide.rules.built_in_topics import built_in_topics
from bolide.store.disk import Disk
from bolide.store.index_file import IndexSizes
from bolide.store.marks import Promise
from bolide.store.progress import Progress
from bolide.store.store import MessageStore, StoreOptions
from bolide.store.tables import GroupTable, OffsetTable, TopicTable

log = logging.getLogger(__name__)

PERSIST_TABLES_MS = 200


class Tables(NamedTuple):
    topics: TopicTable
    groups: GroupTable
    offsets: OffsetTable


def new_store(
    config: BrokerConfig, identity: Identity, root: str, disk: Disk, surroundings: Surroundings
) -> MessageStore:
    """The store as configured, not open yet."""
    options = StoreOptions(
        root=root,
        store_host=identity.store_host,
        properties_suffix=identity.properties_suffix,
        body_bytes_max=config.body_bytes_max,
        segment_bytes=config.segment_bytes,
        queue_file_bytes=config.queue_file_bytes,
        promise=Promise.DURABLE if config.flush_disk_type == "SYNC_FLUSH" else Promise.APPENDED,
        sealed=config.seal_records,
        check=config.check_on_read,
        delay_levels=config.delay_levels,
        index=IndexSizes(config.index_slots, config.index_entries) if config.index_enabled else None,
        pid=surroundings.pid,
    )
    return MessageStore(disk, options, surroundings.clock)


def open_all(
    config: BrokerConfig, store: MessageStore, files: TableFiles, progress: Progress | None
) -> Tables:
    """Recover the store and load the tables; a table that cannot be read lets the store go again."""
    found = store.open(progress)
    try:
        topics = files.open(TopicTable, "topics.json", PERSIST_TABLES_MS)
        groups = files.open(GroupTable, "subscriptionGroup.json", PERSIST_TABLES_MS)
        offsets = files.open(OffsetTable, "consumerOffset.json", config.persist_offsets_ms)
    except BaseException:
        store.abandon()
        raise
    if not found.clean and (moved := offsets.bring_back(store.queues.end_of)):
        log.warning("messages were lost that groups had consumed: %d offsets go back to the end", moved)
    topics.add_missing(
        built_in_topics(
            config.cluster_name,
            config.broker_name,
            template_queues=config.default_topic_queues if config.auto_create_topic else 0,
            trace_topic=config.trace_topic if config.trace_topic_made else "",
        )
    )
    held = (queue.tail.key[1] + 1 for queue in store.queues.of_topic(SCHEDULE_TOPIC))
    topics.widen(SCHEDULE_TOPIC, min(max(config.delay_levels.highest, *held, 0), TOPIC_QUEUES_MAX))
    topics.keep_room_for(lambda topic: group_of(topic) in groups)
    groups.add_built_in()
    return Tables(topics, groups, offsets)
