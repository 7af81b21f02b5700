"""What clients take from servers."""

from typing import Final

from bolide.model.limit import MIB, Limit, Where

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
