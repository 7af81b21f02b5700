"""Half-open spans of offsets: what one list has, and another has not."""

from collections.abc import Iterable
from typing import NamedTuple


class Span(NamedTuple):
    """
    >>> str(Span(3, 7)), str(Span(3, 4))
    ('3..6', '3')
    """

    first: int
    end: int

    @property
    def rows(self) -> int:
        return self.end - self.first

    def __str__(self) -> str:
        return f"{self.first}" if self.rows == 1 else f"{self.first}..{self.end - 1}"


def merged(spans: Iterable[Span]) -> list[Span]:
    """In order, those that touch or overlap made one.

    >>> merged([Span(4, 6), Span(0, 2), Span(2, 4), Span(9, 9)])
    [Span(first=0, end=6)]
    """
    found: list[Span] = []
    for span in sorted(one for one in spans if one.rows > 0):
        if found and span.first <= found[-1].end:
            found[-1] = Span(found[-1].first, max(found[-1].end, span.end))
        else:
            found.append(span)
    return found


def without(spans: Iterable[Span], others: Iterable[Span]) -> list[Span]:
    """
    >>> without([Span(0, 10)], [Span(2, 3), Span(8, 20)])
    [Span(first=0, end=2), Span(first=3, end=8)]
    """
    cuts = merged(others)
    found: list[Span] = []
    for span in merged(spans):
        at = span.first
        for cut in cuts:
            if cut.end <= at or cut.first >= span.end:
                continue
            if cut.first > at:
                found.append(Span(at, cut.first))
            at = max(at, cut.end)
        if at < span.end:
            found.append(Span(at, span.end))
    return found


def common(spans: Iterable[Span], others: Iterable[Span]) -> list[Span]:
    """
    >>> common([Span(0, 10)], [Span(2, 3), Span(8, 20)])
    [Span(first=2, end=3), Span(first=8, end=10)]
    """
    every = merged(spans)
    return without(every, without(every, others))
