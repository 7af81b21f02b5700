"""Where `bolide send` takes messages from: lines of a descriptor, rows of CSV, rows of a Parquet file.

A source gives runs of numbered items, as they come.  Lines and rows are counted as an editor counts them, so that an
error can name the place.
"""

import csv
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bolide.model.errors import ConfigError, MessageIllegal
from bolide.model.limits import LINE_BYTES_MAX
from bolide.model.named_file import named_file

Line = tuple[int, bytes]
Row = tuple[int, dict[str, Any] | MessageIllegal]
Wait = Callable[[int], bool]
"""Until a descriptor has something to read; False when nothing more is wanted."""

CHUNK_BYTES = 256 * 1024
COLUMNS_MAX = 4096
BYTE_ORDER_MARK = "\ufeff"

STDIN = 0


@contextmanager
def opened(path: Path | None) -> Iterator[int]:
    """The descriptor of a file, or of stdin."""
    if path is None:
        yield STDIN
        return
    with named_file(path):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise ConfigError(f"--file {path} is a directory")
        yield descriptor
    finally:
        os.close(descriptor)


def file_bytes(descriptor: int) -> int:
    """0 when it is no regular file."""
    try:
        status = os.fstat(descriptor)
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def read_lines(descriptor: int, on_read: Callable[[int], None], wait: Wait) -> Iterator[list[Line]]:
    """Numbered lines as they come, without line feeds and without the empty ones: no message has an empty body."""
    for number, lines in _chunks(descriptor, on_read, wait):
        cut = (line.removesuffix(b"\r") for line in lines)
        yield [(at, line) for at, line in enumerate(cut, start=number) if line]


def _chunks(descriptor: int, on_read: Callable[[int], None], wait: Wait) -> Iterator[tuple[int, list[bytes]]]:
    """Lines without their line feed, with the number of the first."""
    number, rest = 1, bytearray()
    while True:
        if not wait(descriptor):
            return  # what has come of the next line is not a line
        if not (chunk := os.read(descriptor, CHUNK_BYTES)):
            break
        on_read(len(chunk))
        *lines, end = chunk.split(b"\n")
        if lines:
            lines[0] = bytes(rest) + lines[0]
            rest.clear()
            yield number, lines
        rest += end
        number += len(lines)
        if len(rest) > LINE_BYTES_MAX:
            raise ConfigError(
                f"line {number} is longer than {LINE_BYTES_MAX} bytes: that cannot be one message"
            )
    if rest:
        yield number, [bytes(rest)]


def read_rows(
    descriptor: int,
    on_read: Callable[[int], None],
    wait: Wait,
    check: Callable[[Sequence[str]], None],
    delimiter: str,
) -> Iterator[list[Row]]:
    """Rows of CSV by the names in its first line.  A value in quotes may have line feeds; a row has the number of the
    line that it ends in.  Bytes that are no UTF-8 stay what they are.
    """
    csv.field_size_limit(int(LINE_BYTES_MAX))

    def texts() -> Iterator[str]:
        for _, lines in _chunks(descriptor, on_read, wait):
            for line in lines:
                yield line.decode("utf-8", "surrogateescape") + "\n"

    reader = csv.reader(texts(), delimiter=delimiter, strict=True)
    try:
        header = next(reader, None)
        if header is None:
            return
        header[0] = header[0].removeprefix(BYTE_ORDER_MARK)
        check(_names(header))
        for row in reader:
            if row:
                yield [(reader.line_num, _members(header, row))]
    except csv.Error as error:
        raise ConfigError(f"line {reader.line_num} is no CSV: {error}") from error


def _names(header: list[str]) -> list[str]:
    if len(header) > COLUMNS_MAX or len(set(header)) != len(header):
        raise ConfigError(
            f"the first line of CSV names its columns, each once and at most {COLUMNS_MAX}; this one does not"
        )
    return header


def _members(header: list[str], row: list[str]) -> dict[str, Any] | MessageIllegal:
    if len(row) != len(header):
        return MessageIllegal(f"{len(row)} values for {len(header)} columns")
    return dict(zip(header, row, strict=True))


def read_parquet(
    path: Path, on_read: Callable[[int], None], check: Callable[[Sequence[str]], None]
) -> Iterator[list[Row]]:
    """Rows of a Parquet file, by their numbers."""
    try:
        from bolide.pipeline import parquet_rows
    except ImportError as error:
        raise ConfigError(
            f"Parquet needs more libraries ({error.name}): pip install 'bolide[arrow]'"
        ) from error
    number, size = 1, path.stat().st_size
    for rows, share in parquet_rows.read_rows(path, check):
        yield list(enumerate(rows, start=number))
        number += len(rows)
        on_read(int(share * size))
