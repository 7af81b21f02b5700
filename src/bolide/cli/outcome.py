"""How a command ends: the exit codes, and the one line that says what went wrong and what to do about it.

The codes are a contract: scripts rely on them, and `bolide --help` lists them.
"""

import os
from enum import IntEnum

from bolide.model.errors import (
    BolideError,
    CallTimeout,
    ConfigError,
    ConnectionLost,
    GroupNotFound,
    InvalidRequest,
    NoBroker,
    NoNameServer,
    NotANameServer,
    NotAStore,
    NothingFound,
    NotWritable,
    ProtocolError,
    RemoteError,
    RouteNotFound,
    SubscriptionMalformed,
)
from bolide.model.response_code import ResponseCode


class ExitCode(IntEnum):
    OK = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    NOT_FOUND = 4
    CANNOT_START = 5
    STORE_FAILED = 6
    INTERRUPTED = 130


MEANINGS = {
    ExitCode.OK: "done",
    ExitCode.FAILED: "failed: refused, or a check found a problem",
    ExitCode.USAGE: "wrong usage: an unknown option, setting or value",
    ExitCode.UNREACHABLE: "no answer from a name server or broker, or no broker there",
    ExitCode.NOT_FOUND: "the topic, group, message, queue, cluster, broker or store does not exist",
    ExitCode.CANNOT_START: "a server cannot start, for example because its port is in use",
    ExitCode.STORE_FAILED: "the server stopped itself because its disk failed, or could not write everything down",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C",
}


NO_TEXT = "a word of this command is not UTF-8 text; only the bodies of messages may be any bytes"


class CannotStart(BolideError):
    """A server did not come up."""


class StoreFailed(BolideError):
    """A running server found that it can no longer trust its disk."""


class Refused(BolideError):
    """What was asked for would do harm; the text says what would not."""


class Partly(BolideError):
    """A part of the work was done; the text says how much, the cause why not the rest."""


_CODES: tuple[tuple[type[Exception], ExitCode], ...] = (
    (CannotStart, ExitCode.CANNOT_START),
    (StoreFailed, ExitCode.STORE_FAILED),
    (NotAStore, ExitCode.NOT_FOUND),
    (ConfigError, ExitCode.USAGE),
    (InvalidRequest, ExitCode.USAGE),
    (SubscriptionMalformed, ExitCode.USAGE),
    (NoBroker, ExitCode.UNREACHABLE),
    (NotWritable, ExitCode.FAILED),
    (RouteNotFound, ExitCode.NOT_FOUND),
    (NothingFound, ExitCode.NOT_FOUND),
    (GroupNotFound, ExitCode.NOT_FOUND),
    (ConnectionLost, ExitCode.UNREACHABLE),
    (CallTimeout, ExitCode.UNREACHABLE),
    (ProtocolError, ExitCode.UNREACHABLE),
)

_NOT_FOUND_ANSWERS = (
    ResponseCode.TOPIC_NOT_EXIST,
    ResponseCode.QUERY_NOT_FOUND,
    ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
)


def exit_code_of(error: BaseException) -> ExitCode:
    """The code that an error becomes; everything unforeseen is a plain failure."""
    if isinstance(error, Partly) and error.__cause__ is not None:
        return exit_code_of(error.__cause__)
    if isinstance(error, RemoteError) and error.response_code in _NOT_FOUND_ANSWERS:
        return ExitCode.NOT_FOUND
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code
    return ExitCode.FAILED


def explain(error: BaseException) -> str:
    """One line: what happened, then what to do."""
    text = " ".join(words(error).split()) or type(error).__name__
    hint = _hint(error)
    return text if not hint or hint in text else f"{text.rstrip('.')}. {hint}"


def words(error: BaseException) -> str:
    """An error of the system without its number: what is wrong, and with which file."""
    if not isinstance(error, OSError) or isinstance(error, BolideError) or not error.strerror:
        return str(error)
    return error.strerror if error.filename is None else f"{os.fsdecode(error.filename)}: {error.strerror}"


def _hint(error: BaseException) -> str:
    from bolide.store.disk import NO_SPACE  # only for who has met an error: help does not load the store

    if isinstance(error, Partly) and error.__cause__ is not None:
        return _hint(error.__cause__)
    if isinstance(error, ConnectionLost) and any(hint in str(error) for hint in ("bolide up", "try again")):
        return ""
    if isinstance(error, NotANameServer):
        return "Give the address of a name server with -n."
    if isinstance(error, NoNameServer):
        return "Start a server with `bolide up`, or give the address of a running one with -n."
    if isinstance(error, ConnectionLost):
        return "That is where the name server says a broker is; `bolide doctor` finds out why it cannot be reached."
    if isinstance(error, CannotStart) and any(os.strerror(number) in str(error) for number in NO_SPACE):
        return (
            "The log grows in steps of mappedFileSizeCommitLog, 1 GiB by default: free some space,"
            " choose another disk (--data, storePathRootDir), or set smaller steps."
        )
    if isinstance(error, CannotStart) and isinstance(error.__cause__, OSError):
        return "Mend that, or choose another place (--data, storePathRootDir)."
    if isinstance(error, CallTimeout):
        return "Is the server busy or behind a firewall? `bolide doctor` looks."
    if isinstance(error, RemoteError) and error.response_code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
        return "Is -n the address of a name server (port 9876 by default), not of a broker?"
    if isinstance(error, ProtocolError):
        return "Is this the port of a RocketMQ name server or broker?"
    return ""
