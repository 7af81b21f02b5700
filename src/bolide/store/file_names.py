"""Names of files and folders that are numbers.

Segments and queue files are named by their first byte, queues by their number, index files by a time.  `str.isdigit` is
no test for that: it holds for digits of other scripts and other shapes, and a number may be larger than any place.
"""

from bolide.model.numbers import INT32_MAX, INT64_MAX

NUMBER_MAX = INT64_MAX
PLACE_DIGITS = 20
NAME_BYTES_MAX = 255
"""No file system takes a longer name."""


def number_of(name: str) -> int | None:
    """The number that a name is; None where it is none, or one that no file can have.

    >>> number_of("00000000000000004096"), number_of("٤"), number_of("9" * 20), number_of("-1")
    (4096, None, None, None)
    """
    if not (name.isascii() and name.isdigit() and len(name) <= PLACE_DIGITS):
        return None
    number = int(name)
    return number if number <= NUMBER_MAX else None


def place_of(name: str) -> int | None:
    """The number of a segment's or a queue file's first byte: 20 digits."""
    return number_of(name) if len(name) == PLACE_DIGITS else None


def ordinal_of(name: str) -> int | None:
    """A number that is written as we write it: `007` would be a second 7."""
    number = number_of(name)
    return number if number is not None and name == str(number) else None


def queue_id_of(name: str) -> int | None:
    """The number of a queue, as its folder is named."""
    number = ordinal_of(name)
    return number if number is not None and number <= INT32_MAX else None


def name_of(place: int) -> str:
    """The name of the file that begins there."""
    return f"{place:0{PLACE_DIGITS}d}"
