"""A target: one parser, what it refuses with, and what holds for everything that it takes.

`read` may raise the errors that its parser documents, and nothing else.  `holds` may raise nothing: it says what must
be so of a value that was read, such as that it can be written and read again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bolide.model.errors import BolideError

Refusals = tuple[type[BolideError], ...]


def anything(value: Any) -> None:
    """Reading it is all there is to see."""


def as_it_is(data: bytes) -> bytes:
    return data


@dataclass(frozen=True)
class Target:
    name: str
    corpus: Callable[[], Sequence[bytes]]
    """Valid inputs, from which others are made."""
    read: Callable[[bytes], Any]
    refuses: Refusals = ()
    holds: Callable[[Any], None] = anything
    mend: Callable[[bytes], bytes] = as_it_is
    """Makes lengths and checksums right again, so that inputs get past them."""
    tokens: tuple[bytes, ...] = ()
    """Words that mean something to the parser."""
    share: int = 100
    """How many of the inputs it gets, beside the others: fewer where one takes long."""


def was_taken(target: Target, data: bytes) -> bool:
    """Whether the parser takes the input; any error but a refusal is a finding."""
    try:
        value = target.read(data)
    except target.refuses as error:
        str(error).encode()  # whoever is refused is told why
        return False
    target.holds(value)
    return True


def same_again(encode: Callable[[Any], bytes], decode: Callable[[bytes], Any]) -> Callable[[Any], None]:
    """What was read is written, and read again as the same."""

    def holds(value: Any) -> None:
        written = encode(value)
        again = decode(written)
        assert again == value, f"{value!r} was written as {written!r} and read again as {again!r}"

    return holds
