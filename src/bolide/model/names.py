"""Names of topics and groups: what is allowed, and the names derived from them.

Names become folder names in the store, so `check_topic` and `check_group` run before a name from the wire is used
for anything.  The rules are RocketMQ's (TopicValidator): letters, digits, `%`, `|`, `_` and `-`.
"""

from bolide.model.errors import InvalidRequest
from bolide.model.limits import ID_LENGTH_MAX

RETRY_PREFIX = "%RETRY%"
DEAD_LETTER_PREFIX = "%DLQ%"
SYSTEM_TOPIC_PREFIX = "rmq_sys_"
SYSTEM_GROUP_PREFIX = "CID_RMQ_SYS_"

TOPIC_LENGTH_MAX = 127
DERIVED_TOPIC_LENGTH_MAX = 255
GROUP_LENGTH_MAX = 120

DEFAULT_TOPIC = "TBW102"
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_HALF_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
ROCKSDB_HALF_TOPIC = "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC"
ROCKSDB_OP_HALF_TOPIC = "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC"
TRANS_CHECK_MAX_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"
SELF_TEST_TOPIC = "SELF_TEST_TOPIC"
OFFSET_MOVED_TOPIC = "OFFSET_MOVED_EVENT"
BENCHMARK_TOPIC = "BenchmarkTest"
TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"
TIMER_TOPIC = "rmq_sys_wheel_timer"

SYSTEM_TOPICS = frozenset(
    {
        DEFAULT_TOPIC,
        SCHEDULE_TOPIC,
        BENCHMARK_TOPIC,
        TRACE_TOPIC,
        HALF_TOPIC,
        OP_HALF_TOPIC,
        ROCKSDB_HALF_TOPIC,
        ROCKSDB_OP_HALF_TOPIC,
        TRANS_CHECK_MAX_TOPIC,
        SELF_TEST_TOPIC,
        OFFSET_MOVED_TOPIC,
        "CHECKPOINT_TOPIC",
    }
)

# Clients may not write to these: only the broker itself does.
NO_SEND_TOPICS = frozenset(
    {
        SCHEDULE_TOPIC,
        HALF_TOPIC,
        OP_HALF_TOPIC,
        ROCKSDB_HALF_TOPIC,
        ROCKSDB_OP_HALF_TOPIC,
        TRANS_CHECK_MAX_TOPIC,
        SELF_TEST_TOPIC,
        OFFSET_MOVED_TOPIC,
        TIMER_TOPIC,
    }
)

TRANSACTIONS_GROUP = "CID_RMQ_SYS_TRANS"
"""Its offsets say up to where half messages are settled (RocketMQ: MixAll.CID_SYS_RMQ_TRANS)."""

TOOLS_GROUP = "TOOLS_CONSUMER"
"""The group in whose name tools read; every broker has it (RocketMQ: MixAll.TOOLS_CONSUMER_GROUP)."""

SYSTEM_GROUPS = (
    TOOLS_GROUP,
    "FILTERSRV_CONSUMER",
    "SELF_TEST_C_GROUP",
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PULL",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_OWNER",
    TRANSACTIONS_GROUP,
)

_ALLOWED = frozenset("%|_-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


def check_topic(topic: str) -> str:
    """The topic, if its name is legal; `InvalidRequest` says what is wrong otherwise."""
    derived = topic.startswith((RETRY_PREFIX, DEAD_LETTER_PREFIX))
    return _check("topic", topic, DERIVED_TOPIC_LENGTH_MAX if derived else TOPIC_LENGTH_MAX)


def check_group(group: str) -> str:
    """The group, if its name is legal; `InvalidRequest` says what is wrong otherwise."""
    return _check("group", group, GROUP_LENGTH_MAX)


def check_id(what: str, name: str) -> str:
    """A name that somebody gave himself, or a group of producers: anything but nothing, and not too long."""
    if not name or len(name) > ID_LENGTH_MAX:
        raise InvalidRequest(f"the {what} is missing or longer than {ID_LENGTH_MAX} characters")
    return name


def is_system_topic(topic: str) -> bool:
    return topic in SYSTEM_TOPICS or topic.startswith(SYSTEM_TOPIC_PREFIX)


def is_system_group(group: str) -> bool:
    return group in SYSTEM_GROUPS or group.startswith(SYSTEM_GROUP_PREFIX)


def retry_topic(group: str) -> str:
    return RETRY_PREFIX + group


def dead_letter_topic(group: str) -> str:
    return DEAD_LETTER_PREFIX + group


def group_of(topic: str) -> str | None:
    """Whose retry topic or dead letter topic it is; None for one of neither kind."""
    prefix = next((one for one in (RETRY_PREFIX, DEAD_LETTER_PREFIX) if topic.startswith(one)), None)
    return None if prefix is None else topic[len(prefix) :]


def reply_topic(cluster: str) -> str:
    return f"{cluster}_REPLY_TOPIC"


def _check(what: str, name: str, length_max: int) -> str:
    if not name or name.isspace():
        raise InvalidRequest(f"the {what} name is blank")
    if len(name) > length_max:
        raise InvalidRequest(f"the {what} name is {len(name)} characters long; {length_max} are allowed")
    if not _ALLOWED.issuperset(name):
        illegal = min(set(name) - _ALLOWED)
        raise InvalidRequest(
            f"the {what} name {name[:64]!r} contains {illegal!r};"
            " letters, digits, '%', '|', '_' and '-' are allowed"
        )
    return name
