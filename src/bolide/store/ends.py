"""Ends of transactions into records, many at once.  Chooses compiled code or its readable twin."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from bolide.compiled import use_compiled
from bolide.store.append import QueueTail

if TYPE_CHECKING or not use_compiled("bolide.store._ends"):
    from bolide.store.ends_twin import encode_ends
else:
    from bolide.store._ends import encode_ends

FindTails = Callable[[bytes], Sequence[QueueTail | None] | None]
"""The queues of a topic, for messages of transactions that were committed; None when somebody has to decide."""

__all__ = ["FindTails", "encode_ends"]
