"""Appending runs of sends, and the newest entries of each queue.  Chooses compiled code or its readable twin."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from bolide.compiled import use_compiled

if TYPE_CHECKING or not use_compiled("bolide.store._append"):
    from bolide.store.append_twin import (
        DONE,
        NEEDS_GENERAL_PATH,
        NEEDS_QUEUE,
        SEGMENT_FULL,
        Appender,
        Detour,
        QueueTail,
        TopicLane,
    )
else:
    from bolide.store._append import (
        DONE,
        NEEDS_GENERAL_PATH,
        NEEDS_QUEUE,
        SEGMENT_FULL,
        Appender,
        Detour,
        QueueTail,
        TopicLane,
    )

FindDetour = Callable[[TopicLane, bytes], Detour | None]
"""Where messages of a lane wait that ask for it in these words; None when the general path has to see them."""

__all__ = [
    "DONE",
    "NEEDS_GENERAL_PATH",
    "NEEDS_QUEUE",
    "SEGMENT_FULL",
    "Appender",
    "Detour",
    "FindDetour",
    "QueueTail",
    "TopicLane",
]
