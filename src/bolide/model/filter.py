"""Which messages of a queue somebody wants, as a value that whoever reads a queue carries without knowing its kind.

A filter has two halves.  `codes` is what a queue entry alone can tell, at no cost; `examine` asks the record itself.
A message is wanted when both want it.
"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Filter:
    """Equal filters want the same messages.  So `examine` is a value too: equal ones must judge alike.

    It is asked only about sound records, must not keep what it is given, and answers without raising: messages of
    other people may wait behind it.
    """

    codes: frozenset[int] | None = None
    """Hashes of the wanted tags; None for all."""
    examine: Callable[[bytes | memoryview], bool] | None = None
    """Compiled code asks one that is compiled itself (`_pairs.pxd`: `Examiner`) where the record lies."""
    weight: int = 1
    """How much `examine` does for each byte that it looks at."""
    examine_bytes: int = 0
    """About what `examine` takes in memory."""


EVERYTHING = Filter()
