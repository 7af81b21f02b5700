"""A queue in JSON: as an object in lists, and as a bare object where it is the key of a map.

Java writes `{{"brokerName":"b","queueId":0,"topic":"T"}:5}`.  Readers in other languages cut that text apart instead
of parsing it, so the order of the members is part of the format.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from bolide.model.java_json import Bare
from bolide.model.offsets import MessageQueue
from bolide.wire.bodies.members import parse_object, small_number, text


def queue_as_json(queue: MessageQueue) -> dict[str, Any]:
    return {"brokerName": queue.broker_name, "queueId": queue.queue_id, "topic": queue.topic}


def queue_from_json(members: Mapping[str, Any]) -> MessageQueue:
    return MessageQueue(
        topic=text(members, "topic"),
        broker_name=text(members, "brokerName"),
        queue_id=small_number(members, "queueId"),
    )


def queue_as_key(queue: MessageQueue) -> Bare:
    return Bare(orjson.dumps(queue_as_json(queue)).decode())


def queue_from_key(key: str) -> MessageQueue:
    """From a key as the tolerant reader hands it over."""
    return queue_from_json(parse_object(key.encode(), "a queue"))
