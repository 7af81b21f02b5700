"""Text of strangers as it may be shown: in a log, on a terminal, in an error.

Names, remarks, properties and bodies come from the network and from files.  A terminal obeys the control characters in
them, and signs that turn the direction of writing let a reader see another name than the one that is meant.  Here they
become escapes; everything that can be seen stays as it is.
"""

import re

_UNSEEN = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
_UNSAFE = re.compile(f"[\0-\x1f{_UNSEEN}\ud800-\udfff]")
_UNSAFE_IN_LINES = re.compile(f"[\0-\x08\x0b-\x1f{_UNSEEN}\ud800-\udfff]")
_HALF = re.compile("[\ud800-\udfff]")
_UNSAFE_IN_JSON = re.compile(f"[{_UNSEEN}]")  # what lies below is always escaped there


def printable(text: str) -> str:
    r"""The text as one line that steers no terminal.

    >>> print(printable("pay\x1b[2J\nme"))
    pay\x1b[2J\nme
    """
    return _UNSAFE.sub(_escape, text)


def printable_part(text: str, length_max: int) -> str:
    """The same of a text that may be far too long.

    >>> printable_part("abcdef", 3)
    'abc…'
    """
    return printable(text[:length_max]) + ("…" if len(text) > length_max else "")


def printable_lines(text: str) -> str:
    """The same for a text of several lines: line feeds and tabs stay."""
    return _UNSAFE_IN_LINES.sub(_escape, text)


def printable_bytes(data: bytes) -> bytes:
    """Several lines in UTF-8; bytes that are none are shown by their numbers."""
    return printable_lines(data.decode("utf-8", "backslashreplace")).encode()


def printable_json(document: str) -> str:
    r"""JSON that means the same and steers no terminal.

    >>> print(printable_json('{"name": "\x9b2J"}'))
    {"name": "\u009b2J"}
    """
    return _UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", document)


def is_text(text: str) -> bool:
    """Whether it can be written as UTF-8: half of a pair of surrogates cannot."""
    return not _HALF.search(text)


def _escape(found: "re.Match[str]") -> str:
    return found[0].encode("unicode_escape").decode()
