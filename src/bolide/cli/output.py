"""What commands write: results to stdout, words about them to stderr, tables for people and JSON for programs."""

import io
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

from bolide.model.printable import printable, printable_json, printable_lines

TABLE_WIDTH_MAX = 10_000


def prepare_streams() -> None:
    """Closed descriptors lead nowhere, so that no socket or file takes their place; characters that a terminal does
    not have are escaped, so that none of them is an error.  A dumb terminal has ASCII alone, without lines around text.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)
    if isinstance(sys.stdout, io.TextIOWrapper):
        is_dumb = sys.stdout.isatty() and not can_be_steered(sys.stdout)
        encoding = "ascii" if is_dumb else sys.stdout.encoding
        sys.stdout.reconfigure(encoding=encoding, errors="backslashreplace")


def write_json(value: Any) -> None:
    """One JSON document, indented, in the order that it was built in."""
    import orjson

    text = orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS)
    print(printable_json(text.decode()))


def write_json_line(value: Any) -> None:
    """One JSON document in one line, for whoever reads line by line."""
    import orjson

    print(printable_json(orjson.dumps(value).decode()))


def write_line(text: str = "", *, end: str = "\n") -> None:
    """A line of a result; what strangers have put into it steers no terminal."""
    print(printable(text), end=end)


def write_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table; columns whose values are numbers are aligned to the right.  Plain enough for `awk`.

    Never cut to the width of a terminal: half an id is of no use to anybody.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    listed = [list(row) for row in rows]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for number, name in enumerate(columns):
        is_numeric = bool(listed) and all(isinstance(row[number], int) for row in listed)
        table.add_column(name, justify="right" if is_numeric else "left", no_wrap=True)
    for row in listed:
        table.add_row(*(Text(printable(str(value))) for value in row))
    Console(width=TABLE_WIDTH_MAX, highlight=False).print(table)


def can_be_steered(stream: TextIO) -> bool:
    """Whether a line can be written again: a terminal that is more than paper."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def takes_color(stream: TextIO) -> bool:
    """The same, where nobody has asked for no colour (no-color.org)."""
    return can_be_steered(stream) and not os.environ.get("NO_COLOR")


def counted(number: int, what: str) -> str:
    """
    >>> counted(1, "message"), counted(2, "message")
    ('1 message', '2 messages')
    """
    return f"{number} {what}{'' if number == 1 else 's'}"


def say(text: str) -> None:
    """A line for people, or some; stays out of pipes."""
    print(printable_lines(text), file=sys.stderr)


def say_error(text: str) -> None:
    print(f"error: {printable(text)}", file=sys.stderr)


def show(text: str) -> None:
    """A line of a result whose last word is the exit code."""
    with read_or_not():
        print(text)


@contextmanager
def read_or_not() -> Iterator[None]:
    """For results whose last word is the exit code: it stays the same when nobody reads the words any more."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        reader_gone()


def reader_gone() -> None:
    """Whoever read our output has enough, as in `bolide tail t | head`: what is still written leads nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
