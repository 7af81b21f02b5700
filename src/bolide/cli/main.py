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
from bolide.cli.output import prepare_streams, say_error
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

    [bold]bolide COMMAND --help[/bold] explains each command with examples.
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
    prepare_streams()
    try:
        outcome: Any = app(words, prog_name="bolide", standalone_mode=False)
    except USAGE_ERROR as error:
        return _usage(error)
    except (KeyboardInterrupt, typer.Abort):
        return ExitCode.INTERRUPTED
    except Exception as error:
        if os.environ.get("BOLIDE_DEBUG") == "1":
            raise
        return _failed(error, sys.argv[1:] if words is None else words)
    return outcome if isinstance(outcome, int) else ExitCode.OK


def _failed(error: Exception, words: Sequence[str]) -> int:
    """One line, whatever it was; what nobody foresaw asks for a report."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, BolideError | OSError):
        say_error(explain(error))
        return exit_code_of(error)
    if isinstance(error, UnicodeEncodeError | TypeError) and not all(map(_is_text, words)):
        say_error("a word of this command is not UTF-8 text; only the bodies of messages may be any bytes")
        return ExitCode.USAGE
    say_error(
        f"unforeseen {type(error).__name__}: {' '.join(str(error).split())}."
        " This is a fault in bolide: run it again with BOLIDE_DEBUG=1 and report what that prints."
    )
    return ExitCode.FAILED


def _is_text(word: str) -> bool:
    """Whether a word of the command line came as UTF-8; bytes that are none arrive as lone surrogates."""
    return not any("\ud800" <= letter <= "\udfff" for letter in word)


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
