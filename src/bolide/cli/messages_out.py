"""How messages are shown: as JSON lines, as a table, or one with everything about it."""

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from bolide.cli.output import say, write_table
from bolide.cli.since import format_moment
from bolide.model.printable import printable_bytes

if TYPE_CHECKING:
    from bolide.record.stored import StoredMessage

BODY_SHOWN = 40
"""Characters of a body in a table."""


def write_json_lines(messages: "Iterable[StoredMessage]") -> None:
    from bolide.cli.layout import json_line

    for message in messages:
        sys.stdout.buffer.write(json_line(message))
    sys.stdout.buffer.flush()


def write_list(messages: "Sequence[StoredMessage]") -> None:
    from bolide.cli.layout import shown_body

    write_table(
        ("STORED", "BROKER", "QUEUE", "OFFSET", "ID", "TAG", "KEYS", "BODY"),
        [
            (
                format_moment(message.store_timestamp_ms),
                message.broker_name,
                message.queue_id,
                message.queue_offset,
                message.message_id,
                message.tags or "-",
                " ".join(message.keys),
                beginning(shown_body(message)),
            )
            for message in messages
        ],
    )
    say(f"{len(messages)} found")


def write_whole(message: "StoredMessage") -> None:
    from bolide.cli.layout import shown_body

    rows = {
        "id": message.message_id,
        "offset id": message.offset_message_id,
        "topic": message.topic,
        "place": f"broker {message.broker_name}, queue {message.queue_id}, offset {message.queue_offset}",
        "stored": f"{format_moment(message.store_timestamp_ms)} at {message.store_host}",
        "sent": f"{format_moment(message.born_timestamp_ms)} from {message.born_host}",
        "retries": str(message.reconsume_times),
        **dict(message.properties),
        "body": f"{len(message.body)} bytes",
    }
    width = max(map(len, rows))
    text = (
        "".join(f"{name:<{width}}  {value}\n" for name, value in rows.items()).encode()
        + b"\n"
        + shown_body(message)
    )
    out = sys.stdout.buffer
    out.write(printable_bytes(text) if sys.stdout.isatty() else text)
    out.write(b"" if text.endswith(b"\n") else b"\n")
    out.flush()


def beginning(body: bytes) -> str:
    """The first characters of a body, in one line."""
    text = body[: 4 * BODY_SHOWN].decode("utf-8", "replace").replace("\n", " ").replace("\t", " ")
    return text[:BODY_SHOWN] + ("…" if len(text) > BODY_SHOWN or len(body) > 4 * BODY_SHOWN else "")
