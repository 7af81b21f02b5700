"""Brokers that have not told their part: the rest is shown, then these are named, and the exit code says it."""

from collections.abc import Mapping

import typer

from bolide.cli.outcome import ExitCode, exit_code_of
from bolide.cli.output import say_error
from bolide.model.errors import BolideError, RemoteError


def silence(error: BolideError) -> str:
    """
    >>> silence(RemoteError(1, "why"))
    'does not tell'
    """
    return "does not tell" if isinstance(error, RemoteError) else "does not answer"


def say_silent(silent: Mapping[str, BolideError], missing: str = "") -> None:
    for name, error in silent.items():
        reason = " ".join(str(error).split())
        say_error(f"the broker {name!r} {silence(error)}{missing}: {reason}. `bolide doctor` looks.")


def end_for(silent: Mapping[str, BolideError], missing: str = "") -> None:
    """Name them, and end with the code for nobody there, or for refused."""
    say_silent(silent, missing)
    if silent:
        away = any(exit_code_of(error) == ExitCode.UNREACHABLE for error in silent.values())
        raise typer.Exit(ExitCode.UNREACHABLE if away else ExitCode.FAILED)
