"""Offsets of topics as Spark keeps and reports them, read for how far a query is behind."""

import json
from collections.abc import Mapping
from typing import Any

from bolide.model.errors import ConfigError
from bolide.model.offsets import MessageQueue
from bolide.pipeline.places import decode_places


def queue_offsets(told: Any) -> Mapping[MessageQueue, int] | None:
    """Where each queue goes on; None for offsets of another source."""
    try:
        tree = json.loads(told) if isinstance(told, str) else told
        return {queue: place.offset for queue, place in decode_places(tree).items()}
    except (AttributeError, ValueError, ConfigError):
        return None


def behind_of(told: Any, latest: Any) -> int | None:
    """Messages between the two; None where either is not about topics."""
    done, ends = queue_offsets(told), queue_offsets(latest)
    if done is None or ends is None:
        return None
    return sum(max(0, end - done.get(queue, 0)) for queue, end in ends.items())
