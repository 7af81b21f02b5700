"""The options of `bolide bench`, shared by its commands."""

from typing import Annotated

import typer

from bolide.cli import complete
from bolide.model.message import BODY_BYTES_MAX
from bolide.model.numbers import parse_whole

SIZE_BYTES = 128
SECONDS = 10.0
SECONDS_MAX = 86_400.0
COUNT_MAX = 10_000_000_000
PROCESSES_MAX = 64
THREADS_MAX = 256
BATCH_MAX = 4096
WINDOW = 20_000
WINDOW_MAX = 90_000
QUEUES = 8
QUEUES_MAX = 128

Topic = Annotated[
    str | None,
    typer.Option(
        "--topic",
        "-t",
        metavar="TOPIC",
        help="Work in this topic, which is left as it is afterwards.",
        show_default="one that is made for it and deleted",
        autocompletion=complete.topics,
    ),
]
Queues = Annotated[
    int,
    typer.Option("--queues", min=1, max=QUEUES_MAX, metavar="N", help="Queues of the topic that is made."),
]


def _size(text: str) -> int:
    """The words of Typer's own parser name neither the value nor its unit."""
    found = parse_whole(str(text))
    if found is None or not 1 <= found <= BODY_BYTES_MAX:
        raise typer.BadParameter(f"a number of bytes from 1 to {BODY_BYTES_MAX}, not {str(text)[:64]!r}")
    return found


Size = Annotated[int, typer.Option("--size", metavar="BYTES", parser=_size, help="Of each message's body.")]
Count = Annotated[
    int | None,
    typer.Option("--count", min=1, max=COUNT_MAX, metavar="N", help="Stop after so many messages."),
]
Seconds = Annotated[
    float,
    typer.Option("--seconds", min=0.1, max=SECONDS_MAX, metavar="S", help="Stop after so long, in any case."),
]
Rate = Annotated[
    float | None,
    typer.Option("--rate", min=0.001, metavar="N", help="So many messages per second, by a timetable."),
]
Batch = Annotated[
    int,
    typer.Option(
        "--batch",
        min=0,
        max=BATCH_MAX,
        metavar="N",
        help="N messages in a request, one request at a time for each thread.",
        show_default="send_soon: as many as come together",
    ),
]
Sync = Annotated[
    bool, typer.Option("--sync", help="One message in a request, one request at a time for each thread.")
]
Threads = Annotated[
    int, typer.Option("--threads", min=1, max=THREADS_MAX, metavar="N", help="That send, in each process.")
]
Processes = Annotated[
    int, typer.Option("--processes", min=1, max=PROCESSES_MAX, metavar="N", help="That share the work.")
]
Window = Annotated[
    int,
    typer.Option(
        "--in-flight",
        min=1,
        max=WINDOW_MAX,
        metavar="N",
        help="Messages without an answer at a time, in each process.",
    ),
]
