"""Shares of a table that is for all: how much may one add to it, so that he does not take it from others?

As long as there is plenty, as much as he likes.  In the end never more than stays free for others; and a quarter of the
table is kept for those that have little, so that many greedy ones leave something, too.  Pure.
"""

KEPT_PART, SMALL_PART = 4, 512
"""One of so many parts of a table is for those with less than one of so many parts of it."""


def room(held: int, most: int, taken: int, small: int | None = None) -> int:
    """What one who holds so much may add to a table of which so much is taken.

    >>> room(0, 1024, 0), room(384, 1024, 384), room(1, 1024, 1000)
    (384, 0, 1)
    """
    free = most - taken
    large = (free - most // KEPT_PART - held) // 2  # then as much stays free as he holds
    little = min(free, (most // SMALL_PART if small is None else small) - held)
    return max(0, large, little)
