"""Tables of a page."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bolide.pipeline.stats.markup import Content, Html, tag

NUMBER = "n"


@dataclass(frozen=True)
class Cell:
    content: Content
    kind: str | None = None
    """A class of the page's style."""


def number(content: str) -> Cell:
    return Cell(content, NUMBER)


def bare(content: Content, kind: str | None = None) -> Cell:
    return Cell(content, kind)


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Html:
    """The first cell of a row names it; a head is aligned as the cells below it."""
    listed = [list(row) for row in rows]
    kinds = [cell.kind for cell in listed[0]] if listed else [None] * len(heads)
    head = [
        tag("th", name, scope="col", class_=NUMBER if kind == NUMBER else None)
        for name, kind in zip(heads, kinds, strict=True)
    ]
    body = [
        tag(
            "tr",
            tag("th", row[0].content, scope="row", class_=row[0].kind),
            *(tag("td", cell.content, class_=cell.kind) for cell in row[1:]),
        )
        for row in listed
    ]
    whole = tag("table", tag("caption", caption), tag("thead", tag("tr", *head)), tag("tbody", *body))
    return tag("div", whole, class_="scroll")


def folded(summary: str, content: Html) -> Html:
    return tag("details", tag("summary", summary), content)
