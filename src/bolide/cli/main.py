"""The command `bolide`: its commands in one list, and how errors leave it.

An error becomes one line on stderr that says what to do, and an exit code from `outcome.py`; never a traceback, unless
BOLIDE_DEBUG=1 asks for one.
"""

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from bolide.cli import doctor, message, send, serve, store, tail, topic
from bolide.cli.outcome import MEANINGS, ExitCode, exit_code_of, explain
from bolide.cli.output import say_error
from bolide.model.errors import BolideError

SERVERS, MESSAGES, OPERATIONS = "Run servers", "Send and read messages", "Look after them"

USAGE_ERROR: type[Exception] = typer.BadParameter.__bases__[0]
"""Click's UsageError, wherever this version of Typer keeps it."""

app = typer.Typer(
    name="bolide",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
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
) -> None:
    """RocketMQ in Python: servers, messages and their administration in one command.

    Try it: [bold]bolide up[/bold] in one terminal, then in another

        echo hello | bolide send greetings
        bolide tail greetings
    """


app.command(rich_help_panel=SERVERS)(serve.up)
app.command(rich_help_panel=SERVERS)(serve.nameserver)
app.command(rich_help_panel=SERVERS)(serve.broker)
app.command(rich_help_panel=MESSAGES)(send.send)
app.command(rich_help_panel=MESSAGES)(tail.tail)
app.add_typer(message.app, name="message", rich_help_panel=MESSAGES)
app.add_typer(topic.app, name="topic", rich_help_panel=OPERATIONS)
app.add_typer(store.app, name="store", rich_help_panel=OPERATIONS)
app.command(rich_help_panel=OPERATIONS)(doctor.doctor)


def main(words: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit code."""
    try:
        outcome: Any = app(words, prog_name="bolide", standalone_mode=False)
    except USAGE_ERROR as error:
        return _usage(error)
    except (KeyboardInterrupt, typer.Abort):
        return ExitCode.INTERRUPTED
    except (BolideError, OSError) as error:
        if os.environ.get("BOLIDE_DEBUG") == "1":
            raise
        say_error(explain(error))
        return exit_code_of(error)
    return outcome if isinstance(outcome, int) else ExitCode.OK


def _usage(error: Any) -> int:
    """Click's message in one line, with the way to the help that applies."""
    message = " ".join(error.format_message().split())
    if message:  # empty when the help itself was the message
        where = error.ctx.command_path if error.ctx is not None else "bolide"
        end = "" if message.endswith(("?", ".")) else "."
        say_error(f"{message}{end} See `{where} --help`.")
    return ExitCode.USAGE


if __name__ == "__main__":
    sys.exit(main())
