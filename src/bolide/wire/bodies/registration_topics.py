"""Topics as a registration tells them: what a name server takes of them, and what cannot be one."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from bolide.model.errors import InvalidRequest
from bolide.model.limits import BROKER_TOPICS_MAX, REGISTERED_NAME_LENGTH_MAX, TOLD_QUEUES_MAX
from bolide.model.numbers import is_int32
from bolide.model.topic import TopicConfig


class ToldTopic(NamedTuple):
    """Of everything else that a broker may say of a topic, a name server needs nothing."""

    name: str
    read_queues: int
    write_queues: int
    perm: int
    sys_flag: int = 0


_DEFAULT = TopicConfig("any")


def format_topic_line(topic: TopicConfig) -> str:
    """Five words.  5.x would add the attributes as a sixth, which name servers do not need and 4.x refuses."""
    return f"{topic.name} {topic.read_queues} {topic.write_queues} {int(topic.perm)} {topic.filter_type}"


def parse_topic_line(line: bytes) -> ToldTopic:
    """4.x sends five words, 5.x a sixth with the attributes, which is not looked into."""
    words = line.split(b" ", 5)
    if len(words) < 5:
        raise InvalidRequest(f"a topic line has {len(words)} words instead of five")
    try:
        name = words[0].decode()
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"a topic name is not UTF-8: {error}") from error
    return told(name, _number(words[1]), _number(words[2]), _number(words[3]))


def topic_of(key: str, members: object) -> ToldTopic:
    """The entry of a topic table; the key is its name where it does not say so itself."""
    if not isinstance(members, Mapping):
        raise InvalidRequest(f"the topic {key[:64]!r} is not a JSON object")
    return told(
        _member(members, "topicName", key),
        _member(members, "readQueueNums", _DEFAULT.read_queues),
        _member(members, "writeQueueNums", _DEFAULT.write_queues),
        _member(members, "perm", int(_DEFAULT.perm)),
        _member(members, "topicSysFlag", 0),
    )


def told(name: Any, read_queues: Any, write_queues: Any, perm: Any, sys_flag: Any = 0) -> ToldTopic:
    """A topic, if it can be one.  A type is asked for as such: `true` is no number."""
    if type(name) is not str or not 0 < len(name) <= REGISTERED_NAME_LENGTH_MAX or name.isspace():
        raise InvalidRequest(f"an impossible topic name: {str(name)[:64]!r}")
    for queues in (read_queues, write_queues):
        if type(queues) is not int or not 0 <= queues <= TOLD_QUEUES_MAX:
            raise InvalidRequest(f"topic {name!r} has an impossible number of queues")
    for flags in (perm, sys_flag):
        if not is_int32(flags):
            raise InvalidRequest(f"topic {name!r} has an impossible permission or flag")
    return ToldTopic(name, read_queues, write_queues, perm, sys_flag)


def check_topic_count(count: int) -> None:
    if count > BROKER_TOPICS_MAX:
        raise InvalidRequest(f"{count} topics in one registration; {BROKER_TOPICS_MAX} are allowed")


def _member(members: Mapping[str, Any], key: str, default: Any) -> Any:
    value = members.get(key)
    return default if value is None else value


def _number(word: bytes) -> int:
    digits = word.removeprefix(b"-")
    if not digits.isdigit() or len(digits) > 10:
        raise InvalidRequest(f"not a 32-bit number in a topic line: {word[:32]!r}")
    return int(word)
