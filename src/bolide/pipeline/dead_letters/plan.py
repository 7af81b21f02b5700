"""The plan of a redrive: a file that names every dead letter that is to be sent again, and where to.

People may look at it and change it: take letters out, or give them another topic.  Each letter has a line of its own.

    {"kind": "bolide redrive plan", "version": 1, "id": "20261117-…", "group": "billing", "made": "2026-11-17T…Z",
     "secret": "5f0c…", "chosen": {"--tag": "PAID"},
     "letters": [
      {"broker": "broker-a", "queue": 0, "offset": 12, "id": "7F00…", "to": "orders", "tag": "PAID", "died": "2026-…Z"}
     ]}
"""

import errno
import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

from bolide.model.errors import BolideError, ConfigError
from bolide.model.limits.spark import REDRIVE_MESSAGES_MAX, REPLAY_FILE_BYTES_MAX
from bolide.model.named_file import named_file
from bolide.model.names import DEAD_LETTER_PREFIX, RETRY_PREFIX, check_group, check_topic, is_system_topic
from bolide.model.numbers import is_int32, is_int64
from bolide.pipeline.dead_letters.letters import ORIGIN, TAG
from bolide.pipeline.replay.folder import check_id
from bolide.pipeline.whole_files import write_whole

KIND = "bolide redrive plan"
VERSION = 1

TAG_SHOWN = 100
"""Characters of a tag in a plan, which only people read."""

Place = tuple[str, int, int]
KnownBy = tuple[str, int, int, str]
"""Place and id: in a topic that was made anew another letter may have the place."""


@dataclass(frozen=True, order=True)
class Letter:
    """A dead letter by its place, and by its id, so that no other is taken for it."""

    broker: str
    queue: int
    offset: int
    id: str
    to: str
    """The topic that it goes to; empty where nobody knows which one it was of."""

    @property
    def place(self) -> Place:
        return self.broker, self.queue, self.offset

    @property
    def known_by(self) -> KnownBy:
        return *self.place, self.id


@dataclass(frozen=True)
class Plan:
    id: str
    group: str
    letters: Sequence[Letter]
    secret: str
    """Part of the name that brokers know the redrive by.  Messages have the id; with that alone nobody can end it."""


@dataclass(frozen=True)
class Chosen:
    """The letters of a plan as its entries, and how many letters there are."""

    entries: list[dict[str, Any]]
    """The oldest."""
    in_all: int
    damaged: int
    """They come last, so of a plan that is full they are not counted."""
    sent_before: int
    """By other plans; neither planned nor in the other numbers."""


def letters_of(frame: DataFrame, sent: Collection[KnownBy] = ()) -> Chosen:
    """Of a frame of `letters.py`, without those that other plans have sent."""
    died, tag = F.unix_millis("storeTimestamp").alias("died"), F.substring(TAG, 1, TAG_SHOWN).alias(TAG)
    sent_before = 0
    if sent:
        names = "brokerName string, queueId int, queueOffset long, msgId string"
        others = F.broadcast(frame.sparkSession.createDataFrame(sorted(sent), names))
        by = ["brokerName", "queueId", "queueOffset", "msgId"]
        sent_before = frame.join(others, by, "left_semi").count()
        frame = frame.join(others, by, "left_anti")
    rows = (
        frame.select("brokerName", "queueId", "queueOffset", "msgId", ORIGIN, tag, died)
        .orderBy(F.isnull("msgId"), "died", "brokerName", "queueId", "queueOffset")
        .limit(REDRIVE_MESSAGES_MAX)
        .collect()
    )
    entries = entries_of(rows)
    full = len(entries) == REDRIVE_MESSAGES_MAX
    in_all = frame.where(F.isnotnull("msgId")).count() if full else len(entries)
    return Chosen(entries, in_all, len(rows) - len(entries), sent_before)


def entries_of(rows: Sequence[Any]) -> list[dict[str, Any]]:
    """Without what a broker gives that is no message, from a damaged disk: it has no id, and nothing to send."""
    return [
        {
            "broker": row["brokerName"],
            "queue": row["queueId"],
            "offset": row["queueOffset"],
            "id": row["msgId"],
            "to": row[ORIGIN] if _may_be_origin(row[ORIGIN]) else "",
            "tag": row[TAG],
            "died": row["died"],
        }
        for row in rows
        if row["msgId"] is not None
    ]


