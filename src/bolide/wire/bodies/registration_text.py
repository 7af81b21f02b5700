"""A plain registration, read some topics at a time.

    {"filterServerList": [...],
     "topicConfigSerializeWrapper": {"dataVersion": {...}, "topicConfigTable": {"orders": {...}, ...}, ...}}

Megabytes of JSON that are parsed in one go hold up everybody else.  So patterns only find where members begin and end,
and the parser gets a few of them at a time.  Before 3.0.11 the body was the inner object alone; its members are found
in either place.  What nobody here wants is stepped over, and not looked into.
"""

import re

from bolide.model import java_json
from bolide.model.data_version import DataVersion
from bolide.model.errors import InvalidRequest
from bolide.model.limit import MIB
from bolide.model.limits import REGISTERED_TOPIC_BYTES_MAX
from bolide.model.steps import Steps
from bolide.wire.bodies.members import as_texts, parse_object
from bolide.wire.bodies.registration_topics import ToldTopic, check_topic_count, topic_of

STEP_MEMBERS = 128
STEP_BYTES = 128 * 1024
"""What is taken with one step: so many members, or so many bytes of them."""

PASSED_BYTES_MAX = MIB
"""Of a member that is stepped over; a mapping of a static topic lists its queues."""

DEPTH_MAX = 6
"""Objects and arrays in a member.  Deeper ones are nothing that a broker writes."""

# Possessive, so that a text which does not fit is found out in one pass over it.
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'


def _nested(depth: int) -> bytes:
    """An object or an array.  Whether it is a well-formed one is for the parser to say."""
    inner = rb'[^"{}\[\]]++|' + _STRING + (b"|" + _nested(depth - 1) if depth > 1 else b"")
    return rb"[{\[](?:" + inner + rb")*+[}\]]"


_VALUE = re.compile(_STRING + b"|" + _nested(DEPTH_MAX) + rb'|[^"{}\[\],\s]++', re.DOTALL)
_KEY = re.compile(rb"\s*+(" + _STRING + rb")\s*+:\s*+", re.DOTALL)
_OPENED = re.compile(rb"\s*+(\{\s*+\}|\{|null)")
_FOLLOWED = re.compile(rb"\s*+([,}])")


class RegistrationText:
    """`reading` fills it."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._at = 0
        self.data_version = DataVersion()
        self.topics: list[ToldTopic] = []
        self.filter_servers: list[str] = []

    def reading(self) -> Steps[None]:
        return self._members(inner="topicConfigSerializeWrapper")

    def _members(self, inner: str = "") -> Steps[None]:
        """Of the body, and of the one object in it that has more of them."""
        more = self._open()
        while more:
            key = self._key()
            if key == "topicConfigTable":
                yield from self._read_topics()
            elif key == "dataVersion":
                self.data_version = DataVersion.from_json(self._value(key) or {})
            elif key == "filterServerList":
                self.filter_servers = as_texts(self._value(key) or [], key)
            elif key == inner:
                yield from self._members()
            else:
                yield from self._pass()
            more = self._follow()

    def _read_topics(self) -> Steps[None]:
        more, first, count = self._open(), self._at, 0
        while more:
            self._match(_KEY, "a topic's name")
            end = self._match(_VALUE, "a topic").end()
            count += 1
            more = self._follow()
            if not more or count == STEP_MEMBERS or end - first >= STEP_BYTES:
                some = parse_object(b"{" + self._text[first:end] + b"}", "the topics of a registration")
                check_topic_count(len(self.topics) + len(some))
                self.topics += [topic_of(name, members) for name, members in some.items()]
                first, count = self._at, 0
                yield

    def _pass(self) -> Steps[None]:
        """Step over a value; one that is an object member by member."""
        if not self._text.startswith(b"{", self._at):
            self._match(_VALUE, "a value", PASSED_BYTES_MAX)
            return
        more, first, count = self._open(), self._at, 0
        while more:
            self._match(_KEY, "a name")
            self._match(_VALUE, "a value", PASSED_BYTES_MAX)
            count += 1
            more = self._follow()
            if count == STEP_MEMBERS or self._at - first >= STEP_BYTES:
                first, count = self._at, 0
                yield

    # ---- the cursor ----------------------------------------------------------------------------------------

    def _open(self) -> bool:
        """Into an object; false when nothing is in it."""
        return self._match(_OPENED, "a JSON object")[1] == b"{"

    def _key(self) -> str:
        key = java_json.loads(self._match(_KEY, "a name")[1])
        assert isinstance(key, str)
        return key

    def _value(self, name: str) -> object:
        return java_json.loads(self._match(_VALUE, name)[0], dialect_length_max=REGISTERED_TOPIC_BYTES_MAX)

    def _follow(self) -> bool:
        """Behind a value: whether another one follows."""
        return self._match(_FOLLOWED, "a comma or a brace")[1] == b","

    def _match(
        self, pattern: re.Pattern[bytes], what: str, bytes_max: int = REGISTERED_TOPIC_BYTES_MAX
    ) -> re.Match[bytes]:
        found = pattern.match(self._text, self._at, self._at + bytes_max)
        if found is None:
            raise InvalidRequest(
                f"the registration is malformed at its byte {self._at}:"
                f" {what} is missing, longer than {bytes_max} bytes or deeper than {DEPTH_MAX} levels"
            )
        self._at = found.end()
        return found
