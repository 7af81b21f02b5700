"""What a broker takes, keeps and answers."""

from typing import Final

from bolide.model.limit import KIB, MIB, Limit, Where

TOPICS_MAX: Final = Limit(
    100_000,
    Where.BROKER,
    "topics; the last sixteenth is for retry and dead letter topics of groups that exist",
    "no more are made",
)
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
    32 * MIB,
    Where.BROKER,
    "bytes of all topics, as JSON; the last sixteenth likewise",
    "no more are made, and none grows",
)
GROUP_TABLE_BYTES_MAX: Final = Limit(
    64 * MIB,
    Where.BROKER,
    "bytes of all groups, as JSON; a host brings no more than stay free for others",
    "no more are made, and none grows; above a quarter as above",
)
FILTER_TABLE_BYTES_MAX: Final = Limit(
    16 * MIB,
    Where.BROKER,
    "bytes of SQL subscriptions in consumerFilter.json",
    "those go first that nobody has had for longest; what a group gets does not depend on it",
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
# Four thousand subscriptions take three quarters; JSON is read in one go.
CLIENT_BODY_BYTES_MAX: Final = Limit(
    MIB, Where.BROKER, "bytes of a heartbeat, a client check or a lock request", "the request is refused"
)
HEARTBEAT_SUBSCRIPTIONS_MAX: Final = Limit(
    4096, Where.BROKER, "subscriptions of one heartbeat", "the request is refused"
)
HEARTBEAT_TAGS_MAX: Final = Limit(
    32_768, Where.BROKER, "tags and tag codes of one heartbeat", "the request is refused"
)
# More than an expression can name, but for tags of a character or two.
SUBSCRIPTION_TAGS_MAX: Final = Limit(
    8192, Where.BROKER, "tags and tag codes of one subscription", "the request is refused"
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
# As long as the original waits.
REPLY_MS_MAX: Final = Limit(
    10_000,
    Where.BROKER,
    "milliseconds that a requester has to take a reply",
    "the replier hears that it has not",
)
VARIANTS_BYTES_MAX: Final = Limit(
    16 * MIB,
    Where.BROKER,
    "bytes of what members of groups subscribe to, kept to show how they differ",
    "that they differ is seen, and not how",
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
HALF_LINES_MAX: Final = Limit(
    100_000,
    Where.BROKER,
    "open half messages that were stored again of which it is known where they were before",
    "whoever ends the oldest of them by its former place is refused, and asked again",
)
IMMUNE_HALVES_MAX: Final = Limit(
    1_048_576,
    Where.BROKER,
    "open half messages with a time of their own (CHECK_IMMUNITY_TIME_IN_SECONDS) of which each is known by itself",
    "of others it is known of 1,024 together, which are read again when the first of them is due",
)
RESUMED_HALVES_MAX: Final = Limit(
    100_000,
    Where.BROKER,
    "half messages that were given up and opened again (323) of which that is known",
    "the oldest of them could be opened once more",
)
# One that stays open is remembered with all half messages behind it, and a start looks at those.
CHECK_IMMUNITY_MS_MAX: Final = Limit(
    3_600_000,
    Where.BROKER,
    "milliseconds that a half message may ask for (CHECK_IMMUNITY_TIME_IN_SECONDS) before its group is asked",
    "its group is asked then",
)
HALF_ROOM_BYTES: Final = Limit(
    2 * KIB,
    Where.BROKER,
    "bytes of a segment of the log that body and properties of a half message leave to what is written with its copies",
    "it is refused",
)
# Nobody could be told later that there is no room: see broker/property_room.py.
PROPERTIES_ROOM_BYTES: Final = Limit(
    512,
    Where.BROKER,
    "bytes of 32,767 that the properties of a half message, of a timed one and the history of a failed one leave to"
    " those that the broker writes later",
    "half and timed messages are refused, and the history gives way",
)
UNSAFE_ANSWERS_MAX: Final = Limit(
    65_536, Where.BROKER, "answers that wait for the disk", "messages are refused until there are fewer"
)
# Each is a queue.
DELAY_LEVELS_MAX: Final = Limit(
    256, Where.BROKER, "delay levels in `messageDelayLevel`", "the broker does not start"
)
# Each is about 300 bytes.
TIMER_READY_MAX: Final = Limit(
    500_000,
    Where.BROKER,
    "timed messages in memory: those of the second that is being delivered, and all that come while the clock is set"
    " back behind it",
    "they stay in their queue, and more are refused for the moment",
)
TIMER_RECALLS_MAX: Final = Limit(
    100_000,
    Where.BROKER,
    "recalls of messages that are due in the same second",
    "refused; those of messages with delays so long that they are stored again have no effect then",
)
RECALL_HANDLE_LENGTH_MAX: Final = Limit(4096, Where.BROKER, "characters of a recall handle", "refused")

# ---- administration

CONFIG_LIST_MAX: Final = Limit(1_000, Where.BROKER, "topics or groups that one request makes", "refused")
CONFIG_LIST_BYTES_MAX: Final = Limit(1 * MIB, Where.BROKER, "bytes of such a request", "refused")
QUEUE_ENTRIES_MAX: Final = Limit(
    1_000, Where.BROKER, "entries of a queue that an operator sees at once", "he sees the first ones"
)
MOVES_MAX: Final = Limit(
    256,
    Where.BROKER,
    "resets and clones of groups (222, 314) that wait for their turn or for the disk; a host has no more than stay free"
    " for others",
    "refused for the moment",
)
# As many as `bolide group reset` asks for at a time.
MOVES_SMALL: Final = 16
RELAYS_MAX: Final = Limit(
    1024,
    Where.BROKER,
    "questions of operators that consumers have not answered yet; a host asks no more than stay free for others",
    "refused for the moment",
)
RELAYS_OF_ASKER_MAX: Final = Limit(256, Where.BROKER, "of them from one connection", "refused for the moment")
RELAYS_OF_ONE_MAX: Final = Limit(8, Where.BROKER, "of them for one consumer", "refused for the moment")
RELAY_MEMBERS_MAX: Final = Limit(
    256, Where.BROKER, "members of a group that are asked how far they are", "the others are not asked"
)
# What a consumer tells of itself is passed on as it is: a row for each of its queues, and the stack of each thread.
RELAY_ANSWER_BYTES_MAX: Final = Limit(
    4 * MIB, Where.BROKER, "bytes of a consumer's answer that is passed on to an operator", "an error says so"
)
# Two thousand queues; in Java's dialect, which is read in one go, they take some ten milliseconds.
MEMBER_OFFSETS_BYTES_MAX: Final = Limit(
    128 * KIB,
    Where.BROKER,
    "bytes in which a member of a group tells how far it is",
    "the member is left out, and named in the remark",
)
# A host has three eighths of it at most, and what is made of that fits into a frame.
MEMBERS_OFFSETS_BYTES_MAX: Final = Limit(
    16 * MIB,
    Where.BROKER,
    "bytes of what members have told until all have; a host's questions keep no more than stay free for others",
    "the member is left out, and named in the remark",
)
# Each keeps its request; a key has 32 KiB at most.
QUESTIONS_MAX: Final = Limit(
    1000,
    Where.BROKER,
    "questions for messages by key (12) that wait; a host has no more than stay free for others",
    "refused for the moment",
)
QUESTIONS_OF_ONE_MAX: Final = Limit(64, Where.BROKER, "of them from one connection", "refused for the moment")
QUESTIONS_SMALL: Final = 16
STATISTICS_MAX: Final = Limit(
    20_000, Where.BROKER, "topics, and groups of a topic, of which it is known how much went in or out of late",
    "of more it is not known, until others have been silent for a day",
)  # fmt: skip
WRITERS_MAX: Final = Limit(
    4096,
    Where.BROKER,
    "bulk writers whose batch under way is known; a host brings no more than stay free for others",
    "the one whose batch began longest ago, and more than three days ago, is forgotten: were that batch tried again, it"
    " would be written twice; without such a one the newcomer is refused",
)
# With each batch that begins, the file of all of them is written.
WRITERS_BYTES_MAX: Final = Limit(
    16 * MIB,
    Where.BROKER,
    "bytes of what is known of bulk writers, the names of their batches' brokers among it",
    "as above",
)
WRITE_PARTS_MAX: Final = Limit(
    64, Where.BROKER, "parts of batches that one connection writes", "the next one is refused"
)
WRITE_PARTS_KNOWN_MAX: Final = Limit(
    65_536,
    Where.BROKER,
    "parts of all batches under way of which it is known that they have begun",
    "of those whose batch began longest ago, and then of further ones, it is looked up what is stored",
)
WRITE_BROKERS_MAX: Final = Limit(1024, Where.BROKER, "brokers that one batch is written to", "it is refused")
# All of them stand in the header of an answer, where a character may take six bytes.
WRITE_BROKERS_LENGTH_MAX: Final = Limit(
    32_768, Where.BROKER, "characters of the names of a batch's brokers, joined", "it is refused"
)
