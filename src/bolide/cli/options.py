"""Options that many commands share, declared once so that they are spelled and explained alike.

A letter means the same wherever it stands: -n name server, -c configuration file, -t topic, -k key, -m message,
-p property, -f format, -o output, -q quiet, -y yes, -v verbose, -h help.
"""

from pathlib import Path
from typing import Annotated

import typer

from bolide.cli import complete
from bolide.model.usual_nameserver import NAMESERVER_VARIABLES, USUAL_NAMESERVER, nameserver_variable

DEFAULT_NAMESERVER = USUAL_NAMESERVER
DEFAULT_DATA = "~/.bolide/data"


def _checked_nameserver(ctx: typer.Context, value: str) -> str:
    """The same; where it is no address, the error says whose word that was."""
    from bolide.model.addresses import check_addresses

    source = ctx.get_parameter_source("nameserver")
    is_given = source is not None and source.name == "COMMANDLINE"
    check_addresses("--nameserver" if is_given else nameserver_variable(), value)
    return value


Nameserver = Annotated[
    str,
    typer.Option(
        "--nameserver",
        "-n",
        metavar="ADDRESS",
        envvar=NAMESERVER_VARIABLES,
        callback=_checked_nameserver,
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

TopicName = Annotated[
    str, typer.Argument(metavar="TOPIC", help="The topic's name.", autocompletion=complete.topics)
]
GroupName = Annotated[
    str, typer.Argument(metavar="GROUP", help="The group's name.", autocompletion=complete.groups)
]
BrokerName = Annotated[
    str, typer.Argument(metavar="BROKER", help="The broker's name.", autocompletion=complete.brokers)
]
MessageId = Annotated[
    str,
    typer.Argument(metavar="ID", help="The message's id; `bolide message get --help` tells of both kinds."),
]
TopicOfId = Annotated[
    str | None,
    typer.Option(
        "--topic", "-t", metavar="TOPIC", help="The topic of a unique id.", autocompletion=complete.topics
    ),
]

OnBroker = Annotated[
    str | None,
    typer.Option("--broker", metavar="NAME", help="Only on this broker.", autocompletion=complete.brokers),
]
OnCluster = Annotated[
    str | None,
    typer.Option(
        "--cluster", metavar="NAME", help="On the masters of this cluster.", autocompletion=complete.clusters
    ),
]
OfCluster = Annotated[
    str | None,
    typer.Option("--cluster", metavar="NAME", help="Only of this cluster.", autocompletion=complete.clusters),
]
System = Annotated[bool, typer.Option("--system", help="Also those that RocketMQ itself uses.")]
IfNotExists = Annotated[
    bool, typer.Option("--if-not-exists", help="What exists is left as it is, and that is a success.")
]

AsJsonLines = Annotated[
    bool, typer.Option("--json", help="One JSON object per line; `bolide send --json` reads it.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON for programs instead of text for people.")]

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

Preview = Annotated[bool, typer.Option("--preview", help="Show what would happen, and change nothing.")]

Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        autocompletion=complete.settings,
        help="A setting under the key that the original's configuration files use; may be given often.",
    ),
]

Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Tell on stderr what the server does.")]
