"""Every request code we answer or send: who sends it, what it needs, and in one line what it asks.

The numbers and names are RocketMQ's RequestCode.  `REQUESTS` is the one table: dispatch, permissions and the
documents read it.  The fields of each request are its header class in `wire/headers`.
"""

from dataclasses import dataclass
from enum import Enum, IntEnum

from bolide.model.response_code import ResponseCode

__all__ = ["REQUESTS", "Need", "RequestCode", "RequestKind", "ResponseCode", "Sender"]


class RequestCode(IntEnum):
    SEND_MESSAGE = 10
    PULL_MESSAGE = 11
    QUERY_MESSAGE = 12
    QUERY_CONSUMER_OFFSET = 14
    UPDATE_CONSUMER_OFFSET = 15
    UPDATE_AND_CREATE_TOPIC = 17
    UPDATE_AND_CREATE_TOPIC_LIST = 18
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
    CONSUMER_SEND_MSG_BACK = 36
    END_TRANSACTION = 37
    GET_CONSUMER_LIST_BY_GROUP = 38
    CHECK_TRANSACTION_STATE = 39
    NOTIFY_CONSUMER_IDS_CHANGED = 40
    LOCK_BATCH_MQ = 41
    UNLOCK_BATCH_MQ = 42
    GET_ALL_CONSUMER_OFFSET = 43
    GET_ALL_DELAY_OFFSET = 45
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
    RESET_CONSUMER_CLIENT_OFFSET = 220
    GET_CONSUMER_STATUS_FROM_CLIENT = 221
    INVOKE_BROKER_TO_RESET_OFFSET = 222
    INVOKE_BROKER_TO_GET_CONSUMER_STATUS = 223
    GET_TOPICS_BY_CLUSTER = 224
    UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST = 225
    QUERY_TOPIC_CONSUME_BY_WHO = 300
    QUERY_CONSUME_TIME_SPAN = 303
    GET_SYSTEM_TOPIC_LIST_FROM_NS = 304
    GET_SYSTEM_TOPIC_LIST_FROM_BROKER = 305
    CLEAN_EXPIRED_CONSUMEQUEUE = 306
    GET_CONSUMER_RUNNING_INFO = 307
    QUERY_CORRECTION_OFFSET = 308
    CONSUME_MESSAGE_DIRECTLY = 309
    SEND_MESSAGE_V2 = 310
    GET_UNIT_TOPIC_LIST = 311
    GET_HAS_UNIT_SUB_TOPIC_LIST = 312
    GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST = 313
    CLONE_GROUP_OFFSET = 314
    VIEW_BROKER_STATS_DATA = 315
    CLEAN_UNUSED_TOPIC = 316
    GET_BROKER_CONSUME_STATS = 317
    UPDATE_NAMESRV_CONFIG = 318
    GET_NAMESRV_CONFIG = 319
    SEND_BATCH_MESSAGE = 320
    QUERY_CONSUME_QUEUE = 321
    QUERY_DATA_VERSION = 322
    RESUME_CHECK_HALF_MESSAGE = 323
    SEND_REPLY_MESSAGE = 324
    SEND_REPLY_MESSAGE_V2 = 325
    PUSH_REPLY_MESSAGE_TO_CLIENT = 326
    ADD_WRITE_PERM_OF_BROKER = 327
    GET_ALL_PRODUCER_INFO = 328
    DELETE_EXPIRED_COMMITLOG = 329
    QUERY_TOPICS_BY_CONSUMER = 343
    QUERY_SUBSCRIPTION_BY_CONSUMER = 345
    GET_TOPIC_CONFIG = 351
    GET_SUBSCRIPTIONGROUP_CONFIG = 352
    LITE_PULL_MESSAGE = 361
    RECALL_MESSAGE = 370
    GET_BROKER_MEMBER_GROUP = 901
    BROKER_HEARTBEAT = 904
    NOTIFY_MIN_BROKER_ID_CHANGE = 905
    BEGIN_WRITE = 30001
    """bolide's own; the original's numbers end far below, and one of its encodings has 16 bits for them."""


class Sender(Enum):
    PRODUCER = "producer"
    CONSUMER = "consumer"
    CLIENT = "any client"
    ADMIN = "admin tool"
    BROKER = "broker"
    TO_CLIENT = "broker, to a client"
    TO_BROKER = "name server, to a broker"


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


_R, _S, _N = RequestCode, Sender, Need

