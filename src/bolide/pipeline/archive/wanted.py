"""What a run of an archive is asked to do; known without Spark."""

from collections.abc import Sequence
from dataclasses import dataclass

from bolide.pipeline.access import ClusterAccess


@dataclass(frozen=True)
class Wanted:
    """What a run is asked to do."""

    topics: Sequence[str]
    cluster: ClusterAccess
    trigger: str
    once: bool = False
    allow_gaps: bool = False
    """Go on when messages have expired before they were archived."""
    batch_bytes: int | None = None
    target_bytes: int | None = None
    """Compact, to files of this size."""
