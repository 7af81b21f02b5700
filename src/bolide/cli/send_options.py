"""The options of `bolide send`: what it reads, and what it makes of it."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from bolide.cli import complete


class InputFormat(StrEnum):
    LINES = "lines"
    JSONL = "jsonl"
    CSV = "csv"
    TSV = "tsv"
    PARQUET = "parquet"


class Compression(StrEnum):
    ZLIB = "zlib"
    LZ4 = "lz4"
    ZSTD = "zstd"
    NONE = "none"


class OnError(StrEnum):
    STOP = "stop"
    SKIP = "skip"


Topic = Annotated[
    str,
    typer.Argument(
        metavar="TOPIC",
        help="Where to send; made on demand if brokers do so.",
        autocompletion=complete.topics,
    ),
]
Text = Annotated[list[str] | None, typer.Argument(metavar="[TEXT]", help="Send this text instead of stdin.")]
Messages = Annotated[
    list[str] | None,
    typer.Option("--message", "-m", metavar="TEXT", help="Send this text, too; may be given often."),
]
File = Annotated[
    Path | None,
    typer.Option("--file", metavar="FILE", help="Send what is in this file instead of stdin."),
]
Format = Annotated[
    InputFormat | None,
    typer.Option(
        "--format",
        "-f",
        help="What a message is: a line, a JSON object in a line, a row.",
        show_default="by the name of --file, else lines",
    ),
]
FromJson = Annotated[
    bool,
    typer.Option(
        "--json",
        help="As -f jsonl, and every object is a message with a body, as tail --json writes.",
    ),
]
BodyColumn = Annotated[
    str | None,
    typer.Option(
        "--body-column", metavar="NAME", help="The column or field that is the body; others are left out."
    ),
]
KeyColumn = Annotated[
    str | None, typer.Option("--key-column", metavar="NAME", help="The column or field that is the key.")
]
TagColumn = Annotated[
    str | None, typer.Option("--tag-column", metavar="NAME", help="The column or field that is the tag.")
]
Keys = Annotated[
    list[str] | None,
    typer.Option("--key", "-k", metavar="KEY", help="A key to find it by; may be given often."),
]
Tag = Annotated[str | None, typer.Option("--tag", metavar="TAG", help="A tag to filter by.")]
Properties = Annotated[
    list[str] | None,
    typer.Option("--property", "-p", metavar="NAME=VALUE", help="A property; may be given often."),
]
ShardingKey = Annotated[
    str | None,
    typer.Option(
        "--sharding-key", metavar="KEY", help="All to the one queue that this key chooses, in order."
    ),
]
Rate = Annotated[
    float | None, typer.Option("--rate", min=0.001, metavar="N", help="At most so many messages per second.")
]
Compressed = Annotated[
    Compression, typer.Option("--compression", help="How bodies from 4096 bytes on are packed.")
]
WhenBad = Annotated[
    OnError,
    typer.Option("--on-error", help="After a line that is no message: stop, or name it and go on."),
]
Receipts = Annotated[
    bool, typer.Option("--receipts", help="Write where each message went, one JSON object per line.")
]
ProducerGroup = Annotated[str, typer.Option("--group", metavar="GROUP", help="Producer group.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing when all went well.")]
