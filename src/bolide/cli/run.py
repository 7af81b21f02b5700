"""How the command `bolide` runs and ends: its errors become one line on stderr and an exit code from `outcome.py`.

Never a traceback, unless BOLIDE_DEBUG=1 asks for one.
"""

import os
import sys
from collections.abc import Sequence
from typing import Any

from bolide.cli.outcome import NO_TEXT, ExitCode, exit_code_of, explain
from bolide.cli.output import prepare_streams, reader_gone, say, say_error
from bolide.model.errors import BolideError, Interrupted
from bolide.model.printable import is_text


def run(words: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit code."""
    code = _run(words)
    try:
        sys.stdout.flush()  # while an error can still be said
    except BrokenPipeError:
        reader_gone()
    except OSError as error:
        reader_gone()
        say_error(explain(error))
        return ExitCode.FAILED
    return code


def _run(words: Sequence[str] | None) -> int:
    try:
        prepare_streams()
        from bolide.cli.app import command

        outcome: Any = command()(words, prog_name="bolide", standalone_mode=False)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except SystemExit as end:  # Typer and Rich make it of a broken pipe
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        reader_gone()
        return ExitCode.OK  # `bolide --help | head -n 1`: whoever reads has enough, which is no failure
    except Exception as error:
        return _failed(error, sys.argv[1:] if words is None else words)
    return outcome if isinstance(outcome, int) else ExitCode.OK


def _failed(error: Exception, words: Sequence[str]) -> int:
    """One line, whatever it was; what nobody foresaw asks for a report."""
    from typer import Abort

    from bolide.cli.app import USAGE_ERROR

    if isinstance(error, Abort):
        return ExitCode.INTERRUPTED
    if isinstance(error, Interrupted):
        say(str(error))
        return ExitCode.INTERRUPTED
    if isinstance(error, USAGE_ERROR):
        return _usage(error)
    if os.environ.get("BOLIDE_DEBUG") == "1":
        raise error
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, BolideError | OSError):
        say_error(explain(error))
        return exit_code_of(error)
    if isinstance(error, UnicodeEncodeError | TypeError) and not all(map(is_text, words)):
        say_error(NO_TEXT)
        return ExitCode.USAGE
    say_error(
        f"unforeseen {type(error).__name__}: {_text_of(error)}."
        " This is a fault in bolide: run it again with BOLIDE_DEBUG=1 and report what that prints."
    )
    return ExitCode.FAILED


def _text_of(error: Exception) -> str:
    """In one line.  An error of Spark's asks the JVM for its text, which may be gone."""
    try:
        return " ".join(str(error).split())
    except Exception as no_text:
        return f"(its text cannot be had: {type(no_text).__name__})"


def _usage(error: Any) -> int:
    """Click's message in one line, with the way to the help that applies."""
    message = " ".join(error.format_message().split())
    if near := getattr(
        error, "possibilities", None
    ):  # the nearest first; Click's words have them by the alphabet
        message = message.replace(", ".join(sorted(near)), ", ".join(near))
    if message:  # empty when the help itself was the message
        where = error.ctx.command_path if error.ctx is not None else "bolide"
        end = "" if message.endswith(("?", ".")) else "."
        say_error(f"{message}{end} See `{where} --help`.")
    return ExitCode.USAGE
