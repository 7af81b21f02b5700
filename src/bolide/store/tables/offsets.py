"""OffsetTable: how far each group has come in each queue; `config/consumerOffset.json`.

A commit is two dictionary look-ups.  The table takes any offset up to the queue's end, forwards or backwards: whether
the queue exists and where it ends is asked by the handler, which knows the store.  The data version moves only every
`COMMITS_PER_VERSION` commits, as in the original.

Everything is counted in bytes, with numbers as long as they get, so what is known can always move; when there is no
room, new queues and groups are refused.  What is counted is no less than what the file takes: it can be read again.

Beside the committed offsets stand those that members last pulled from.  They only show operators what is on its way,
so a pull alone does not make the file be written, and they leave half of the room to those that count.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from bolide.model import java_json
from bolide.model.clock import Clock
from bolide.model.errors import InvalidRequest, TableFull
from bolide.model.json_pieces import Entries, Items
from bolide.model.limits import OFFSETS_BYTES_MAX
from bolide.model.numbers import INT32_MAX, is_int64, parse_whole
from bolide.model.offsets import GroupOffset
from bolide.model.steps import Steps, at_once, slices
from bolide.store.disk import Disk
from bolide.store.tables.persisted import PersistedTable, entries_of, member_table

COMMITS_PER_VERSION = 500

WIDE = 512
"""Queues whose offsets are more than one piece of the file."""

DROPPED_PER_STEP = 512

QUEUE_BYTES, KEY_BYTES = 72, 640
"""What an offset takes, and what a topic of a group takes beside its offsets and names."""

SEPARATOR = "@"
"""Between topic and group in the table's keys; no name may contain it."""

_Offsets = dict[str, dict[int, GroupOffset]]


