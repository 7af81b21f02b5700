"""`bolide send TOPIC [TEXT]`: a text, lines from stdin, or rows of a file, as messages.

Here is what the command line says; `sources.py` reads, `lines.py` makes messages, `sending.py` sends them.
"""

import asyncio
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bolide.cli import send_options as options
from bolide.cli.access import access
from bolide.cli.ask import did_you_mean
from bolide.cli.later import At, Delay, DelayLevel, In, when
from bolide.cli.options import DEFAULT_NAMESERVER, Nameserver
from bolide.cli.outcome import Partly, explain
from bolide.cli.output import counted, reader_gone, say, write_json_line, write_line
from bolide.cli.progress import progress_bar
from bolide.cli.send_options import Compression, InputFormat, OnError
from bolide.model.errors import ConfigError, MessageIllegal, RouteNotFound
from bolide.model.names import check_topic

if TYPE_CHECKING:
    from bolide import Producer, SendReceipt
    from bolide.cli.lines import Envelope
    from bolide.cli.sending import Sending

SEND_TIMEOUT_MS = 10_000
PROGRESS_FROM_BYTES = 1024 * 1024
RATE_SAID_FROM_MESSAGES = 100_000

Runs = Iterator[list[tuple[int, Any]]]

_BY_NAME = {
    ".csv": InputFormat.CSV,
    ".tsv": InputFormat.TSV,
    ".jsonl": InputFormat.JSONL,
    ".ndjson": InputFormat.JSONL,
    ".parquet": InputFormat.PARQUET,
}


