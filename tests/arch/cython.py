"""Cython files as far as the house rules need to read them: their functions, and which names they use."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FUNCTION = re.compile(
    r"^(?P<indent> *)(?:def|cdef|cpdef) +(?!class\b|struct\b|enum\b|extern\b)(?:[^=()#]*[ *])?(?P<name>\w+)\("
)
_TEXT = re.compile(r'"""[\s\S]*?"""|"(?:[^"\\\n]|\\.)*"|#[^\n]*')
_IMPORT = re.compile(r"^\s*(?:from\b.*\b)?c?import\b")


@dataclass(frozen=True)
class Function:
    """Its first line and how many it has."""

    name: str
    line: int
    lines: int


def functions(path: Path) -> Iterator[Function]:
    """Those with a body: declarations of a .pxd or of a C header end in the line where they begin."""
    source = code(path)
    for number, text in enumerate(source):
        found = _FUNCTION.match(text)
        if found is not None:
            head = next(at for at in range(number, len(source)) if source[at].count(")") >= 1)
            if source[head].rstrip().endswith(":"):
                yield Function(found["name"], number + 1, _end(source, head, found["indent"]) - number)


def names_used(path: Path) -> set[str]:
    """Every word outside of imports, texts and the names of functions where they are defined."""
    used: set[str] = set()
    for text in code(path):
        if not _IMPORT.match(text):
            found = _FUNCTION.match(text)
            used.update(re.findall(r"\w+", text if found is None else text.replace(found["name"], "", 1)))
    return used


def code(path: Path) -> list[str]:
    """The lines without comments and texts; each stays in its place."""
    return _TEXT.sub(lambda text: "\n" * text[0].count("\n"), path.read_text()).split("\n")


def _end(source: list[str], head: int, indent: str) -> int:
    """Behind the last line that is indented further than the function itself."""
    end = head + 1
    for number in range(head + 1, len(source)):
        text = source[number]
        if text.strip():
            if not text.startswith(indent + " "):
                break
            end = number + 1
    return end