class OffsetTable(PersistedTable):
    """Offsets by `topic@group`, then by queue."""

    def __init__(self, disk: Disk, path: str, clock: Clock) -> None:
        super().__init__(disk, path, clock)
        self._offsets: _Offsets = {}
        self._pulled: _Offsets = {}
        self._topics: dict[str, dict[str, None]] = {}  # topics by group, of all keys of both
        self._groups: dict[str, dict[str, None]] = {}  # groups by topic, likewise
        self._leaving: dict[str, set[str]] = {}  # topics by group, of groups whose offsets are being dropped
        self._resets: _Offsets = {}  # of groups that go on elsewhere, until their members have heard of it
        self.resets = 0
        """How many resets there were."""
        self._listeners: list[Callable[[str, Iterable[int]], None]] = []
        self._commits = 0
        self.bytes_kept = 0
        """About what all offsets take in memory; the file takes less."""

    def commit(self, group: str, topic: str, queue_id: int, offset: int, end: int) -> None:
        """Store the group's progress in a queue that ends at `end`.

        A negative offset says that there is none yet: some clients send it.  Past the end is stored as the end: the
        original keeps any number, and a group that stands beyond the end skips everything until the queue has grown
        there, or is thrown back by its next pull.
        """
        if offset < 0:
            return
        if self._leaving:
            self._let_go(group, topic)
        key = f"{topic}@{group}"
        if self._resets and queue_id in self._resets.get(key, ()):
            return  # from before the reset
        queues = self._offsets.get(key)
        if queues is None or queue_id not in queues:
            queues = self._add(self._offsets, topic, group, OFFSETS_BYTES_MAX)
            if queues is None:
                raise TableFull(
                    f"the offsets take {self.bytes_kept} bytes of {OFFSETS_BYTES_MAX}: delete groups with their"
                    " offsets, or topics, before more can be kept"
                )
        queues[queue_id] = GroupOffset(min(offset, end))
        self._commits += 1
        if not self._dirty:
            self.mark_dirty()
        if self._commits % COMMITS_PER_VERSION == 0:
            self._changed()

    def reset(self, group: str, topic: str, offsets: Mapping[int, int], *, is_online: bool) -> None:
        """Let a group go on at these offsets of queues.

        Members of an online group hear of it with their next pull (`take_reset`); what they commit before that is
        not taken, unless `end_reset` says that they are gone.  Resets are forgotten with the process: members that
        have not pulled since then go on where they were.
        """
        key = f"{topic}@{group}"
        pending = self._resets.pop(key, {})  # of other queues, perhaps
        moved: dict[int, GroupOffset] = {}
        try:
            for queue_id, offset in offsets.items():
                self.commit(group, topic, queue_id, offset, offset)
                moved[queue_id] = GroupOffset(offset)
        finally:  # when the table is full, the others stay as they were, with what is pending of them
            if is_online and (pending or moved):
                self._resets[key] = {**pending, **moved}
            self.resets += 1
            for listener in self._listeners:
                listener(topic, moved)

    def end_reset(self, group: str, topic: str, queue_id: int) -> None:
        """Nobody is there who would have to hear of it: what is committed next counts."""
        self.take_reset(group, topic, queue_id)

    def on_reset(self, listener: Callable[[str, Iterable[int]], None]) -> None:
        """Be called after every reset, with the topic and its queues."""
        self._listeners.append(listener)

    def resets_of(self, group: str, topic: str) -> Mapping[int, GroupOffset] | None:
        """Offsets that members have not heard of; another object after every reset."""
        return self._resets.get(f"{topic}@{group}")

    def take_reset(self, group: str, topic: str, queue_id: int) -> GroupOffset | None:
        """Where a member that pulls has to go on instead, told once."""
        if not self._resets:
            return None
        key = f"{topic}@{group}"
        queues = self._resets.get(key)
        offset = None if queues is None else queues.pop(queue_id, None)
        if queues is not None and not queues:
            del self._resets[key]
        return offset

    def offsets_of(self, group: str, topic: str) -> Mapping[int, GroupOffset]:
        """The group's offsets by queue; for reading."""
        if self._leaving:
            self._let_go(group, topic)
        return self._offsets.get(f"{topic}@{group}", {})

    def query(self, group: str, topic: str, queue_id: int) -> GroupOffset | None:
        if self._leaving:
            self._let_go(group, topic)
        queues = self._offsets.get(f"{topic}@{group}")
        return None if queues is None else queues.get(queue_id)

    def note_pull(self, group: str, topic: str, queue_id: int, offset: GroupOffset) -> None:
        """A member of the group has asked for messages from here; before the first one there is no offset.  It is not
        remembered when there is little room."""
        if offset < 0:
            return
        if self._leaving:
            self._let_go(group, topic)
        key = f"{topic}@{group}"
        queues = self._pulled.get(key)
        if queues is None or queue_id not in queues:
            queues = self._add(self._pulled, topic, group, OFFSETS_BYTES_MAX // 2)
            if queues is None:
                return
        queues[queue_id] = offset

    def last_pull(self, group: str, topic: str, queue_id: int) -> GroupOffset | None:
        queues = self._pulled.get(f"{topic}@{group}")
        return None if queues is None else queues.get(queue_id)

    def bring_back(self, end_of: Callable[[str, int], int]) -> int:
        """After messages were lost: groups that stand behind the end of a queue go back to it, or they would skip
        what is stored there next.  Returns how many offsets that were."""
        moved = 0
        for key, queues in self._offsets.items():
            for queue_id, offset in queues.items():
                end = end_of(_split(key)[0], queue_id)
                if offset > end:
                    queues[queue_id] = GroupOffset(end)
                    moved += 1
        if moved:
            self._changed()
        return moved

    def topics_of(self, group: str) -> Iterator[str]:
        """Topics in which the group has committed anything; the table may change while they are looked at."""
        topics = list(self._topics.get(group, ()))
        return (topic for topic in topics if f"{topic}@{group}" in self._offsets)

    def has_committed(self, group: str) -> bool:
        """Whether the group has committed anything anywhere."""
        return any(f"{topic}@{group}" in self._offsets for topic in self._topics.get(group, ()))

    def groups_of(self, topic: str) -> Iterator[str]:
        """Groups that have committed anything in the topic; likewise."""
        groups = list(self._groups.get(topic, ()))
        return (group for group in groups if f"{topic}@{group}" in self._offsets)

    def drop_topic(self, topic: str) -> None:
        at_once(self.dropping_topic(topic))

    def dropping_topic(self, topic: str) -> Steps[None]:
        """Forget what all groups of this moment did in the topic, some in each step: one of that name starts at 0
        again.  Nobody may commit in it until that is done."""
        for some in slices(list(self._groups.get(topic, ())), DROPPED_PER_STEP):
            known = self._groups.get(topic, {})  # of the others nothing is left meanwhile
            self._drop([(topic, group) for group in some if group in known])
            yield

    def drop_group(self, group: str) -> None:
        at_once(self.dropping_group(group))

    def dropping_group(self, group: str) -> Steps[None]:
        """Forget what the group did in all topics of this moment, some in each step.  For whoever comes in its name
        meanwhile all of it is gone, and what he commits stays."""
        topics = list(self._topics.get(group, ()))
        left = self._leaving.setdefault(group, set())
        left.update(topics)
        try:
            for some in slices(topics, DROPPED_PER_STEP):
                known = self._topics.get(group, {})  # likewise
                self._drop([(topic, group) for topic in some if topic in left and topic in known])
                left.difference_update(some)
                yield
        finally:
            left.difference_update(topics)
            if not left:
                self._leaving.pop(group, None)

    def _let_go(self, group: str, topic: str) -> None:
        """Somebody asks for what is being dropped."""
        left = self._leaving.get(group)
        if left and topic in left:
            left.remove(topic)
            if topic in self._topics.get(group, ()):
                self._drop([(topic, group)])

    def dropping_pulls(self, group: str) -> Steps[None]:
        """Forget from where the group pulled in topics in which it has committed nothing, some in each step."""
        for some in slices(list(self._topics.get(group, ())), DROPPED_PER_STEP):
            known = self._topics.get(group, {})
            pulled = (topic for topic in some if topic in known and f"{topic}@{group}" not in self._offsets)
            self._drop([(topic, group) for topic in pulled])
            yield

    def members(self) -> dict[str, Any]:
        return {
            "dataVersion": self.version.as_json(),
            "groupTopicMap": Entries((group, Items(self.topics_of(group))) for group in list(self._topics)),
            "offsetTable": _entries(self._offsets),
            "pullOffsetTable": _entries(self._pulled),
        }

    def _add(self, table: _Offsets, topic: str, group: str, room: int) -> dict[int, GroupOffset] | None:
        """Where to put the offset of one more queue; None when there is no room for it."""
        key = f"{topic}@{group}"
        queues = table.get(key)
        size = QUEUE_BYTES if queues is not None else QUEUE_BYTES + _key_bytes(key)
        if self.bytes_kept + size > room:
            return None
        self.bytes_kept += size
        if queues is None:
            queues = table[key] = {}
            self._index(topic, group)
        return queues

    def _index(self, topic: str, group: str) -> None:
        self._topics.setdefault(group, {})[topic] = None
        self._groups.setdefault(topic, {})[group] = None

    def _drop(self, pairs: list[tuple[str, str]]) -> None:
        """Forget what these groups did in these topics."""
        committed = False
        for topic, group in pairs:
            _discard(self._topics, group, topic)
            _discard(self._groups, topic, group)
            key = f"{topic}@{group}"
            pulled, queues = self._pulled.pop(key, None), self._offsets.pop(key, None)
            self._resets.pop(key, None)
            self.bytes_kept -= _bytes_of(key, pulled) + _bytes_of(key, queues)
            committed |= queues is not None
        if committed:
            self._changed()

    def _take(self, members: Mapping[str, Any]) -> None:
        pulled = _read_offsets(members, "pullOffsetTable")
        self._offsets |= _read_offsets(members, "offsetTable")
        self._pulled |= pulled
        for key in (*self._offsets, *self._pulled):
            self._index(*_split(key))
        tables = (self._offsets, self._pulled)
        self.bytes_kept = sum(_bytes_of(key, queues) for table in tables for key, queues in table.items())


def _entries(offsets: _Offsets) -> Entries:
    """As they are when their turn comes; those of a wide topic one by one."""
    return Entries(
        (key, queues if len(queues) <= WIDE else Entries(list(queues.items())))
        for key, queues in entries_of(offsets)
    )


def _split(key: str) -> tuple[str, str]:
    topic, _, group = key.partition(SEPARATOR)
    return topic, group


def _key_bytes(key: str) -> int:
    """Its names are in the file twice: in the key, and the group's and the topic's beside each other."""
    return KEY_BYTES + 2 * len(java_json.key_text(key).encode())


def _bytes_of(key: str, queues: Mapping[int, GroupOffset] | None) -> int:
    return 0 if queues is None else _key_bytes(key) + QUEUE_BYTES * len(queues)


def _discard(index: dict[str, dict[str, None]], key: str, name: str) -> None:
    names = index[key]
    del names[name]
    if not names:
        del index[key]


def _read_offsets(members: Mapping[str, Any], name: str) -> _Offsets:
    return {key: _read_queues(key, queues) for key, queues in member_table(members, name).items()}


def _read_queues(key: str, queues: Any) -> dict[int, GroupOffset]:
    if SEPARATOR not in key or not isinstance(queues, Mapping):
        raise InvalidRequest(f"{key[:255]!r} is not the offsets of a topic and a group")
    read: dict[int, GroupOffset] = {}
    for name, value in queues.items():
        queue_id, offset = _number(name), _number(value)
        if queue_id is None or not 0 <= queue_id <= INT32_MAX:
            raise InvalidRequest(f"{str(name)[:32]!r} in {key[:255]!r} is not the number of a queue")
        if offset is None:
            raise InvalidRequest(f"{str(value)[:32]!r} is not an offset in queue {queue_id} of {key[:255]!r}")
        if offset >= 0:
            read[queue_id] = GroupOffset(offset)
    return read


def _number(value: object) -> int | None:
    """A whole number of 64 bits, also where it stands in quotes."""
    if isinstance(value, str):
        return parse_whole(value)
    return value if is_int64(value) else None
