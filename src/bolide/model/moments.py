"""Numbers that name a moment: milliseconds as messages carry them, and the seconds that are taken for them."""

SECONDS_FROM, MILLISECONDS_FROM = 10**8, 10**11
"""Both are in 1973, one counted in seconds and the other in milliseconds.  Smaller numbers might mean anything."""


def looks_like_seconds(moment_ms: int) -> bool:
    """Whether these milliseconds, a moment of 1970 to 1973, were meant as seconds.

    >>> looks_like_seconds(1_700_000_000), looks_like_seconds(1_700_000_000_000), looks_like_seconds(0)
    (True, False, False)
    """
    return SECONDS_FROM <= moment_ms < MILLISECONDS_FROM
