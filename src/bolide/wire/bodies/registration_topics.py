"""Topics as a registration tells them: what a name server takes of them, and what cannot be one."""

from collections.abc import Mapping
from typing import Any

from bolide.model.config_json import topic_from_json
from bolide.model.errors import InvalidRequest
from bolide.model.limits import BROKER_TOPICS_MAX, REGISTERED_NAME_LENGTH_MAX, TOLD_QUEUES_MAX
from bolide.model.topic import TopicConfig
from bolide.wire.bodies.members import as_number

_TAKEN = ("topicName", "readQueueNums", "writeQueueNums", "perm", "topicFilterType", "topicSysFlag", "order")
"""Everything else stays with the broker."""


def format_topic_line(topic: TopicConfig) -> str:
    """Five words.  5.x would add the attributes as a sixth, which name servers do not need and 4.x refuses."""
    return f"{topic.name} {topic.read_queues} {topic.write_queues} {int(topic.perm)} {topic.filter_type}"


def parse_topic_line(line: bytes) -> TopicConfig:
    """4.x sends five words, 5.x a sixth with the attributes, which is not looked into."""
    try:
        words = line.decode().split(" ", 5)
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"a topic line is not UTF-8: {error}") from error
    if len(words) < 5:
        raise InvalidRequest(f"a topic line has {len(words)} words instead of five")
    return _checked(
        topic_from_json(
            {
                "topicName": words[0],
                "readQueueNums": as_number(words[1], "readQueueNums"),
                "writeQueueNums": as_number(words[2], "writeQueueNums"),
                "perm": as_number(words[3], "perm"),
                "topicFilterType": words[4],
            }
        )
    )


def topic_of(name: str, members: object) -> TopicConfig:
    """The entry of a topic table; the key is its name where it does not say so itself."""
    if not isinstance(members, Mapping):
        raise InvalidRequest(f"the topic {name[:64]!r} is not a JSON object")
    taken: dict[str, Any] = {key: members[key] for key in _TAKEN if key in members}
    return _checked(topic_from_json({"topicName": name, **taken}))


def check_count(count: int) -> None:
    if count > BROKER_TOPICS_MAX:
        raise InvalidRequest(f"{count} topics in one registration; {BROKER_TOPICS_MAX} are allowed")


def check_name(topic: str) -> None:
    if not 0 < len(topic) <= REGISTERED_NAME_LENGTH_MAX or topic.isspace():
        raise InvalidRequest(f"an impossible topic name: {topic[:64]!r}")


def check_queues(topic: str, read_queues: int, write_queues: int) -> None:
    if not (0 <= read_queues <= TOLD_QUEUES_MAX and 0 <= write_queues <= TOLD_QUEUES_MAX):
        raise InvalidRequest(f"topic {topic[:64]!r} has an impossible number of queues")


def _checked(topic: TopicConfig) -> TopicConfig:
    check_name(topic.name)
    check_queues(topic.name, topic.read_queues, topic.write_queues)
    return topic
