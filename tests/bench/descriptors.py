"""How many descriptors this process and what it starts may have."""

import resource

USUAL = 1024


def limit_descriptors() -> None:
    """Servers start with the soft limit that a shell gives on most machines, whatever this one gives."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, USUAL), hard))


def allow_descriptors(count: int | None = None) -> None:
    """So many for this process from now on, or as many as the system lets it have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = hard if count is None else min(count, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
