"""Shares of a name server's table: how much may one connection add, so that it does not take the table from others?

The rule is that of all such tables (`shares.py`), for entries and for topics.  Pure.
"""

from bolide.machines import shares
from bolide.model import limits
from bolide.model.errors import RequestError


def room(held: int, entries: int, topics: int) -> int:
    """What somebody who holds so many entries may add to a table of so many entries and topics."""
    small = limits.SMALL_SHARE_MAX
    return min(
        shares.room(held, limits.ROUTE_ENTRIES_MAX, entries, small),
        shares.room(held, limits.ROUTE_TOPICS_MAX, topics, small),
    )


def check_room(more: int, room: int) -> None:
    if more > room:
        raise RequestError(
            f"there is room for {max(0, room)} more topics of this broker, and it has {more}: delete topics that"
            " nobody uses, or look who fills this name server"
        )


def check_one_more(count: int, most: int, what: str) -> None:
    if count >= most:
        raise RequestError(f"{count} {what} already, and no more are taken")
