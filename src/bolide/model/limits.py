"""Limits: how much of everything is taken, kept or made to wait.  One table, from which docs/limits.md is written.

Every number that keeps somebody else's input from costing without bound stands here, with what it bounds and what
happens beyond it.  No setting moves a limit; some settings go up to one.  A limit is an `int`, so that code compares
with it.  `make fix` writes the page again.
"""

from typing import Final

from bolide.model import spark_limits
from bolide.model.limit import KIB, MIB, Limit, Where


def table() -> dict[str, Limit]:
    """Every limit by its name, in the order in which they stand here; at last those of `spark_limits.py`."""
    named = {**globals(), **vars(spark_limits)}
    return {name: value for name, value in named.items() if isinstance(value, Limit)}


# ---- connections -----------------------------------------------------------------------------------------------

# Because of it the first byte of a frame is 0 or 1: the scanners of the hot path rely on that.
FRAME_BYTES_MAX: Final = Limit(
    16 * MIB, Where.CONNECTION, "bytes of one frame", "the connection is closed, as by the original"
)
# Every legal request fits: a message's 32,767 bytes of properties may be written as six bytes each (\u0001), and so may
# the 32,768 characters of a subscription.
HEADER_BYTES_MAX: Final = Limit(
    256 * KIB,
    Where.CONNECTION,
    "bytes of a request's header, its remark included",
    "the connection is closed",
)
HEADER_FIELDS_MAX: Final = Limit(
    128, Where.CONNECTION, "fields of a header; real clients send 20", "the connection is closed"
)
DIALECT_BYTES_MAX: Final = Limit(
    16 * KIB,
    Where.CONNECTION,
    "bytes of a request's body in Java's dialect of JSON (map keys without quotes), which is read slowly",
    "the request is refused; standard JSON may fill its frame",
)
KEPT_BYTES_MAX: Final = Limit(
    128 * MIB,
    Where.CONNECTION,
    "bytes kept for all connections together: beginnings of frames, answers that nobody reads, waiting requests",
    "those that bring nothing and have most are closed, those that keep nothing never",
)
# How much one socket read may bring: smaller frames come whole, or wait in part with their connection.
INTAKE_BYTES: Final = 256 * KIB
LARGE_FRAME_S_MAX: Final = 8
LARGE_FRAMES_BYTES_MAX: Final = Limit(
    64 * MIB,
    Where.CONNECTION,
    f"bytes of frames above {INTAKE_BYTES // KIB} KiB that are being received at the same time",
    f"further ones wait; meanwhile who would need more than {LARGE_FRAME_S_MAX} seconds for its frame is closed",
)
ORDINARY_FRAME_BYTES_MAX: Final = Limit(
    4 * MIB + HEADER_BYTES_MAX,
    Where.CONNECTION,
    "bytes of a frame that has a share in three quarters of that room: a message of the usual maxMessageSize fits",
    "it has a share in the last quarter, where larger ones wait for each other alone",
)
IN_FLIGHT_MAX: Final = Limit(
    100_000,
    Where.CONNECTION,
    "requests that wait for something, of all connections",
    "they are refused as busy",
)
IN_FLIGHT_OF_ONE_MAX: Final = Limit(
    1024,
    Where.CONNECTION,
    "requests of one connection that wait for something",
    "it is not read from meanwhile",
)
LARGE_ANSWERS_MAX: Final = Limit(
    16, Where.CONNECTION, "large answers in the making for one connection", "further ones are refused as busy"
)
LARGE_ANSWER_SMALL_BYTES: Final = 256 * KIB
LARGE_ANSWERS_AT_ONCE: Final = Limit(
    4,
    Where.CONNECTION,
    f"answers in the making of which {LARGE_ANSWER_SMALL_BYTES // KIB} KiB are there already, of all connections",
    "further ones go on when one of them is whole; shorter ones do not wait for them",
)
LARGE_ANSWERS_BEGUN_MAX: Final = Limit(
    32, Where.CONNECTION, "answers in the making of which less is there", "further ones begin after them"
)
# A frame that its reader takes; the rest is for the header.
LARGE_ANSWER_BYTES_MAX: Final = Limit(
    FRAME_BYTES_MAX - 64 * KIB,
    Where.CONNECTION,
    "bytes of a list of topics, groups or the like",
    "the request is answered with an error that says so",
)
WRITE_BUFFER_BYTES_MAX: Final = Limit(
    4 * MIB,
    Where.CONNECTION,
    "bytes of answers that a connection has not read",
    "it is not read from meanwhile",
)
TURN_MS_MAX: Final = Limit(
    2,
    Where.CONNECTION,
    "milliseconds that requests of all connections take in one go, plain sends aside",
    "further ones wait, and have as many in each turn of the loop; first who has used least, every fourth time who has"
    " waited longest",
)
TURN_BYTES_MAX: Final = Limit(
    512 * KIB,
    Where.CONNECTION,
    "bytes that connections which bring many at once bring together in one turn of the loop",
    "they wait, and bring as many in each turn; first who has used least",
)
REQUESTS_PER_TURN: Final = Limit(
    64, Where.CONNECTION, "requests of a connection in one go, plain sends aside", "others have their turn"
)
IDLE_MS_MAX: Final = Limit(
    120_000,
    Where.CONNECTION,
    "milliseconds in which a connection has brought no whole frame, or has read none of what waits for it",
    "it is closed, whatever is pending",
)
CALLS_MAX: Final = Limit(
    65_536, Where.CONNECTION, "calls of ours that wait for an answer on one connection", "a further one fails"
)
CONNECTIONS_MAX: Final = Limit(16_384, Where.CONNECTION, "open connections", "new ones are closed")
PASSES_MAX: Final = Limit(
    4096,
    Where.CONNECTION,
    "answers of the guard that are remembered for one connection; none where everybody may do everything",
    "they are asked for again",
)

