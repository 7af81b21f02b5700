"""What clients take from servers."""

from typing import Final

from bolide.model.limit import KIB, MIB, Limit, Where

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
SOON_MESSAGES_MAX: Final = Limit(
    100_000,
    Where.CLIENT,
    "messages of send_soon that are not acknowledged",
    "send_soon waits for room, for as long as a send may take",
)
SOON_BYTES_MAX: Final = Limit(
    64 * MIB,
    Where.CLIENT,
    "bytes of messages of send_soon that are not acknowledged",
    "send_soon waits for room, for as long as a send may take",
)
SOON_BATCH_MESSAGES_MAX: Final = Limit(
    4096, Where.CLIENT, "messages of one request of send_soon", "another request begins"
)
SOON_BATCH_BYTES_MAX: Final = Limit(
    512 * KIB, Where.CLIENT, "bytes of one request of send_soon", "another request begins"
)
CONSUMER_QUEUES_MAX: Final = Limit(
    16_384, Where.CLIENT, "queues that one push consumer reads", "it takes no more, and a warning says so"
)
DEDUP_MESSAGES_MAX: Final = Limit(
    10_000_000, Where.CLIENT, "messages that one dedup window remembers", "it is not made"
)
POLL_CACHE_BYTES_MAX: Final = Limit(
    32 * MIB,
    Where.CLIENT,
    "bytes that were fetched and wait for a poll, of all queues",
    "nothing is pulled, answers on their way are dropped and asked for again, and paused queues keep nothing",
)
POLL_QUEUE_BYTES_MAX: Final = Limit(
    8 * MIB,
    Where.CLIENT,
    "bytes of one queue that were fetched and wait for a poll",
    "the queue is not pulled from",
)
POLL_QUEUE_MESSAGES_MAX: Final = Limit(
    65_536,
    Where.CLIENT,
    "offsets of one queue that were fetched and wait for a poll",
    "the queue is not pulled from",
)
POLL_PULLS_AHEAD_MAX: Final = Limit(
    8, Where.CLIENT, "pulls of one queue that are under way at once, for polls to come", "the next one waits"
)
# Routes in it are as large as a cluster: the original's name server writes broker ids without quotes.
ANSWER_DIALECT_BYTES_MAX: Final = Limit(
    1 * MIB, Where.CLIENT, "bytes of an answer in Java's dialect of JSON", "the answer counts as malformed"
)
SEND_AHEAD_MAX: Final = Limit(
    16, Where.CLIENT, "requests of one `send_many` under way", "the next one waits for one of them to end"
)
SEND_AHEAD_BYTES_MAX: Final = Limit(
    16 * MIB,
    Where.CLIENT,
    "bytes of one `send_many` that are under way, or collected for the next requests",
    "no further message is taken before some of them are stored",
)
SEND_ROWS_PIECE_MAX: Final = Limit(
    65_536,
    Where.CLIENT,
    "rows of a table that `send_arrow` looks over before it sends them",
    "another piece begins",
)
SEND_ROWS_PIECE_BYTES_MAX: Final = Limit(
    16 * MIB,
    Where.CLIENT,
    "bytes of a table that `send_arrow` looks over before it sends them; one row may have more",
    "another piece begins",
)
SEND_ROWS_FRAME_MAX: Final = Limit(
    4096, Where.CLIENT, "messages of one request of `send_arrow`", "another request begins"
)
SEND_ROWS_FRAME_BYTES_MAX: Final = Limit(
    512 * KIB,
    Where.CLIENT,
    "bytes of one request of `send_arrow`; one message may have more",
    "another request begins",
)
CHECKS_WAITING_MAX: Final = Limit(
    2000,
    Where.CLIENT,
    "transactions that brokers have asked one producer about and that are not answered yet",
    "the question is passed over; the broker asks again",
)
CHECKS_WAITING_BYTES_MAX: Final = Limit(
    64 * MIB,
    Where.CLIENT,
    "bytes of messages whose transactions brokers have asked one producer about",
    "the question is passed over; the broker asks again",
)
TRACES_WAITING_MAX: Final = Limit(
    2048,
    Where.CLIENT,
    "traces of messages that wait to be sent by one producer",
    "the trace is dropped, and a warning says so now and then; the message is sent",
)
