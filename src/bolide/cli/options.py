"""Options that many commands share, declared once so that they are spelled and explained alike."""

from typing import Annotated

import typer

DEFAULT_NAMESERVER = "127.0.0.1:9876"
DEFAULT_DATA = "~/.bolide/data"

Nameserver = Annotated[
    str,
    typer.Option(
        "--nameserver",
        "-n",
        metavar="ADDRESS",
        envvar="BOLIDE_NAMESERVER",
        help="Name server, host:port; several with ';' between them.",
    ),
]

AsJson = Annotated[bool, typer.Option("--json", help="Write JSON for programs instead of text for people.")]

Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A setting under the key that the original's broker.conf uses; may be given often.",
    ),
]

Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Tell on stderr what the server does.")]
