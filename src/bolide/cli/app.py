"""The commands of `bolide` in one list.  Declaring them loads no server: each command imports what it needs."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from bolide.cli import (
    bench,
    broker,
    cluster,
    doctor,
    group,
    message,
    pipeline,
    queue,
    send,
    serve,
    store,
    tail,
    topic,
)
from bolide.cli.access import AccessKey, SecretKeyFile, TlsCaFile, TlsFlag, keep
from bolide.cli.outcome import MEANINGS

HELP_NAMES = ["-h", "--help"]
SERVERS, MESSAGES, OPERATIONS = "Run servers", "Send and read messages", "Look after them"
PIPELINES = "Stream them through Spark"

USAGE_ERROR: type[Exception] = typer.BadParameter.__bases__[0]
"""Click's UsageError, wherever this version of Typer keeps it."""

app = typer.Typer(
    name="bolide",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": HELP_NAMES},
    epilog="[bold]Exit codes[/bold]: "
    + "; ".join(f"{int(code)} {meaning}" for code, meaning in MEANINGS.items()),
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"bolide {version('bolide')}")
        raise typer.Exit


@app.callback()
def _bolide(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    access_key: AccessKey = None,
    secret_key_file: SecretKeyFile = None,
    tls: TlsFlag = False,
    tls_ca_file: TlsCaFile = None,
) -> None:
    """RocketMQ in Python: servers, messages and their administration in one command.

    Try it: [bold]bolide up[/bold] in one terminal, then in another

        bolide send greetings hello
        bolide tail greetings

    [bold]bolide COMMAND --help[/bold] explains each command with examples.
    """
    keep(access_key, secret_key_file, tls, tls_ca_file)


app.command(rich_help_panel=SERVERS)(serve.up)
app.command(rich_help_panel=SERVERS)(serve.nameserver)
app.add_typer(broker.app, name="broker", rich_help_panel=SERVERS)
app.command(rich_help_panel=MESSAGES)(send.send)
app.command(rich_help_panel=MESSAGES)(tail.tail)
app.add_typer(message.app, name="message", rich_help_panel=MESSAGES)
app.add_typer(bench.app, name="bench", rich_help_panel=OPERATIONS)
app.add_typer(topic.app, name="topic", rich_help_panel=OPERATIONS)
app.add_typer(queue.app, name="queue", rich_help_panel=OPERATIONS)
app.add_typer(group.app, name="group", rich_help_panel=OPERATIONS)
app.add_typer(cluster.app, name="cluster", rich_help_panel=OPERATIONS)
app.add_typer(store.app, name="store", rich_help_panel=OPERATIONS)
app.command(rich_help_panel=OPERATIONS)(doctor.doctor)
app.add_typer(pipeline.app, name="pipeline", rich_help_panel=PIPELINES)


def command() -> Any:
    """The whole command line, ready to be called.

    A flag takes no value, so its help names no kind of value; what an argument is, its name says and not a type.
    """
    whole = typer.main.get_command(app)
    for one in every_command(whole):
        for parameter in one.get_params(typer.Context(one, help_option_names=HELP_NAMES)):
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
            if parameter.param_type_name == "argument":
                parameter.display_type_rich = lambda ctx: None
    return whole


def every_command(command: Any) -> Iterator[Any]:
    """A command and all below it."""
    yield command
    for below in getattr(command, "commands", {}).values():
        yield from every_command(below)
