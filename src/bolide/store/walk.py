"""Going over the records of the log.  Chooses the compiled module or its readable twin."""

from typing import TYPE_CHECKING

from bolide.compiled import use_compiled

if TYPE_CHECKING or not use_compiled("bolide.store._walk"):
    from bolide.store.walk_twin import BLANK, LIMIT, UNSOUND, LogWalk
else:
    from bolide.store._walk import BLANK, LIMIT, UNSOUND, LogWalk

__all__ = ["BLANK", "LIMIT", "UNSOUND", "LogWalk"]