# ---- broker ----------------------------------------------------------------------------------------------------

TOPICS_MAX: Final = Limit(100_000, Where.BROKER, "topics", "no more are made")
GROUPS_MAX: Final = Limit(
    100_000,
    Where.BROKER,
    "consumer groups; a host makes no more than stay free for others",
    "no more are made; above a quarter those go that have no settings, offsets and members",
)
# Each queue costs a folder once it is written to.
TOPIC_QUEUES_MAX: Final = Limit(16_384, Where.BROKER, "queues of one topic", "refused")
LANES_QUEUES_MAX: Final = Limit(
    1024 * 1024,
    Where.BROKER,
    "queues of the topics whose plain messages take the fast way",
    "all are found anew, as they are written to",
)
# More than TOPIC_QUEUES_MAX, because others have other limits; larger numbers are no numbers of queues.
TOLD_QUEUES_MAX: Final = Limit(
    65_536, Where.CONNECTION, "queues of one topic of which somebody else tells", "that message is refused"
)
CONFIG_BYTES_MAX: Final = Limit(
    64 * KIB,
    Where.BROKER,
    "bytes of a group's settings; of a topic's attributes and unknown members",
    "refused",
)
# In the table's file, in a registration and in answers there are some more levels around it.
CONFIG_DEPTH_MAX: Final = Limit(
    16, Where.BROKER, "levels of nested JSON among the unknown members of a topic or a group", "refused"
)
SETTINGS_BYTES_MAX: Final = Limit(64 * KIB, Where.BROKER, "bytes of settings in one request", "refused")
PULL_BYTES_MAX: Final = Limit(
    8 * MIB, Where.BROKER, "bytes of messages in one pull, unless it is a single larger one", "the next pull has them",
    bounds=("maxTransferBytesOnMessageInMemory", "maxTransferBytesOnMessageInDisk"),
)  # fmt: skip
PULL_COUNT_MAX: Final = Limit(
    32_768, Where.BROKER, "messages in one pull", "the next pull has them",
    bounds=("maxTransferCountOnMessageInMemory", "maxTransferCountOnMessageInDisk"),
)  # fmt: skip
# Clients give a pull up after 30 s, so it must be answered before, whatever it asks for.
HOLD_MS_MAX: Final = Limit(
    25_000, Where.BROKER, "milliseconds that a pull waits for messages", "it is answered that there are none",
    bounds=("shortPollingTimeMills",),
)  # fmt: skip
JSON_DEPTH_MAX: Final = Limit(64, Where.CONNECTION, "levels of nested JSON, in files too", "refused")

# Packed for a registration, topics take less than half of it, whatever their names are: that fits into a frame.
TOPIC_TABLE_BYTES_MAX: Final = Limit(
    32 * MIB, Where.BROKER, "bytes of all topics, as JSON", "no more are made, and none grows"
)
GROUP_TABLE_BYTES_MAX: Final = Limit(
    64 * MIB,
    Where.BROKER,
    "bytes of all groups, as JSON; a host brings no more than stay free for others",
    "no more are made, and none grows; above a quarter as above",
)
OFFSETS_BYTES_MAX: Final = Limit(
    256 * MIB,
    Where.BROKER,
    "bytes of all groups' offsets; those that only show where members pulled take half of it at most",
    "known ones move, new ones are refused",
)
PLAIN_REGISTRATION_BYTES_MAX: Final = Limit(
    4 * MIB, Where.BROKER, "bytes of a registration as JSON", "it goes to name servers compressed"
)
RETRY_TOPICS_PER_CONNECTION_MAX: Final = Limit(
    256,
    Where.BROKER,
    "retry topics that heartbeats of one connection make",
    "a group gets its retry topic with the first message that is sent to it",
)

