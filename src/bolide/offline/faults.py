"""Pages of mapped files that cannot be had.  Chooses the compiled module or its readable twin."""

from typing import TYPE_CHECKING

from bolide.compiled import use_compiled

if TYPE_CHECKING or not use_compiled("bolide.offline._faults"):
    from bolide.offline.faults_twin import forget, lost_pages, watch
else:
    from bolide.offline._faults import forget, lost_pages, watch

__all__ = ["forget", "lost_pages", "watch"]
