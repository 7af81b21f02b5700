"""`bolide send TOPIC [TEXT]`: a text or lines from stdin, as messages.

Neighbouring lines share a request, and up to `REQUESTS_AT_ONCE` requests wait for their acknowledgement at a time.  The
first failure ends the reading; what was stored until then is counted and reported, and what may be stored is said.
"""

import asyncio
import os
import shlex
import stat
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from bolide.cli import complete
from bolide.cli.ask import did_you_mean
from bolide.cli.later import At, Delay, DelayLevel, In, when
from bolide.cli.options import DEFAULT_NAMESERVER, Nameserver
from bolide.cli.outcome import Partly, explain
from bolide.cli.output import counted, reader_gone, say, write_json_line, write_line
from bolide.cli.progress import progress_bar
from bolide.model.errors import (
    BolideError,
    CallTimeout,
    ConfigError,
    ConnectionLost,
    NoNameServer,
    ProtocolError,
)
from bolide.model.limits import LINE_BYTES_MAX
from bolide.model.names import check_topic

if TYPE_CHECKING:
    from bolide.aio import Message, Producer, SendReceipt

Line = tuple[int, bytes]
Batch = list[tuple[int, "Message"]]

REQUESTS_AT_ONCE = 64
MESSAGES_PER_REQUEST = 64
BYTES_PER_REQUEST = 64 * 1024
ALONE_FROM_BYTES = 4096
"""Larger bodies gain little from company, and the client packs only those that go alone."""

UNANSWERED = (CallTimeout, ConnectionLost, ProtocolError)
"""After these nobody knows whether the broker has stored it."""

SEND_TIMEOUT_MS = 10_000
CHUNK_BYTES = 256 * 1024
PROGRESS_FROM_BYTES = 1024 * 1024

STDIN = 0

Topic = Annotated[
    str,
    typer.Argument(
        metavar="TOPIC",
        help="Where to send; made on demand if brokers do so.",
        autocompletion=complete.topics,
    ),
]
Keys = Annotated[
    list[str] | None,
    typer.Option("--key", "-k", metavar="KEY", help="A key to find it by; may be given often."),
]
Properties = Annotated[
    list[str] | None,
    typer.Option("--property", "-p", metavar="NAME=VALUE", help="A property; may be given often."),
]


