"""What Spark's own errors mean, in one line for who runs a pipeline: what is wrong, and what to do about it."""

import re
from collections.abc import Iterator

from bolide.model.errors import BolideError

NAMED_BY = "let PYSPARK_PYTHON name"
_UNREADABLE = re.compile(
    r"\[FAILED_READ_FILE[^]]*\] Encountered error while reading file (?:file:/*(?=/))?(.+?)\.\s"
)

_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"[^:]*: (?:error=\d+, )?([^\n]+)')
_OTHER_VERSION = re.compile(r"Python in worker has different version: ([\d.]+) than that in driver: ([\d.]+)")


class NoPython(BolideError):
    """Spark's workers have no Python that could do the work."""


class FileUnreadable(BolideError):
    """A file of a table that Spark cannot read."""

    def __init__(self, file: str) -> None:
        super().__init__(
            f"{file} cannot be read: it is damaged, empty, cut off or gone. Put it back from a copy, or take it away if"
            " it never belonged there"
        )


def in_one_line(error: BaseException) -> BolideError | None:
    """None for an error that is none of those that are known here."""
    for text in map(str, causes(error)):
        if found := _UNREADABLE.search(text):
            return FileUnreadable(found[1])
        if found := _NO_PROGRAM.search(text):
            return NoPython(
                f"Spark's workers cannot start the Python {found[1]} ({found[2].strip()}): {NAMED_BY} one that is"
                " on all of Spark's machines and has bolide"
            )
        if found := _OTHER_VERSION.search(text):
            return NoPython(
                f"Spark's workers run Python {found[1]} and this command {found[2]}, and Spark wants the same on both:"
                f" {NAMED_BY} one of version {found[2]} that has bolide"
            )
    return None


def first_words(error: BaseException) -> str:
    """What Spark says, without the plan and the stack of the JVM."""
    text = str(error).split("JVM stacktrace:")[0].strip()
    lines = [line.lstrip(" :").rstrip() for line in text.splitlines()]  # a plan is a tree, drawn with both
    lines = [line for line in lines if line and not line.startswith(("'", "+-", "==="))]
    return " ".join(lines[:4]) or type(error).__name__


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and what it came of."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