def send(
    topic: options.Topic,
    text: options.Text = None,
    messages: options.Messages = None,
    file: options.File = None,
    format_: options.Format = None,
    from_json: options.FromJson = False,
    keys: options.Keys = None,
    tag: options.Tag = None,
    properties: options.Properties = None,
    sharding_key: options.ShardingKey = None,
    body_column: options.BodyColumn = None,
    key_column: options.KeyColumn = None,
    tag_column: options.TagColumn = None,
    delay: Delay = None,
    level: DelayLevel = 0,
    at: At = None,
    after: In = None,
    rate: options.Rate = None,
    compression: options.Compressed = Compression.ZLIB,
    on_error: options.WhenBad = OnError.STOP,
    receipts: options.Receipts = False,
    group: options.ProducerGroup = "bolide-send",
    quiet: options.Quiet = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Send messages: a text from the command line, or one for each line of stdin or of a file.

    Empty lines are skipped. Returns when the brokers have acknowledged all.
    Exit code 0 means that every message is stored.
    With --at or --in, stdout gets one line for each: the handle for `bolide message recall`.

    Objects and rows: body, tags, keys, properties, delay_level, deliver_at and sharding_key are those of
    the message; one without a body is the body as a whole, as JSON.

    [bold]Examples[/bold]

        bolide send greetings hello
        bolide send orders '{"id": 42}' --key 42 --tag paid
        bolide send orders -m 'not paid yet?' --delay 30m
        bolide send reminders 'call back' --in 2h30m
        bolide send lines < big.txt
        bolide send orders --file orders.csv --body-column order --key-column id
        bolide send orders --file orders.parquet --rate 500 --on-error skip
        bolide tail a --json --since 1h --no-follow | bolide send b --json
    """
    from bolide.cli.lines import Columns, Envelope

    check_topic(topic)
    source = _Source(_texts(text or (), messages or ()), file, _format(format_, file, from_json), from_json)
    source.check((body_column, key_column, tag_column))
    moment = when(nameserver, delay, level, at, after)
    columns = Columns(body_column, key_column, tag_column)
    shared = _parse_properties(properties or ())
    envelope = Envelope(topic, tag, tuple(keys or ()), shared, moment, sharding_key, columns)
    source.check_messages(envelope, on_error is OnError.SKIP)
    on_receipt = _print_receipt if receipts else _print_handle if moment.is_timed and not quiet else None
    began = time.monotonic()
    with _producer(nameserver, group, compression) as producer:
        sending = source.send(producer, envelope, on_receipt, on_error is OnError.SKIP, rate, nameserver)
    if not quiet:
        say(
            f"sent {counted(sending.sent, 'message')} to {topic}{_pace(sending.sent, time.monotonic() - began)}"
        )


def _pace(count: int, seconds: float) -> str:
    if count < RATE_SAID_FROM_MESSAGES:
        return ""
    return f" in {seconds:.1f} s, {count / seconds:,.0f} per second"


@contextmanager
def _producer(nameserver: str, group: str, compression: Compression) -> "Iterator[Producer]":
    """A producer that is closed in order, unless a second Ctrl-C wants to wait for nothing."""
    from bolide import Producer
    from bolide.cli.sending import NotWaited
    from bolide.model.message import BODY_BYTES_MAX

    packing: dict[str, Any] = {"compression": str(compression)}
    if compression is Compression.NONE:
        packing = {"pack_from_bytes": BODY_BYTES_MAX + 1}
    producer = Producer(nameserver, group=group, timeout_ms=SEND_TIMEOUT_MS, **packing, **access())
    producer.start()
    try:
        yield producer
    except NotWaited:
        raise
    except BaseException:
        producer.close()
        raise
    producer.close()


class _Source:
    """What is to be sent, as the command line says it."""

    def __init__(
        self, texts: Sequence[str] | None, file: Path | None, format_: InputFormat, strict: bool
    ) -> None:
        self._texts = texts
        self._file = file
        self._format = format_
        self._is_strict = strict

    def check(self, columns: Sequence[str | None]) -> None:
        """`ConfigError` for what does not go together."""
        if self._texts is not None and self._file is not None:
            raise ConfigError("give a text or --file, not both")
        if self._format is InputFormat.PARQUET and self._file is None:
            raise ConfigError("Parquet is read from a file, not from a pipe: give it with --file")
        has_columns = self._format is not InputFormat.LINES and not self._is_strict
        if not has_columns and any(column is not None for column in columns):
            raise ConfigError(
                "--body-column, --key-column and --tag-column are for -f jsonl, csv, tsv and parquet"
            )
        if self._texts is None and self._file is None and sys.stdin.isatty():
            say("type messages, one per line; Ctrl-D ends")

    def check_messages(self, envelope: "Envelope", skips: bool) -> None:
        """`ConfigError` for what the words of the command line say and no message can have, before any is sent."""
        from bolide.client.outgoing import prepare

        try:
            prepare(envelope.text(b"any"), "")
        except MessageIllegal as error:
            raise ConfigError(str(error)) from error
        read = self._read(envelope)
        for number, text in enumerate(() if skips else self._texts or (), start=1):
            try:
                prepare(read(os.fsencode(text)), "")
            except MessageIllegal as error:
                raise ConfigError(f"message {number} cannot be sent: {error}") from error

    def send(
        self,
        producer: "Producer",
        envelope: "Envelope",
        on_receipt: "Callable[[SendReceipt], None] | None",
        skips: bool,
        rate: float | None,
        nameserver: str,
    ) -> "Sending":
        from bolide.cli.sending import Sending

        unit = "message" if self._texts else "row" if self._format is InputFormat.PARQUET else "line"
        sending = Sending(
            self._read(envelope),
            unit,
            on_receipt=on_receipt,
            on_receipts_told=partial(_write, sys.stdout.flush),
            skips=skips,
            rate=rate,
            can_be_cut=self._texts is None and self._format in (InputFormat.LINES, InputFormat.JSONL),
        )
        try:
            with self._runs(envelope, sending) as runs:
                sending.run(producer, runs)
        except Partly as error:
            cause = error.__cause__
            if not isinstance(cause, RouteNotFound):
                raise
            better = asyncio.run(did_you_mean(nameserver, envelope.topic, cause))
            raise Partly(str(error).replace(explain(cause), explain(better))) from better
        return sending

    def _read(self, envelope: "Envelope") -> Callable[[Any], Any]:
        if self._is_strict:
            return envelope.json
        if self._format is InputFormat.LINES:
            return envelope.text
        return envelope.object if self._format is InputFormat.JSONL else envelope.row

    @contextmanager
    def _runs(self, envelope: "Envelope", sending: "Sending") -> Iterator[Runs]:
        from bolide.cli.sources import file_bytes, opened, read_lines, read_parquet, read_rows

        if self._texts is not None:
            yield iter([[(number, os.fsencode(text)) for number, text in enumerate(self._texts, start=1)]])
            return
        with opened(self._file) as descriptor:
            total = file_bytes(descriptor)
            with progress_bar("sending", total, wanted=total >= PROGRESS_FROM_BYTES) as advance:
                on_read = advance or (lambda count: None)
                check = envelope.columns.check
                if self._format is InputFormat.PARQUET and self._file is not None:
                    yield read_parquet(self._file, on_read, check)
                elif self._format in (InputFormat.CSV, InputFormat.TSV):
                    delimiter = "," if self._format is InputFormat.CSV else "\t"
                    yield read_rows(descriptor, on_read, sending.wait, check, delimiter)
                else:
                    yield read_lines(descriptor, on_read, sending.wait)


def _format(given: InputFormat | None, file: Path | None, strict: bool) -> InputFormat:
    if strict:
        if given not in (None, InputFormat.JSONL):
            raise ConfigError(f"--json reads JSON lines, and --format says {given}: give one of them")
        return InputFormat.JSONL
    if given is not None:
        return given
    return InputFormat.LINES if file is None else _BY_NAME.get(file.suffix.lower(), InputFormat.LINES)


def _texts(words: Sequence[str], messages: Sequence[str]) -> list[str] | None:
    """What the command line gives to send; None when it is stdin.  Two words may be one text or two."""
    if len(words) > 1:
        both = " ".join(words)
        raise ConfigError(
            f"one text is sent, not {len(words)} words: quote it ({shlex.quote(both[:64])}), or give each with -m"
        )
    return [*words, *messages] or None


def _parse_properties(words: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for word in words:
        name, separator, value = word.partition("=")
        if not separator or not name:
            raise ConfigError(f"--property wants name=value, not {word[:64]!r}")
        pairs[name] = value
    return pairs


def _print_receipt(receipt: "SendReceipt") -> None:
    members = {
        "id": receipt.message_id,
        "topic": receipt.queue.topic,
        "broker": receipt.queue.broker_name,
        "queue": receipt.queue.queue_id,
        "offset": receipt.queue_offset,
        "status": receipt.status.name,
        "recall_handle": receipt.recall_handle,
    }
    _write(partial(write_json_line, members))


def _print_handle(receipt: "SendReceipt") -> None:
    if receipt.recall_handle is None:
        say(
            f"{receipt.message_id} does not wait: its time is over, or the broker is older than 5.0 and knows no times"
        )
    else:
        _write(partial(write_line, receipt.recall_handle))


def _write(write: Callable[[], None]) -> None:
    try:
        write()
    except BrokenPipeError:  # `| head`: the messages are what this is about
        reader_gone()
