"""Shares of a name server's table: how much may one connection add, so that it does not take the table from others?

As long as there is plenty, as much as it likes.  In the end never more than stay free for others; and a quarter of the
table is kept for connections that have little.  Pure.
"""

from bolide.model import limits
from bolide.model.errors import RequestError

KEPT_PART = 4
"""One of so many parts of the table is for small shares."""


def room(held: int, entries: int, topics: int) -> int:
    """What somebody who holds so many entries may add to a table of so many entries and topics."""
    return max(
        0, min(_room(held, limits.ROUTE_ENTRIES_MAX, entries), _room(held, limits.ROUTE_TOPICS_MAX, topics))
    )


def _room(held: int, most: int, taken: int) -> int:
    free = most - taken
    large = (free - most // KEPT_PART - held) // 2  # then as many stay free as it holds
    small = min(free, limits.SMALL_SHARE_MAX - held)
    return max(large, small)


def check_room(more: int, room: int) -> None:
    if more > room:
        raise RequestError(
            f"there is room for {max(0, room)} more topics of this broker, and it has {more}: delete topics that"
            " nobody uses, or look who fills this name server"
        )


def check_one_more(count: int, most: int, what: str) -> None:
    if count >= most:
        raise RequestError(f"{count} {what} already, and no more are taken")
