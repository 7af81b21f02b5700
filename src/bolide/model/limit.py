"""A limit: a number that keeps somebody else's input from costing without bound.  `model/limits` has all of them."""

from enum import Enum
from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB


class Where(Enum):
    """Whose input a limit is about; a heading of the page."""

    CONNECTION = "On every connection, at broker and name server"
    BROKER = "At the broker"
    NAMESERVER = "At the name server"
    CLIENT = "In the Python clients and the Spark source"
    FILES = "In files"


class Limit(int):
    """A bound, with what it is for.

    >>> three = Limit(3, Where.BROKER, "wishes per fairy", "the fairy refuses")
    >>> three + 1, three.of
    (4, 'wishes per fairy')
    """

    where: Where
    of: str
    beyond: str
    bounds: tuple[str, ...]

    def __new__(
        cls, value: int, where: Where, of: str, beyond: str, *, bounds: tuple[str, ...] = ()
    ) -> "Limit":
        """`of`: what is counted; `beyond`: what happens to more; `bounds`: settings that go no further."""
        limit = super().__new__(cls, value)
        limit.where, limit.of, limit.beyond, limit.bounds = where, of, beyond, bounds
        return limit
