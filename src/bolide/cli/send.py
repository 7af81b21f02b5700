"""`bolide send TOPIC`: lines from stdin, or texts from the command line, as messages.

Up to `IN_FLIGHT_MAX` messages wait for their acknowledgement at a time.  The first failure ends the reading; what was
sent before it is counted and reported.
"""

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from bolide.cli.options import DEFAULT_NAMESERVER, Nameserver
from bolide.cli.outcome import Partly
from bolide.cli.output import say
from bolide.model.errors import BolideError, ConfigError

if TYPE_CHECKING:
    from bolide.aio import Message, Producer, SendReceipt

IN_FLIGHT_MAX = 1024
CHUNK_BYTES = 256 * 1024
LINE_BYTES_MAX = 16 * 1024 * 1024
STDIN = 0


def send(
    topic: Annotated[
        str, typer.Argument(metavar="TOPIC", help="Where to send; made on demand if brokers do so.")
    ],
    messages: Annotated[
        list[str] | None,
        typer.Option(
            "--message", "-m", metavar="TEXT", help="Send this text instead of stdin; may be given often."
        ),
    ] = None,
    keys: Annotated[
        list[str] | None,
        typer.Option("--key", "-k", metavar="KEY", help="A key to find it by; may be given often."),
    ] = None,
    tag: Annotated[str | None, typer.Option("--tag", "-t", metavar="TAG", help="A tag to filter by.")] = None,
    properties: Annotated[
        list[str] | None,
        typer.Option("--property", "-p", metavar="NAME=VALUE", help="A property; may be given often."),
    ] = None,
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
    """Send messages: one for each line of stdin, or for each -m.

    Empty lines are skipped. Returns when the brokers have acknowledged all of them: exit code 0 means that every
    message is stored.

    [bold]Examples[/bold]

        echo hello | bolide send greetings
        bolide send orders -m '{"id": 42}' --key 42 --tag paid
        bolide send lines < big.txt                      # a progress bar on a terminal
        bolide tail a --json --since 1h --no-follow | bolide send b --json
    """
    from bolide.cli.lines import Envelope

    if messages is None and sys.stdin.isatty():
        say("type messages, one per line; Ctrl-D ends")
    envelope = Envelope(topic, tag, tuple(keys or ()), _parse_properties(properties or ()))
    read = envelope.json if from_json else envelope.text
    sending = _Sending(read, _print_receipt if receipts else None)
    asyncio.run(_send_all(nameserver, group, sending, messages))
    if not quiet:
        say(f"sent {sending.sent} message{'' if sending.sent == 1 else 's'} to {topic}")


async def _send_all(nameserver: str, group: str, sending: "_Sending", texts: Sequence[str] | None) -> None:
    from bolide.aio import Producer

    lines = _given(texts) if texts is not None else read_lines(STDIN, sending.progress.advance)
    async with Producer(nameserver, group=group, timeout_ms=10_000) as producer:
        with sending.progress:
            await sending.run(producer, lines)


class _Sending:
    """Sends what an iterator of lines gives, many at a time."""

    def __init__(
        self, read: "Callable[[bytes], Message]", on_receipt: "Callable[[SendReceipt], None] | None"
    ) -> None:
        self._read = read
        self._on_receipt = on_receipt
        self._free = asyncio.Semaphore(IN_FLIGHT_MAX)
        self._failure: tuple[int, BolideError] | None = None
        self.progress = _Progress()
        self.sent = 0

    async def run(self, producer: "Producer", lines: AsyncIterator[tuple[int, bytes]]) -> None:
        is_first = True
        async with asyncio.TaskGroup() as tasks:
            async for number, line in lines:
                await self._free.acquire()
                if self._failure is not None:
                    break
                try:
                    message = self._read(line)
                except BolideError as error:
                    self._failure = (number, error)
                    break
                sending = self._send(producer, number, message)
                if is_first:  # alone: it finds the route, and the others then leave in their order
                    await sending
                    is_first = False
                else:
                    tasks.create_task(sending)
        if self._failure is not None:
            number, trouble = self._failure
            raise Partly(f"line {number} failed, {self.sent} messages are stored: {trouble}") from trouble

    async def _send(self, producer: "Producer", number: int, message: "Message") -> None:
        try:
            receipt = await producer.send(message)
        except BolideError as error:
            if self._failure is None:
                self._failure = (number, error)
        else:
            self.sent += 1
            if self._on_receipt is not None:
                self._on_receipt(receipt)
        finally:
            self._free.release()


async def read_lines(descriptor: int, on_read: Callable[[int], None]) -> AsyncIterator[tuple[int, bytes]]:
    """Numbered lines as they come, without line feeds and without the empty ones: no message has an empty body.

    Waits on the event loop, so that Ctrl-C is heard.
    """
    number, rest = 0, b""
    while chunk := await _read_chunk(descriptor):
        on_read(len(chunk))
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            number += 1
            if line := line.removesuffix(b"\r"):
                yield number, line
        if len(rest) > LINE_BYTES_MAX:
            raise ConfigError(
                f"line {number + 1} is longer than {LINE_BYTES_MAX} bytes: that cannot be one message"
            )
    if rest:
        yield number + 1, rest


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


async def _given(texts: Sequence[str]) -> AsyncIterator[tuple[int, bytes]]:
    for number, text in enumerate(texts, start=1):
        yield number, text.encode()


class _Progress:
    """A bar on stderr when stdin is a file that is worth one and a person is watching."""

    FROM_BYTES = 1024 * 1024

    def __init__(self) -> None:
        self._bar: object | None = None
        self.advance: Callable[[int], None] = lambda count: None
        status = os.fstat(STDIN) if not sys.stdin.closed else None
        is_file = status is not None and stat.S_ISREG(status.st_mode)
        self._total = status.st_size if status is not None and is_file else 0

    def __enter__(self) -> None:
        if self._total < self.FROM_BYTES or not sys.stderr.isatty():
            return
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        bar = Progress(
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        task = bar.add_task("send", total=self._total)
        self.advance = lambda count: bar.advance(task, count)
        bar.start()
        self._bar = bar

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()  # type: ignore[attr-defined]


def _parse_properties(words: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for word in words:
        name, separator, value = word.partition("=")
        if not separator or not name:
            raise ConfigError(f"--property wants name=value, not {word[:64]!r}")
        pairs[name] = value
    return pairs


def _print_receipt(receipt: "SendReceipt") -> None:
    import orjson

    members = {
        "id": receipt.message_id,
        "topic": receipt.queue.topic,
        "broker": receipt.queue.broker_name,
        "queue": receipt.queue.queue_id,
        "offset": receipt.queue_offset,
        "status": receipt.status.name,
    }
    print(orjson.dumps(members).decode())
