"""Every request code we answer or send: who sends it, what it needs, and in one line what it asks.

The numbers and names are RocketMQ's RequestCode.  `REQUESTS` is the one table: dispatch, permissions and the
documents read it.  The fields of each request are its header class in `wire/headers`.
"""

from dataclasses import dataclass
from enum import Enum, IntEnum

from bolide.model.response_code import ResponseCode

__all__ = ["Need", "REQUESTS", "RequestCode", "RequestKind", "ResponseCode", "Sender"]


class RequestCode(IntEnum):
    SEND_MESSAGE = 10
    PULL_MESSAGE = 11
    QUERY_CONSUMER_OFFSET = 14
    UPDATE_CONSUMER_OFFSET = 15
    UPDATE_AND_CREATE_TOPIC = 17
    GET_ALL_TOPIC_CONFIG = 21
    UPDATE_BROKER_CONFIG = 25
    GET_BROKER_CONFIG = 26
    GET_BROKER_RUNTIME_INFO = 28
    SEARCH_OFFSET_BY_TIMESTAMP = 29
    GET_MAX_OFFSET = 30
    GET_MIN_OFFSET = 31
    GET_EARLIEST_MSG_STORETIME = 32
    VIEW_MESSAGE_BY_ID = 33
    HEART_BEAT = 34
    UNREGISTER_CLIENT = 35
    GET_CONSUMER_LIST_BY_GROUP = 38
    NOTIFY_CONSUMER_IDS_CHANGED = 40
    LOCK_BATCH_MQ = 41
    UNLOCK_BATCH_MQ = 42
    GET_ALL_CONSUMER_OFFSET = 43
    CHECK_CLIENT_CONFIG = 46
    PUT_KV_CONFIG = 100
    GET_KV_CONFIG = 101
    DELETE_KV_CONFIG = 102
    REGISTER_BROKER = 103
    UNREGISTER_BROKER = 104
    GET_ROUTEINFO_BY_TOPIC = 105
    GET_BROKER_CLUSTER_INFO = 106
    UPDATE_AND_CREATE_SUBSCRIPTIONGROUP = 200
    GET_ALL_SUBSCRIPTIONGROUP_CONFIG = 201
    GET_TOPIC_STATS_INFO = 202
    GET_CONSUMER_CONNECTION_LIST = 203
    GET_PRODUCER_CONNECTION_LIST = 204
    WIPE_WRITE_PERM_OF_BROKER = 205
    GET_ALL_TOPIC_LIST_FROM_NAMESERVER = 206
    DELETE_SUBSCRIPTIONGROUP = 207
    GET_CONSUME_STATS = 208
    DELETE_TOPIC_IN_BROKER = 215
    DELETE_TOPIC_IN_NAMESRV = 216
    REGISTER_TOPIC_IN_NAMESRV = 217
    GET_KVLIST_BY_NAMESPACE = 219
    GET_TOPICS_BY_CLUSTER = 224
    QUERY_TOPIC_CONSUME_BY_WHO = 300
    GET_SYSTEM_TOPIC_LIST_FROM_NS = 304
    GET_SYSTEM_TOPIC_LIST_FROM_BROKER = 305
    SEND_MESSAGE_V2 = 310
    GET_UNIT_TOPIC_LIST = 311
    GET_HAS_UNIT_SUB_TOPIC_LIST = 312
    GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST = 313
    UPDATE_NAMESRV_CONFIG = 318
    GET_NAMESRV_CONFIG = 319
    SEND_BATCH_MESSAGE = 320
    QUERY_DATA_VERSION = 322
    ADD_WRITE_PERM_OF_BROKER = 327
    QUERY_TOPICS_BY_CONSUMER = 343
    GET_TOPIC_CONFIG = 351
    GET_SUBSCRIPTIONGROUP_CONFIG = 352
    LITE_PULL_MESSAGE = 361
    GET_BROKER_MEMBER_GROUP = 901
    BROKER_HEARTBEAT = 904


class Sender(Enum):
    PRODUCER = "producer"
    CONSUMER = "consumer"
    CLIENT = "any client"
    ADMIN = "admin tool"
    BROKER = "broker"
    TO_CLIENT = "broker, to a client"


