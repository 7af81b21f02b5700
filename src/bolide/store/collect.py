"""What of a queue's entries somebody wants.  Chooses compiled code or its readable twin."""

from typing import TYPE_CHECKING

from bolide.compiled import use_compiled

if TYPE_CHECKING or not use_compiled("bolide.store._collect"):
    from bolide.store.collect_twin import collect, first_by_code, first_wanted
else:
    from bolide.store._collect import collect, first_by_code, first_wanted

__all__ = ["collect", "first_by_code", "first_wanted"]
