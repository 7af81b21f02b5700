"""Options that many commands share, declared once so that they are spelled and explained alike."""

from pathlib import Path
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


def _directory(text: str) -> Path:
    """An empty name is a variable that was not set, never the working directory."""
    if not str(text):
        raise typer.BadParameter("it is empty; '.' is the working directory")
    return Path(text)


Data = Annotated[
    Path,
    typer.Option(
        "--data",
        metavar="DIR",
        envvar="BOLIDE_DATA",
        parser=_directory,
        help="Where messages are stored.",
    ),
]

AsJson = Annotated[bool, typer.Option("--json", help="Write JSON for programs instead of text for people.")]

Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A setting under the key that the original's configuration files use; may be given often.",
    ),
]

Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Tell on stderr what the server does.")]