_ROWS = (
    # ---- messages
    (_R.SEND_MESSAGE, _S.PRODUCER, _N.PUBLISH, "store one message, long field names"),
    (_R.SEND_MESSAGE_V2, _S.PRODUCER, _N.PUBLISH, "store one message or a batch, one-letter fields"),
    (_R.SEND_BATCH_MESSAGE, _S.PRODUCER, _N.PUBLISH, "store a batch"),
    (_R.BEGIN_WRITE, _S.PRODUCER, _N.PUBLISH, "what is stored of a bulk write that begins, perhaps again?"),
    (_R.RECALL_MESSAGE, _S.PRODUCER, _N.PUBLISH, "call a timed message back before it is due"),
    (_R.END_TRANSACTION, _S.PRODUCER, _N.PUBLISH, "commit a half message or roll it back"),
    (_R.CHECK_TRANSACTION_STATE, _S.TO_CLIENT, _N.NOTHING, "one-way: how did this transaction end?"),
    (
        _R.SEND_REPLY_MESSAGE,
        _S.CONSUMER,
        _N.PUBLISH,
        "hand a reply to whoever waits for it, long field names",
    ),
    (_R.SEND_REPLY_MESSAGE_V2, _S.CONSUMER, _N.PUBLISH, "the same, one-letter fields"),
    (_R.PUSH_REPLY_MESSAGE_TO_CLIENT, _S.TO_CLIENT, _N.NOTHING, "the reply that you wait for"),
    (_R.PULL_MESSAGE, _S.CONSUMER, _N.SUBSCRIBE, "messages of a queue from an offset; may be held"),
    (_R.LITE_PULL_MESSAGE, _S.CONSUMER, _N.SUBSCRIBE, "the same from a lite pull consumer"),
    (
        _R.CONSUMER_SEND_MSG_BACK,
        _S.CONSUMER,
        _N.SUBSCRIBE,
        "a message has failed: bring it again, or bury it",
    ),
    (_R.QUERY_MESSAGE, _S.CLIENT, _N.SUBSCRIBE, "messages by a key, a unique key or a tag"),
    (_R.VIEW_MESSAGE_BY_ID, _S.CLIENT, _N.SUBSCRIBE, "one message by its place in the log"),
    (_R.QUERY_CONSUME_QUEUE, _S.ADMIN, _N.READ_CLUSTER, "entries of a queue: places, sizes, tag codes"),
    # ---- offsets
    (_R.QUERY_CONSUMER_OFFSET, _S.CONSUMER, _N.SUBSCRIBE, "a group's offset in a queue"),
    (_R.UPDATE_CONSUMER_OFFSET, _S.CONSUMER, _N.SUBSCRIBE, "store a group's offset in a queue"),
    (_R.SEARCH_OFFSET_BY_TIMESTAMP, _S.CLIENT, _N.SUBSCRIBE, "the first offset at or after a time"),
    (_R.GET_MAX_OFFSET, _S.CLIENT, _N.SUBSCRIBE, "the next offset of a queue"),
    (_R.GET_MIN_OFFSET, _S.CLIENT, _N.SUBSCRIBE, "the first offset of a queue"),
    (_R.GET_EARLIEST_MSG_STORETIME, _S.CLIENT, _N.SUBSCRIBE, "store time of a queue's first message"),
    (_R.GET_ALL_CONSUMER_OFFSET, _S.ADMIN, _N.READ_CLUSTER, "the whole offset table"),
    (_R.GET_ALL_DELAY_OFFSET, _S.ADMIN, _N.READ_CLUSTER, "how far delayed messages were delivered"),
    (
        _R.INVOKE_BROKER_TO_RESET_OFFSET,
        _S.ADMIN,
        _N.CHANGE_CLUSTER,
        "let a group go on at a time or an offset",
    ),
    (_R.RESET_CONSUMER_CLIENT_OFFSET, _S.TO_CLIENT, _N.NOTHING, "one-way: go on at these offsets"),
    (_R.CLONE_GROUP_OFFSET, _S.ADMIN, _N.CHANGE_CLUSTER, "give a group the offsets of another one"),
    (_R.QUERY_CORRECTION_OFFSET, _S.ADMIN, _N.READ_CLUSTER, "the least offsets of all groups of a topic"),
    # ---- clients
    (_R.HEART_BEAT, _S.CLIENT, _N.NOTHING, "I am here, with these groups and subscriptions"),
    (_R.UNREGISTER_CLIENT, _S.CLIENT, _N.NOTHING, "I leave"),
    (_R.GET_CONSUMER_LIST_BY_GROUP, _S.CONSUMER, _N.SUBSCRIBE, "client ids of a group's members"),
    (_R.NOTIFY_CONSUMER_IDS_CHANGED, _S.TO_CLIENT, _N.NOTHING, "one-way: the group has changed"),
    (_R.LOCK_BATCH_MQ, _S.CONSUMER, _N.SUBSCRIBE, "lock queues for ordered consumption"),
    (_R.UNLOCK_BATCH_MQ, _S.CONSUMER, _N.SUBSCRIBE, "give locked queues back"),
    (_R.CHECK_CLIENT_CONFIG, _S.CONSUMER, _N.NOTHING, "does this subscription compile?"),
    # ---- name server
    (_R.REGISTER_BROKER, _S.BROKER, _N.JOIN_CLUSTER, "I am here, with these topics"),
    (_R.UNREGISTER_BROKER, _S.BROKER, _N.JOIN_CLUSTER, "I leave"),
    (_R.QUERY_DATA_VERSION, _S.BROKER, _N.JOIN_CLUSTER, "is my topic table newer than yours?"),
    (_R.BROKER_HEARTBEAT, _S.BROKER, _N.JOIN_CLUSTER, "I am still here"),
    (_R.NOTIFY_MIN_BROKER_ID_CHANGE, _S.TO_BROKER, _N.NOTHING, "one-way: somebody else speaks for your name"),
    (_R.GET_BROKER_MEMBER_GROUP, _S.BROKER, _N.READ_CLUSTER, "addresses of one broker name"),
    (_R.REGISTER_TOPIC_IN_NAMESRV, _S.BROKER, _N.JOIN_CLUSTER, "one topic's queues"),
    (_R.GET_ROUTEINFO_BY_TOPIC, _S.CLIENT, _N.NOTHING, "where does this topic live?"),
    (_R.GET_BROKER_CLUSTER_INFO, _S.ADMIN, _N.READ_CLUSTER, "clusters, brokers, addresses"),
    (_R.PUT_KV_CONFIG, _S.ADMIN, _N.CHANGE_CLUSTER, "store a key-value setting"),
    (_R.GET_KV_CONFIG, _S.ADMIN, _N.READ_CLUSTER, "one key-value setting"),
    (_R.DELETE_KV_CONFIG, _S.ADMIN, _N.CHANGE_CLUSTER, "forget a key-value setting"),
    (_R.GET_KVLIST_BY_NAMESPACE, _S.ADMIN, _N.READ_CLUSTER, "all settings of a namespace"),
    (_R.WIPE_WRITE_PERM_OF_BROKER, _S.ADMIN, _N.CHANGE_CLUSTER, "no more sends to a broker name"),
    (_R.ADD_WRITE_PERM_OF_BROKER, _S.ADMIN, _N.CHANGE_CLUSTER, "sends to a broker name again"),
    (_R.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, _S.ADMIN, _N.READ_CLUSTER, "all topic names"),
    (_R.DELETE_TOPIC_IN_NAMESRV, _S.ADMIN, _N.CHANGE_CLUSTER, "forget a topic's route"),
    (_R.GET_TOPICS_BY_CLUSTER, _S.ADMIN, _N.READ_CLUSTER, "topic names of a cluster"),
    (_R.GET_SYSTEM_TOPIC_LIST_FROM_NS, _S.ADMIN, _N.READ_CLUSTER, "cluster and broker names"),
    (_R.GET_UNIT_TOPIC_LIST, _S.ADMIN, _N.READ_CLUSTER, "topics with the unit flag"),
    (_R.GET_HAS_UNIT_SUB_TOPIC_LIST, _S.ADMIN, _N.READ_CLUSTER, "topics with unit subscriptions"),
    (_R.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST, _S.ADMIN, _N.READ_CLUSTER, "those without the unit flag"),
    (_R.UPDATE_NAMESRV_CONFIG, _S.ADMIN, _N.CHANGE_CLUSTER, "change name server settings"),
    (_R.GET_NAMESRV_CONFIG, _S.ADMIN, _N.READ_CLUSTER, "name server settings"),
    # ---- administration of a broker
    (_R.UPDATE_AND_CREATE_TOPIC, _S.ADMIN, _N.CHANGE_CLUSTER, "create or change a topic"),
    (_R.UPDATE_AND_CREATE_TOPIC_LIST, _S.ADMIN, _N.CHANGE_CLUSTER, "create or change several topics"),
    (_R.DELETE_TOPIC_IN_BROKER, _S.ADMIN, _N.CHANGE_CLUSTER, "delete a topic"),
    (_R.GET_ALL_TOPIC_CONFIG, _S.ADMIN, _N.READ_CLUSTER, "the whole topic table"),
    (_R.GET_TOPIC_CONFIG, _S.ADMIN, _N.READ_CLUSTER, "one topic's settings"),
    (_R.GET_TOPIC_STATS_INFO, _S.ADMIN, _N.READ_CLUSTER, "offsets of a topic's queues"),
    (_R.GET_SYSTEM_TOPIC_LIST_FROM_BROKER, _S.ADMIN, _N.READ_CLUSTER, "built-in topics"),
    (_R.UPDATE_BROKER_CONFIG, _S.ADMIN, _N.CHANGE_CLUSTER, "change settings at run time"),
    (_R.GET_BROKER_CONFIG, _S.ADMIN, _N.READ_CLUSTER, "settings"),
    (_R.GET_BROKER_RUNTIME_INFO, _S.ADMIN, _N.READ_CLUSTER, "counters and state as text"),
    (_R.CLEAN_EXPIRED_CONSUMEQUEUE, _S.ADMIN, _N.CHANGE_CLUSTER, "delete queue files of expired messages"),
    (_R.CLEAN_UNUSED_TOPIC, _S.ADMIN, _N.CHANGE_CLUSTER, "delete queues of topics that are gone"),
    (_R.DELETE_EXPIRED_COMMITLOG, _S.ADMIN, _N.CHANGE_CLUSTER, "delete expired messages at this hour"),
    (_R.RESUME_CHECK_HALF_MESSAGE, _S.ADMIN, _N.CHANGE_CLUSTER, "ask again how a transaction has ended"),
    (_R.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, _S.ADMIN, _N.CHANGE_CLUSTER, "create or change a group"),
    (
        _R.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
        _S.ADMIN,
        _N.CHANGE_CLUSTER,
        "create or change several groups",
    ),
    (_R.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, _S.ADMIN, _N.READ_CLUSTER, "the whole group table"),
    (_R.GET_SUBSCRIPTIONGROUP_CONFIG, _S.ADMIN, _N.READ_CLUSTER, "one group's settings"),
    (_R.DELETE_SUBSCRIPTIONGROUP, _S.ADMIN, _N.CHANGE_CLUSTER, "delete a group"),
    (_R.GET_CONSUMER_CONNECTION_LIST, _S.ADMIN, _N.READ_CLUSTER, "a group's connections"),
    (_R.GET_PRODUCER_CONNECTION_LIST, _S.ADMIN, _N.READ_CLUSTER, "a producer group's connections"),
    (_R.GET_ALL_PRODUCER_INFO, _S.ADMIN, _N.READ_CLUSTER, "all connected producers"),
    (_R.QUERY_SUBSCRIPTION_BY_CONSUMER, _S.ADMIN, _N.READ_CLUSTER, "what a group wants of a topic"),
    (_R.GET_CONSUMER_RUNNING_INFO, _S.ADMIN, _N.READ_CLUSTER, "what a consumer does now; passed on to it"),
    (
        _R.CONSUME_MESSAGE_DIRECTLY,
        _S.ADMIN,
        _N.CHANGE_CLUSTER,
        "let a consumer have one message; passed on to it",
    ),
    (
        _R.INVOKE_BROKER_TO_GET_CONSUMER_STATUS,
        _S.ADMIN,
        _N.READ_CLUSTER,
        "how far each member is, by its own word",
    ),
    (_R.GET_CONSUMER_STATUS_FROM_CLIENT, _S.TO_CLIENT, _N.NOTHING, "how far are you?"),
    (_R.GET_CONSUME_STATS, _S.ADMIN, _N.READ_CLUSTER, "a group's progress by queue"),
    (_R.GET_BROKER_CONSUME_STATS, _S.ADMIN, _N.READ_CLUSTER, "progress of all groups"),
    (
        _R.QUERY_CONSUME_TIME_SPAN,
        _S.ADMIN,
        _N.READ_CLUSTER,
        "times of a topic's messages, and where a group is",
    ),
    (_R.VIEW_BROKER_STATS_DATA, _S.ADMIN, _N.READ_CLUSTER, "how much went in or out of late"),
    (_R.QUERY_TOPIC_CONSUME_BY_WHO, _S.ADMIN, _N.READ_CLUSTER, "groups of a topic"),
    (_R.QUERY_TOPICS_BY_CONSUMER, _S.ADMIN, _N.READ_CLUSTER, "topics of a group"),
)

REQUESTS = {code: RequestKind(code, sender, need, asks) for code, sender, need, asks in _ROWS}
