"""What a name server takes and keeps."""

from typing import Final

from bolide.model.limit import KIB, MIB, Limit, Where

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