def _may_be_origin(topic: str) -> bool:
    """Whether a letter is believed that it was of this topic: its producer may have written that.

    Nobody sends to a topic of retries but brokers; what is there goes to one group, past all that it asks for.
    """
    return _is_target(topic) and not topic.startswith(RETRY_PREFIX)


def _is_target(topic: str) -> bool:
    """Whether letters may go there."""
    try:
        check_topic(topic)
    except BolideError:
        return False
    return not topic.startswith(DEAD_LETTER_PREFIX) and not is_system_topic(topic)


_BETWEEN, _END = ",\n", "\n ]\n}\n"


def write_plan(
    path: Path,
    plan_id: str,
    secret: str,
    group: str,
    made: str,
    chosen: Mapping[str, Any],
    letters: Sequence[Mapping[str, Any]],
) -> int:
    """How many of the letters are in it, the first ones: as many as a plan can have that is to be read again.

    `FileExistsError` where there is a file already: it may be a plan that is under way.
    """
    head = {"kind": KIND, "version": VERSION, "id": plan_id, "group": group, "made": made}
    head |= {"secret": secret, "chosen": chosen}
    begin = json.dumps(head, indent=1, ensure_ascii=False).removesuffix("\n}") + ',\n "letters": [\n'
    lines, size = [], len(begin) + len(_END)
    for letter in letters:
        line = "  " + json.dumps(letter, ensure_ascii=False)
        size += len(line) + len(_BETWEEN)
        if size > REPLAY_FILE_BYTES_MAX:
            break
        lines.append(line)

    def check_free() -> None:
        if path.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))

    check_free()
    write_whole(path, begin + _BETWEEN.join(lines) + _END, check_free)
    return len(lines)


def read_plan(path: Path) -> Plan:
    """`ConfigError` says what is wrong with it, and with which letter."""
    with named_file(path), path.open() as file:
        text = file.read(REPLAY_FILE_BYTES_MAX + 1)
    if len(text) > REPLAY_FILE_BYTES_MAX:
        raise ConfigError(f"{path} is larger than a plan can be")
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is no JSON: {error}") from error
    if not isinstance(tree, dict) or (tree.get("kind"), tree.get("version")) != (KIND, VERSION):
        raise ConfigError(f"{path} is no plan of a redrive: `bolide pipeline dlq plan` makes one")
    entries = tree.get("letters")
    if not isinstance(entries, list) or len(entries) > REDRIVE_MESSAGES_MAX:
        raise ConfigError(f"{path}: letters is a list of {REDRIVE_MESSAGES_MAX} dead letters at most")
    letters = [_letter(path, number, entry) for number, entry in enumerate(entries, 1)]
    if len({letter.place for letter in letters}) != len(letters):
        raise ConfigError(f"{path} names a letter twice")
    try:
        plan_id, group = check_id(str(tree.get("id"))), check_group(str(tree.get("group")))
        secret = tree.get("secret")
        if not isinstance(secret, str) or not secret:
            raise ConfigError("it has no secret, so brokers would not know it again: make another plan")
        return Plan(plan_id, group, sorted(letters), check_id(secret))
    except BolideError as error:
        raise ConfigError(f"{path}: {error}") from error


def _letter(path: Path, number: int, entry: object) -> Letter:
    try:
        if not isinstance(entry, dict):
            raise ConfigError("it is no object")
        broker, queue, offset, unique = (entry.get(name) for name in ("broker", "queue", "offset", "id"))
        to = entry.get("to") or ""
        if not isinstance(broker, str) or not isinstance(unique, str) or not isinstance(to, str):
            raise ConfigError("broker, id and to are texts")
        if not is_int32(queue) or not is_int64(offset) or queue < 0 or offset < 0:
            raise ConfigError("queue and offset are numbers from 0 on")
        if to and check_topic(to) and not _is_target(to):
            raise ConfigError(f"no consumer would get it in {to}: give it another `to`")
        return Letter(broker, queue, offset, unique, to)
    except BolideError as error:
        raise ConfigError(f"{path}: letter {number}: {error}") from error
