"""How far a stream has come, as its checkpoint keeps it: an offset per queue, and a mark of the message before it.

An offset alone does not tell a queue from another one that has its name by now.  The mark does: the last message that
was read, known by where it lies in the log and when it was stored.  If the queue has another message there, or ends
before it, the topic was made anew or the log has lost its end; which of the two, the age of what the queue has tells.

Where a batch begins is where the one before has ended.  It is in the place itself where that one does not say it: Spark
keeps no start of a first batch, and asks again whenever it runs that batch.

Spark compares the texts of two places to see whether there is something new, so the same place always is the same text.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from bolide.model.errors import ConfigError
from bolide.model.numbers import is_int64, parse_count
from bolide.model.offsets import MessageQueue
from bolide.pipeline.ranges import Ends

OFFSET, STORE_TIME, LOG_OFFSET, BEGIN = "offset", "storeTime", "logOffset", "begin"


@dataclass(frozen=True, order=True)
class Mark:
    """A message, so that it can be recognised."""

    store_time_ms: int
    log_offset: int


@dataclass(frozen=True)
class Place:
    """The next offset wanted in a queue, and the message before it; None where there was none to be seen."""

    offset: int
    mark: Mark | None = None
    begin: int | None = None
    """Where the batch that ends here begins, where the place before does not say it: there is none, or the queue had
    lost something behind it.  It stays until the queue is read on."""


Places = Mapping[MessageQueue, Place]


class Verdict(Enum):
    """What became of a queue since it was left at a place."""

    SAME = "the same"
    EXPIRED = "expired"
    RECREATED = "recreated"
    ROLLED_BACK = "rolled back"


def judge(place: Place, ends: Ends, before: Mark | None, first: Mark | None) -> Verdict:
    """Hold a place against the queue of today.

    `before` is the message right before the place and `first` the oldest one, None where the queue has none.
    """
    if before is not None and place.mark is not None:
        if before == place.mark:
            return Verdict.SAME
    elif ends.first <= place.offset <= ends.last:
        return Verdict.SAME  # nothing speaks against it
    elif place.offset < ends.first:
        return Verdict.EXPIRED
    return Verdict.ROLLED_BACK if _is_older(first, place.mark) else Verdict.RECREATED


def _is_older(first: Mark | None, mark: Mark | None) -> bool:
    """Whether the queue still has what was there before the mark: only then is it the queue that it was."""
    return first is not None and mark is not None and first.store_time_ms <= mark.store_time_ms


# ---- as Spark keeps it -----------------------------------------------------------------------------------------


def encode_places(places: Places) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for queue in sorted(places):
        place = places[queue]
        numbers = {OFFSET: place.offset}
        if place.mark is not None:
            numbers |= {STORE_TIME: place.mark.store_time_ms, LOG_OFFSET: place.mark.log_offset}
        if place.begin is not None:
            numbers[BEGIN] = place.begin
        tree.setdefault(queue.topic, {}).setdefault(queue.broker_name, {})[str(queue.queue_id)] = numbers
    return tree


def decode_places(tree: Mapping[str, Any]) -> dict[MessageQueue, Place]:
    """What `encode_places` wrote.  A checkpoint that was edited by hand, or is another source's, is refused."""
    places: dict[MessageQueue, Place] = {}
    try:
        for topic, brokers in tree.items():
            for broker, queues in brokers.items():
                for queue, numbers in queues.items():
                    places[MessageQueue(topic, broker, _number(parse_count(queue)))] = _place(numbers)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ConfigError(
            f"the checkpoint's offsets cannot be read ({error!r}): it is of another source, or was changed; begin with"
            " another checkpointLocation"
        ) from error
    return places


def _place(numbers: Mapping[str, Any]) -> Place:
    offset = _number(numbers[OFFSET])
    begin = _number(numbers[BEGIN]) if BEGIN in numbers else None
    if STORE_TIME not in numbers:
        return Place(offset, begin=begin)
    return Place(offset, Mark(_number(numbers[STORE_TIME]), _number(numbers[LOG_OFFSET])), begin)


def _number(value: object) -> int:
    if not is_int64(value) or value < 0:
        raise ValueError(f"{value!r} is no offset")
    return value