# Java clients split what they send at one to four MiB; the smallest message that they make has 75 bytes.
BATCH_MESSAGES_MAX: Final = Limit(16_384, Where.BROKER, "messages of one batch", "the batch is refused whole")
BATCH_ODD_MESSAGES_MAX: Final = Limit(
    1024,
    Where.BROKER,
    "messages of one batch in which one needs a decision, having no unique key for example",
    "the batch is refused whole",
)

# A pull of usual length counts for one and a half KiB: a connection can wait at all queues of the widest topic.
HELD_BYTES_MAX: Final = Limit(
    128 * MIB,
    Where.BROKER,
    "bytes of pulls that wait for messages",
    "whoever waits with most is answered early, or the new pull is answered at once",
)
HELD_CONNECTION_BYTES_MAX: Final = Limit(
    24 * MIB,
    Where.BROKER,
    "bytes of pulls of one connection that wait for messages",
    "its next pull is answered at once",
)
PULL_BULK_MESSAGES_MAX: Final = Limit(
    32_768, Where.BROKER, "messages that a pull for a whole topic brings", "the next pull brings them"
)
PULL_BULK_BYTES_MAX: Final = Limit(
    4 * MIB, Where.BROKER, "bytes that a pull for a whole topic brings", "the next pull brings them"
)
PLANS_BYTES_MAX: Final = Limit(
    64 * MIB,
    Where.BROKER,
    "bytes of what is remembered of pulls that are repeated",
    "the one not used for longest is forgotten, and checked again when it comes back",
)
PLAN_SHAPE_BYTES_MAX: Final = Limit(
    2 * KIB, Where.BROKER, "bytes of a pull that is remembered", "it is checked each time"
)

ID_LENGTH_MAX: Final = Limit(
    255, Where.BROKER, "characters of a client id or a producer group", "the request is refused"
)
EXPRESSION_LENGTH_MAX: Final = Limit(
    32_768, Where.BROKER, "characters of a tag expression", "the request is refused"
)
SQL_LENGTH_MAX: Final = Limit(
    4096, Where.BROKER, "characters of an SQL expression", "the subscription is refused"
)
SQL_DEPTH_MAX: Final = Limit(
    32,
    Where.BROKER,
    "levels of parentheses, signs and NOT in an SQL expression",
    "the subscription is refused",
)
SQL_TERMS_MAX: Final = Limit(
    64, Where.BROKER, "properties and values in an SQL expression", "the subscription is refused"
)
SQL_NAMES_MAX: Final = Limit(
    32, Where.BROKER, "different properties in an SQL expression", "the subscription is refused"
)
EXAMINED_BYTES_MAX: Final = Limit(
    MIB,
    Where.BROKER,
    "bytes of properties (while it waits, of messages) that one pull looks through, times the terms of its SQL",
    "it is answered with what it has found, and comes back for more",
)
CLIENT_BODY_BYTES_MAX: Final = Limit(
    2 * MIB, Where.BROKER, "bytes of a heartbeat, a client check or a lock request", "the request is refused"
)
HEARTBEAT_SUBSCRIPTIONS_MAX: Final = Limit(
    4096, Where.BROKER, "subscriptions of one heartbeat", "the request is refused"
)
HEARTBEAT_TAGS_MAX: Final = Limit(
    32_768, Where.BROKER, "tags and tag codes of one heartbeat", "the request is refused"
)
# Each character goes into a hash.
HEARTBEAT_TAGS_LENGTH_MAX: Final = Limit(
    262_144,
    Where.BROKER,
    "characters of the tags and expressions of one heartbeat",
    "the request is refused",
)
HEARTBEAT_NEW_GROUPS_MAX: Final = Limit(
    64, Where.BROKER, "consumer groups that one heartbeat brings into being", "the next heartbeat brings more"
)
CONNECTION_GROUPS_MAX: Final = Limit(
    1024, Where.BROKER, "groups of consumers and producers of one connection", "it is not in the others"
)
CONNECTION_CLIENT_BYTES_MAX: Final = Limit(
    4 * MIB, Where.BROKER, "bytes of groups and subscriptions of one connection", "it is not in the others"
)
CLIENTS_BYTES_MAX: Final = Limit(
    96 * MIB,
    Where.BROKER,
    "bytes of groups and subscriptions of all connections",
    "whoever has most loses one, or the newcomer gets none",
)
# A usual lock takes half a KiB.
LOCKS_BYTES_MAX: Final = Limit(
    64 * MIB,
    Where.BROKER,
    "bytes of locks for ordered consumption; a host takes no more than stay free for others, and a quarter is for hosts"
    " with few",
    "no more are locked, those held are renewed",
)
LOCK_QUEUES_MAX: Final = Limit(4096, Where.BROKER, "queues of one lock request", "the request is refused")

