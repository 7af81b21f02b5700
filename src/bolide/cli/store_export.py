"""`bolide store export`: records of a store into JSON lines or a Parquet file, with the columns of the Spark source."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import orjson
import typer

from bolide.cli.layout import body_members
from bolide.cli.outcome import ExitCode
from bolide.cli.output import reader_gone, say
from bolide.cli.progress import progress_bar
from bolide.cli.since import format_moment, is_in_calendar
from bolide.model.errors import ConfigError, NothingFound
from bolide.model.printable import printable_json
from bolide.offline.export import Export, Selection
from bolide.offline.files import StoreFiles
from bolide.offline.scan import Progress
from bolide.record.decode import each_message
from bolide.record.stored import StoredMessage
from bolide.store.disk_os import OsDisk

PRIVATE = 0o600
"""The mode of what is exported: messages are for who asked for them."""


def run_export(root: str, selection: Selection, form: str, output: Path | None) -> None:
    """Write the messages, say how many there were; exit code 1 when parts of the log could not be read."""
    store = StoreFiles(OsDisk(), root)
    total = len(store.log.bases) * store.log.file_bytes
    try:
        # A bar would tear through lines on the same terminal.
        with progress_bar("exporting", total, wanted=output is not None or not sys.stdout.isatty()) as watch:
            unreadable = _write(store, selection, form, output, watch)
    finally:
        store.close()
    if unreadable:
        raise typer.Exit(ExitCode.FAILED)


def _write(
    store: StoreFiles, selection: Selection, form: str, output: Path | None, watch: Progress | None
) -> int:
    export = Export(store, selection, watch)
    if export.is_of_nothing:
        raise NothingFound(f"{store.root} has no topic {selection.topic!r}; `bolide store inspect` names all")
    if form == "parquet":
        assert output is not None
        _write_parquet(output, export)
    elif bad := _write_lines(output, export):
        say(f"{bad} bodies do not unpack and are given as they are stored; bodyError says why")
    if output is not None or not export.messages:
        say(f"exported {export.messages} messages" + (f" to {output}" if output is not None else ""))
    if export.holes:
        lost = sum(hole.end - hole.at for hole in export.holes)
        say(
            f"{lost} bytes of the log are unreadable and were left out; `bolide store verify {store.root}` tells where"
        )
    return len(export.holes)


def _write_parquet(output: Path, export: Export) -> None:
    try:
        from bolide.pipeline.parquet import write_parquet
    except ImportError as error:
        raise ConfigError(f"Parquet needs more libraries ({error.name}): pip install pyarrow") from error
    if output.exists() and not output.is_file() and not output.is_dir():
        raise ConfigError(f"Parquet cannot be written into a pipe or device: {output}")
    with _whole(output) as path:
        write_parquet(str(path), export.blocks(), export.broker_name)


def _write_lines(output: Path | None, export: Export) -> int:
    """Every message as a line; returns how many have a bad body."""
    bad = 0
    is_shown = output is None and sys.stdout.isatty()
    with _opened(output) as file:
        try:
            for block in export.blocks():
                for message in each_message(block, export.broker_name):
                    bad += message.body_error is not None
                    line = export_line(message)
                    file.write(printable_json(line.decode()).encode() if is_shown else line)
        except BrokenPipeError:
            reader_gone()
    return bad


@contextmanager
def _opened(output: Path | None) -> Iterator[BinaryIO]:
    """The file, or standard output."""
    if output is None:
        yield sys.stdout.buffer
        return
    with _whole(output) as path, path.open("wb") as file:
        yield file


@contextmanager
def _whole(output: Path) -> Iterator[Path]:
    """Where to write a file that appears under its name only when it is complete, and not at all if it never is.

    Pipes and devices are written to as they are: replacing one would be the end of it.
    """
    if output.is_dir():
        raise ConfigError(f"{output} is a directory: name a file in it with -o")
    if not output.parent.is_dir():
        raise ConfigError(f"cannot write {output}: there is no directory {output.parent}")
    if output.exists() and not output.is_file():
        yield output
        return
    temporary = output.with_name(output.name + ".tmp")
    temporary.unlink(missing_ok=True)  # a leftover, or a link that somebody has put there
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE))
    try:
        yield temporary
        temporary.replace(output)
    finally:
        temporary.unlink(missing_ok=True)


def export_line(message: StoredMessage) -> bytes:
    """One JSON object and a line feed, its members named like the columns of the Spark source."""
    members: dict[str, Any] = {
        "topic": message.topic,
        "brokerName": message.broker_name,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
    }
    members |= body_members(message, "bodyError")
    members |= {
        "tags": message.tags,
        "keys": list(message.keys),
        "properties": dict(message.properties),
        "msgId": message.message_id,
        "offsetMsgId": message.offset_message_id,
        "bornTimestamp": _moment(message.born_timestamp_ms),
        "storeTimestamp": _moment(message.store_timestamp_ms),
        "bornHost": message.born_host,
        "storeHost": message.store_host,
        "reconsumeTimes": message.reconsume_times,
        "flag": message.flag,
        "sysFlag": message.sys_flag,
        "logOffset": message.log_offset,
    }
    return orjson.dumps(members, option=orjson.OPT_APPEND_NEWLINE)


def _moment(moment_ms: int) -> str | None:
    """ISO in UTC; a time that no calendar holds is none."""
    return format_moment(moment_ms) if is_in_calendar(moment_ms) else None
