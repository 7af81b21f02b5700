"""The options of `bolide tail`."""

from typing import Annotated

import typer

from bolide.cli import complete

Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="What to read.", autocompletion=complete.topics)]
Format = Annotated[
    str, typer.Option("--format", "-f", metavar="FORMAT", help="How to write a message, see above.")
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="WHEN",
        help="From then on: 10m, 2h30m, yesterday, 10:30, an ISO time, milliseconds as %S has them, beginning, end.",
        show_default="the last 10 messages",
    ),
]
Until = Annotated[
    str | None,
    typer.Option(
        "--until", metavar="WHEN", help="Up to then, as --since says it; does not wait for new messages."
    ),
]
Last = Annotated[
    int, typer.Option("--last", min=0, metavar="N", help="Without --since: begin N messages before the end.")
]
Tags = Annotated[
    list[str] | None, typer.Option("--tag", metavar="TAG", help="Only this tag; may be given often.")
]
Sql = Annotated[
    str | None,
    typer.Option("--sql", metavar="EXPRESSION", help="Only where this is true of the properties."),
]
Keys = Annotated[
    list[str] | None, typer.Option("--key", "-k", metavar="KEY", help="Only this key; may be given often.")
]
GrepPattern = Annotated[
    str | None,
    typer.Option("--grep", metavar="PATTERN", help="Only bodies that this regular expression finds."),
]
Count = Annotated[int | None, typer.Option("--count", min=1, metavar="N", help="Stop after N messages.")]
Follow = Annotated[
    bool, typer.Option("--follow/--no-follow", help="Wait for new messages, or stop at the present end.")
]
Group = Annotated[
    str | None,
    typer.Option(
        "--group",
        metavar="GROUP",
        help="Consume as a member of this group, and move its offsets.",
        autocompletion=complete.groups,
        show_default="none: leaves no trace",
    ),
]
