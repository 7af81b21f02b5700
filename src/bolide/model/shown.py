"""Text that others wrote, made fit for a log or a terminal: one line, of bounded length, that moves no cursor."""


def shown(text: str, length_max: int = 255) -> str:
    r"""The text as far as it may go; what cannot be printed is written as an escape.

    >>> shown("all is well\n\x1b[2J")
    'all is well\\n\\x1b[2J'
    >>> shown("abcdef", 3)
    'abc…'
    """
    cut = text[:length_max]
    if not cut.isprintable():
        cut = "".join(map(_shown_mark, cut))
    return f"{cut}…" if len(text) > length_max else cut


def _shown_mark(mark: str) -> str:
    return mark if mark.isprintable() else mark.encode("unicode_escape").decode()