def send(
    topic: Topic,
    text: Annotated[
        list[str] | None, typer.Argument(metavar="[TEXT]", help="Send this text instead of stdin.")
    ] = None,
    messages: Annotated[
        list[str] | None,
        typer.Option("--message", "-m", metavar="TEXT", help="Send this text, too; may be given often."),
    ] = None,
    keys: Keys = None,
    tag: Annotated[str | None, typer.Option("--tag", metavar="TAG", help="A tag to filter by.")] = None,
    properties: Properties = None,
    delay: Delay = None,
    level: DelayLevel = 0,
    at: At = None,
    after: In = None,
    from_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Each line is a JSON object: body, tag, keys, properties, as tail --json writes."
        ),
    ] = False,
    receipts: Annotated[
        bool, typer.Option("--receipts", help="Write where each message went, one JSON object per line.")
    ] = False,
    group: Annotated[str, typer.Option("--group", metavar="GROUP", help="Producer group.")] = "bolide-send",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing when all went well.")] = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Send messages: a text from the command line, or one for each line of stdin.

    Empty lines are skipped. Returns when the brokers have acknowledged all.
    Exit code 0 means that every message is stored.
    With --at or --in, stdout gets one line for each: the handle for `bolide message recall`.

    [bold]Examples[/bold]

        bolide send greetings hello
        bolide send orders '{"id": 42}' --key 42 --tag paid
        bolide send orders -m first -m second
        bolide send orders -m 'not paid yet?' --delay 30m
        bolide send reminders 'call back' --at tomorrow
        bolide send reminders 'call back' --in 2h30m
        bolide send lines < big.txt
        bolide tail a --json --since 1h --no-follow | bolide send b --json
    """
    from bolide.cli.lines import Envelope

    check_topic(topic)
    texts = _texts(text or (), messages or ())
    if texts is None and sys.stdin.isatty():
        say("type messages, one per line; Ctrl-D ends")
    moment = when(nameserver, delay, level, at, after)
    envelope = Envelope(topic, tag, tuple(keys or ()), _parse_properties(properties or ()), moment)
    read = envelope.json if from_json else envelope.text
    unit = "line" if texts is None else "message"
    reason_of = partial(did_you_mean, nameserver, topic)
    on_receipt = _print_receipt if receipts else _print_handle if moment.is_timed and not quiet else None
    sending = _Sending(read, unit, on_receipt, reason_of)
    try:
        asyncio.run(_send_all(nameserver, group, sending, texts))
    except KeyboardInterrupt:
        say(
            f"interrupted; {counted(sending.sent, 'message')} acknowledged by then, perhaps some more under way"
        )
        raise
    if not quiet:
        say(f"sent {counted(sending.sent, 'message')} to {topic}")


async def _send_all(nameserver: str, group: str, sending: "_Sending", texts: Sequence[str] | None) -> None:
    from bolide.aio import Producer

    async with Producer(nameserver, group=group, timeout_ms=SEND_TIMEOUT_MS) as producer:
        if texts is not None:
            await sending.run(producer, _given(texts))
            return
        total = _stdin_file_bytes()
        with progress_bar("sending", total, wanted=total >= PROGRESS_FROM_BYTES) as advance:
            await sending.run(producer, read_lines(STDIN, advance or (lambda count: None)))


class _Sending:
    """Sends what an iterator of numbered lines gives, many at a time."""

    def __init__(
        self,
        read: "Callable[[bytes], Message]",
        unit: str,
        on_receipt: "Callable[[SendReceipt], None] | None",
        reason_of: Callable[[BolideError], Awaitable[BolideError]],
    ) -> None:
        self._read = read
        self._unit = unit
        self._on_receipt = on_receipt
        self._reason_of = reason_of
        self._free = asyncio.Semaphore(REQUESTS_AT_ONCE)
        self._failure: tuple[str, BolideError | OSError] | None = None
        self._unanswered: list[int] = []
        self.sent = 0

    async def run(self, producer: "Producer", runs: AsyncIterator[list[Line]]) -> None:
        async with asyncio.TaskGroup() as tasks:
            try:
                await self._send_each(producer, runs, tasks)
            except (BolideError, OSError) as error:
                self._failed("reading stopped", error)
        if self._failure is not None:
            what, trouble = self._failure
            if isinstance(trouble, BolideError):
                trouble = await self._reason_of(trouble)
            raise Partly(f"{what}, {self._stored()}: {explain(trouble)}") from trouble

    def _stored(self) -> str:
        """What is known of the messages when all answers that come have come."""
        sure = f"{counted(self.sent, 'message')} {'is' if self.sent == 1 else 'are'}"
        if not self._unanswered:
            return f"{sure} stored"
        return (
            f"{sure} acknowledged, {self._unit} {min(self._unanswered)} and later ones may be stored or not"
        )

    async def _send_each(
        self, producer: "Producer", runs: AsyncIterator[list[Line]], tasks: asyncio.TaskGroup
    ) -> None:
        is_first = True
        async for lines in runs:
            for batch in _batches(self._messages(lines)):
                await self._free.acquire()
                sending = self._send(producer, batch)
                if is_first:  # alone: it finds the route, and the others then leave in their order
                    await sending
                    is_first = False
                else:
                    tasks.create_task(sending)
            if self._failure is not None:
                return

    def _messages(self, lines: list[Line]) -> "Iterator[tuple[int, Message]]":
        for number, line in lines:
            try:
                message = self._read(line)
            except BolideError as error:
                self._failed(f"{self._unit} {number} failed", error)
            if self._failure is not None:
                return
            yield number, message

    async def _send(self, producer: "Producer", batch: "Batch") -> None:
        try:
            if len(batch) == 1:
                receipts = [await producer.send(batch[0][1])]
            else:
                receipts = await producer.send_batch([message for _, message in batch])
        except BolideError as error:
            if isinstance(error, UNANSWERED) and not isinstance(error, NoNameServer):
                self._unanswered.append(batch[0][0])
            self._failed(f"{self._unit} {batch[0][0]} failed", error)
        else:
            self.sent += len(batch)
            self._report(receipts)
        finally:
            self._free.release()

    def _report(self, receipts: "Sequence[SendReceipt]") -> None:
        if self._on_receipt is None:
            return
        try:
            for receipt in receipts:
                self._on_receipt(receipt)
        except OSError as error:
            self._failed("a receipt could not be written", error)

    def _failed(self, what: str, error: BolideError | OSError) -> None:
        if self._failure is None:
            self._failure = (what, error)


def _batches(messages: "Iterable[tuple[int, Message]]") -> "Iterator[Batch]":
    """Neighbours that may share a request.  A message with properties of its own goes alone: some forbid batches."""
    batch: Batch = []
    size = 0
    for number, message in messages:
        alone = _goes_alone(message)
        if batch and (
            alone or len(batch) == MESSAGES_PER_REQUEST or size + len(message.body) > BYTES_PER_REQUEST
        ):
            yield batch
            batch, size = [], 0
        if alone:
            yield [(number, message)]
        else:
            batch.append((number, message))
            size += len(message.body)
    if batch:
        yield batch


def _goes_alone(message: "Message") -> bool:
    waits = message.delay_level != 0 or message.deliver_at is not None or message.delay is not None
    return waits or bool(message.properties) or len(message.body) >= ALONE_FROM_BYTES


async def read_lines(descriptor: int, on_read: Callable[[int], None]) -> AsyncIterator[list[Line]]:
    """Numbered lines as they come, without line feeds and without the empty ones: no message has an empty body.

    Waits on the event loop, so that Ctrl-C is heard.
    """
    number, rest = 0, bytearray()
    while chunk := await _read_chunk(descriptor):
        on_read(len(chunk))
        *lines, end = chunk.split(b"\n")
        if lines:
            lines[0] = bytes(rest) + lines[0]
            rest.clear()
        rest += end
        cut = (line.removesuffix(b"\r") for line in lines)
        yield [(at, line) for at, line in enumerate(cut, start=number + 1) if line]
        number += len(lines)
        if len(rest) > LINE_BYTES_MAX:
            raise ConfigError(
                f"line {number + 1} is longer than {LINE_BYTES_MAX} bytes: that cannot be one message"
            )
    if rest:
        yield [(number + 1, bytes(rest))]


async def _read_chunk(descriptor: int) -> bytes:
    loop = asyncio.get_running_loop()
    readable: asyncio.Future[None] = loop.create_future()
    try:
        loop.add_reader(descriptor, _wake, readable)
    except PermissionError:  # a regular file: never keeps us waiting, and cannot be watched
        return os.read(descriptor, CHUNK_BYTES)
    try:
        await readable
    finally:
        loop.remove_reader(descriptor)
    return os.read(descriptor, CHUNK_BYTES)


def _wake(readable: "asyncio.Future[None]") -> None:
    if not readable.done():
        readable.set_result(None)


async def _given(texts: Sequence[str]) -> AsyncIterator[list[Line]]:
    yield [(number, os.fsencode(text)) for number, text in enumerate(texts, start=1)]


def _texts(words: Sequence[str], messages: Sequence[str]) -> list[str] | None:
    """What the command line gives to send; None when it is stdin.  Two words may be one text or two."""
    if len(words) > 1:
        both = " ".join(words)
        raise ConfigError(
            f"one text is sent, not {len(words)} words: quote it ({shlex.quote(both[:64])}), or give each with -m"
        )
    return [*words, *messages] or None


def _stdin_file_bytes() -> int:
    """0 when stdin is no regular file."""
    try:
        status = os.fstat(STDIN)
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


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