TOPICS_ASKED_MAX: Final = Limit(
    4096, Where.BROKER, "topics named in one request for a group's progress", "the request is refused"
)
# RocketMQ: maxMsgsNumBatch; and clients close a connection that brings a frame of more than 16 MiB.
QUERY_MESSAGES_MAX: Final = Limit(64, Where.BROKER, "messages found by a key", "the newest are given")
QUERY_BYTES_MAX: Final = Limit(
    8 * MIB, Where.BROKER, "bytes of messages found by a key", "the newest are given"
)
# A word of KEYS is an entry of twenty bytes: without a bound a message costs the index many times its size.
INDEXED_WORDS_MAX: Final = Limit(
    128,
    Where.BROKER,
    "words of its KEYS by which one message is found",
    "it is stored, and not found by others",
)
UNSAFE_ANSWERS_MAX: Final = Limit(
    65_536, Where.BROKER, "answers that wait for the disk", "messages are refused until there are fewer"
)

# ---- name server -----------------------------------------------------------------------------------------------

BROKERS_MAX: Final = Limit(2_000, Where.NAMESERVER, "registered brokers", "registrations are refused")
CLUSTERS_MAX: Final = Limit(
    256, Where.NAMESERVER, "clusters", "registrations of brokers of one more are refused"
)
BROKERS_PER_CONNECTION_MAX: Final = Limit(
    32, Where.NAMESERVER, "brokers that register over one connection", "registrations are refused"
)
ADDRESSES_PER_BROKER_MAX: Final = Limit(
    64, Where.NAMESERVER, "addresses that register under one broker name", "registrations are refused"
)
BROKER_TOPICS_MAX: Final = Limit(
    120_000, Where.NAMESERVER, "topics of one broker name", "registrations are refused"
)
ROUTE_TOPICS_MAX: Final = Limit(
    450_000,
    Where.NAMESERVER,
    "topics of all brokers; a connection adds no more than stay free for others",
    "what is new in a registration is refused, what was known stays",
)
ROUTE_ENTRIES_MAX: Final = Limit(
    1_400_000,
    Where.NAMESERVER,
    "pairs of a topic and a broker name; a connection adds no more than stay free for others",
    "what is new in a registration is refused, what was known stays",
)
SMALL_SHARE_MAX: Final = Limit(
    1_000,
    Where.NAMESERVER,
    "such pairs of one connection, once three quarters of either are taken",
    "what is new in a registration is refused, what was known stays",
)
REGISTERED_NAME_LENGTH_MAX: Final = Limit(
    255, Where.NAMESERVER, "characters of a name or an address in a registration", "it is refused"
)
REGISTERED_TOPIC_BYTES_MAX: Final = Limit(
    64 * KIB, Where.NAMESERVER, "bytes of one topic in a registration", "it is refused"
)
REGISTRATION_UNPACKED_BYTES_MAX: Final = Limit(
    32 * MIB, Where.NAMESERVER, "bytes that a compressed registration unpacks to", "it is refused"
)
FILTER_SERVERS_MAX: Final = Limit(
    16, Where.NAMESERVER, "filter servers of one broker", "the registration is refused"
)
CHANGES_PER_CONNECTION_MAX: Final = Limit(
    256,
    Where.NAMESERVER,
    "registrations and other changes of one connection that wait",
    "they are refused as busy",
)
CHANGES_PER_CONNECTION_BYTES_MAX: Final = Limit(
    20 * MIB, Where.NAMESERVER, "bytes of what waits so, of one connection", "it is refused as busy"
)
CHANGES_BYTES_MAX: Final = Limit(
    64 * MIB, Where.NAMESERVER, "bytes of what waits so, of all connections", "it is refused as busy"
)
KV_NAME_LENGTH_MAX: Final = Limit(
    255, Where.NAMESERVER, "characters of a namespace or a key of key-value settings", "the change is refused"
)
KV_VALUE_LENGTH_MAX: Final = Limit(
    64 * KIB, Where.NAMESERVER, "characters of one key-value setting", "the change is refused"
)
KV_TABLE_BYTES_MAX: Final = Limit(
    MIB,
    Where.NAMESERVER,
    "characters of all key-value settings, and 64 more for each",
    "the change is refused",
)
KV_CHANGES_WAITING_MAX: Final = Limit(
    64, Where.NAMESERVER, "changes of key-value settings that wait for the disk", "they are refused as busy"
)