class Need(Enum):
    """The right that the caller needs; a server with access control checks it before the handler runs."""

    NOTHING = "nothing"
    PUBLISH = "publish to the topic"
    SUBSCRIBE = "subscribe to the topic and group"
    READ_CLUSTER = "read the cluster's state"
    CHANGE_CLUSTER = "change the cluster"
    JOIN_CLUSTER = "be a broker of the cluster"


@dataclass(frozen=True, slots=True)
class RequestKind:
    code: RequestCode
    sender: Sender
    need: Need
    asks: str


def _table() -> dict[RequestCode, RequestKind]:
    c, s, n = RequestCode, Sender, Need
    rows = [
        # ---- messages
        (c.SEND_MESSAGE, s.PRODUCER, n.PUBLISH, "store one message, long field names"),
        (c.SEND_MESSAGE_V2, s.PRODUCER, n.PUBLISH, "store one message or a batch, one-letter fields"),
        (c.SEND_BATCH_MESSAGE, s.PRODUCER, n.PUBLISH, "store a batch"),
        (c.PULL_MESSAGE, s.CONSUMER, n.SUBSCRIBE, "messages of a queue from an offset; may be held"),
        (c.LITE_PULL_MESSAGE, s.CONSUMER, n.SUBSCRIBE, "the same from a lite pull consumer"),
        (c.VIEW_MESSAGE_BY_ID, s.CLIENT, n.SUBSCRIBE, "one message by its place in the log"),
        # ---- offsets
        (c.QUERY_CONSUMER_OFFSET, s.CONSUMER, n.SUBSCRIBE, "a group's offset in a queue"),
        (c.UPDATE_CONSUMER_OFFSET, s.CONSUMER, n.SUBSCRIBE, "store a group's offset in a queue"),
        (c.SEARCH_OFFSET_BY_TIMESTAMP, s.CLIENT, n.SUBSCRIBE, "the first offset at or after a time"),
        (c.GET_MAX_OFFSET, s.CLIENT, n.SUBSCRIBE, "the next offset of a queue"),
        (c.GET_MIN_OFFSET, s.CLIENT, n.SUBSCRIBE, "the first offset of a queue"),
        (c.GET_EARLIEST_MSG_STORETIME, s.CLIENT, n.SUBSCRIBE, "store time of a queue's first message"),
        (c.GET_ALL_CONSUMER_OFFSET, s.ADMIN, n.READ_CLUSTER, "the whole offset table"),
        # ---- clients
        (c.HEART_BEAT, s.CLIENT, n.NOTHING, "I am here, with these groups and subscriptions"),
        (c.UNREGISTER_CLIENT, s.CLIENT, n.NOTHING, "I leave"),
        (c.GET_CONSUMER_LIST_BY_GROUP, s.CONSUMER, n.SUBSCRIBE, "client ids of a group's members"),
        (c.NOTIFY_CONSUMER_IDS_CHANGED, s.TO_CLIENT, n.NOTHING, "one-way: the group has changed"),
        (c.LOCK_BATCH_MQ, s.CONSUMER, n.SUBSCRIBE, "lock queues for ordered consumption"),
        (c.UNLOCK_BATCH_MQ, s.CONSUMER, n.SUBSCRIBE, "give locked queues back"),
        (c.CHECK_CLIENT_CONFIG, s.CONSUMER, n.NOTHING, "does this subscription compile?"),
        # ---- name server
        (c.REGISTER_BROKER, s.BROKER, n.JOIN_CLUSTER, "I am here, with these topics"),
        (c.UNREGISTER_BROKER, s.BROKER, n.JOIN_CLUSTER, "I leave"),
        (c.QUERY_DATA_VERSION, s.BROKER, n.JOIN_CLUSTER, "is my topic table newer than yours?"),
        (c.BROKER_HEARTBEAT, s.BROKER, n.JOIN_CLUSTER, "I am still here"),
        (c.GET_BROKER_MEMBER_GROUP, s.BROKER, n.READ_CLUSTER, "addresses of one broker name"),
        (c.REGISTER_TOPIC_IN_NAMESRV, s.BROKER, n.JOIN_CLUSTER, "one topic's queues"),
        (c.GET_ROUTEINFO_BY_TOPIC, s.CLIENT, n.NOTHING, "where does this topic live?"),
        (c.GET_BROKER_CLUSTER_INFO, s.ADMIN, n.READ_CLUSTER, "clusters, brokers, addresses"),
        (c.PUT_KV_CONFIG, s.ADMIN, n.CHANGE_CLUSTER, "store a key-value setting"),
        (c.GET_KV_CONFIG, s.ADMIN, n.READ_CLUSTER, "one key-value setting"),
        (c.DELETE_KV_CONFIG, s.ADMIN, n.CHANGE_CLUSTER, "forget a key-value setting"),
        (c.GET_KVLIST_BY_NAMESPACE, s.ADMIN, n.READ_CLUSTER, "all settings of a namespace"),
        (c.WIPE_WRITE_PERM_OF_BROKER, s.ADMIN, n.CHANGE_CLUSTER, "no more sends to a broker name"),
        (c.ADD_WRITE_PERM_OF_BROKER, s.ADMIN, n.CHANGE_CLUSTER, "sends to a broker name again"),
        (c.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, s.ADMIN, n.READ_CLUSTER, "all topic names"),
        (c.DELETE_TOPIC_IN_NAMESRV, s.ADMIN, n.CHANGE_CLUSTER, "forget a topic's route"),
        (c.GET_TOPICS_BY_CLUSTER, s.ADMIN, n.READ_CLUSTER, "topic names of a cluster"),
        (c.GET_SYSTEM_TOPIC_LIST_FROM_NS, s.ADMIN, n.READ_CLUSTER, "cluster and broker names"),
        (c.GET_UNIT_TOPIC_LIST, s.ADMIN, n.READ_CLUSTER, "topics with the unit flag"),
        (c.GET_HAS_UNIT_SUB_TOPIC_LIST, s.ADMIN, n.READ_CLUSTER, "topics with unit subscriptions"),
        (c.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST, s.ADMIN, n.READ_CLUSTER, "those without the unit flag"),
        (c.UPDATE_NAMESRV_CONFIG, s.ADMIN, n.CHANGE_CLUSTER, "change name server settings"),
        (c.GET_NAMESRV_CONFIG, s.ADMIN, n.READ_CLUSTER, "name server settings"),
        # ---- administration of a broker
        (c.UPDATE_AND_CREATE_TOPIC, s.ADMIN, n.CHANGE_CLUSTER, "create or change a topic"),
        (c.DELETE_TOPIC_IN_BROKER, s.ADMIN, n.CHANGE_CLUSTER, "delete a topic"),
        (c.GET_ALL_TOPIC_CONFIG, s.ADMIN, n.READ_CLUSTER, "the whole topic table"),
        (c.GET_TOPIC_CONFIG, s.ADMIN, n.READ_CLUSTER, "one topic's settings"),
        (c.GET_TOPIC_STATS_INFO, s.ADMIN, n.READ_CLUSTER, "offsets of a topic's queues"),
        (c.GET_SYSTEM_TOPIC_LIST_FROM_BROKER, s.ADMIN, n.READ_CLUSTER, "built-in topics"),
        (c.UPDATE_BROKER_CONFIG, s.ADMIN, n.CHANGE_CLUSTER, "change settings at run time"),
        (c.GET_BROKER_CONFIG, s.ADMIN, n.READ_CLUSTER, "settings"),
        (c.GET_BROKER_RUNTIME_INFO, s.ADMIN, n.READ_CLUSTER, "counters and state as text"),
        (c.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, s.ADMIN, n.CHANGE_CLUSTER, "create or change a group"),
        (c.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, s.ADMIN, n.READ_CLUSTER, "the whole group table"),
        (c.GET_SUBSCRIPTIONGROUP_CONFIG, s.ADMIN, n.READ_CLUSTER, "one group's settings"),
        (c.DELETE_SUBSCRIPTIONGROUP, s.ADMIN, n.CHANGE_CLUSTER, "delete a group"),
        (c.GET_CONSUMER_CONNECTION_LIST, s.ADMIN, n.READ_CLUSTER, "a group's connections"),
        (c.GET_PRODUCER_CONNECTION_LIST, s.ADMIN, n.READ_CLUSTER, "a producer group's connections"),
        (c.GET_CONSUME_STATS, s.ADMIN, n.READ_CLUSTER, "a group's progress by queue"),
        (c.QUERY_TOPIC_CONSUME_BY_WHO, s.ADMIN, n.READ_CLUSTER, "groups of a topic"),
        (c.QUERY_TOPICS_BY_CONSUMER, s.ADMIN, n.READ_CLUSTER, "topics of a group"),
    ]
    return {code: RequestKind(code, sender, need, asks) for code, sender, need, asks in rows}


REQUESTS = _table()