# ---- clients ---------------------------------------------------------------------------------------------------

ROUTE_BYTES_MAX: Final = Limit(4 * MIB, Where.CLIENT, "bytes of a route", "the route is refused")
ROUTE_BROKERS_MAX: Final = Limit(1024, Where.CLIENT, "brokers in a route", "the route is refused")
ROUTE_QUEUES_MAX: Final = Limit(
    65_536, Where.CLIENT, "queues in a route, of all its brokers", "the route is refused"
)
BROKER_ADDRESSES_MAX: Final = Limit(
    16, Where.CLIENT, "addresses of one broker in a route", "the broker is left out, and a warning says so"
)
GROUP_MEMBERS_MAX: Final = Limit(
    16_384, Where.CLIENT, "members of a group", "the answer is refused; a consumer keeps the queues it has"
)
REMARK_LENGTH_MAX: Final = Limit(
    4096, Where.CLIENT, "characters of the reason that a server gives", "the rest is cut off"
)
BODY_UNPACKED_BYTES_MAX: Final = Limit(
    64 * MIB,
    Where.CLIENT,
    "bytes that one body unpacks to",
    "it stays packed, and is marked as a body that is bad",
)
# A pull always brings one message, however large: else a consumer would stop there.
PULL_COST_BYTES_MAX: Final = Limit(
    16 * MIB,
    Where.CLIENT,
    "bytes that the messages of one pull take, unpacked",
    "the next pull brings the rest",
)
QUEUE_CACHE_BYTES_MAX: Final = Limit(
    100 * MIB, Where.CLIENT, "bytes that messages of one queue take while they wait for the listener",
    "the queue is not pulled from",
)  # fmt: skip
QUEUE_CACHE_MESSAGES_MAX: Final = Limit(
    1000, Where.CLIENT, "messages of one queue that wait for the listener", "the queue is not pulled from"
)
QUEUE_SPAN_MAX: Final = Limit(
    2000,
    Where.CLIENT,
    "offsets between the oldest message that waits and the next pull",
    "the queue is not pulled from",
)
CONSUMER_CACHE_BYTES_MAX: Final = Limit(
    256 * MIB, Where.CLIENT, "bytes that messages of all queues take while they wait for the listener",
    "no queue is pulled from, and answers on their way are dropped and asked for again",
)  # fmt: skip
CONSUMER_QUEUES_MAX: Final = Limit(
    16_384, Where.CLIENT, "queues that one push consumer reads", "it takes no more, and a warning says so"
)
# Routes in it are as large as a cluster: the original's name server writes broker ids without quotes.
ANSWER_DIALECT_BYTES_MAX: Final = Limit(
    1 * MIB, Where.CLIENT, "bytes of an answer in Java's dialect of JSON", "the answer counts as malformed"
)

# ---- files -----------------------------------------------------------------------------------------------------

DELETIONS_MAX: Final = Limit(
    100_000,
    Where.FILES,
    "deleted topics that still have messages in the log",
    "no more are deleted until these have expired",
)
SETTINGS_FILE_BYTES_MAX: Final = Limit(
    MIB, Where.FILES, "bytes of a file with settings, given with `-c`", "it is refused"
)
LINE_BYTES_MAX: Final = Limit(
    16 * MIB,
    Where.FILES,
    "bytes of one line that `bolide send` reads",
    "it ends there, and says what is stored",
)
SMALL_FILE_BYTES_MAX: Final = Limit(
    256 * MIB,
    Where.FILES,
    "bytes of a table, a checkpoint or another small file",
    "it is not read, and named",
)
STORE_FILE_BYTES_MAX: Final = Limit(
    2**31 - 1,
    Where.FILES,
    "bytes of a segment, a queue file or an index file",
    "it is not taken for one, and named",
)
SEGMENTS_MISSING_MAX: Final = Limit(
    1024,
    Where.FILES,
    "segments missing in a log, for the offline tools",
    "what lies behind is not of the same log",
)
QUEUE_FILES_MISSING_MAX: Final = Limit(
    16,
    Where.FILES,
    "files missing in a queue, for the offline tools",
    "what lies behind is not of the same queue",
)
