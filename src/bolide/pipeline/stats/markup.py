"""HTML as text that has been made safe: whatever comes from outside goes through `text` or an attribute of `tag`."""

from collections.abc import Iterable
from html import escape

from bolide.model.printable import printable

VOID = frozenset({"meta", "br", "rect", "line", "path", "circle"})
"""Elements without content."""


class Html(str):
    """Markup.  A plain `str` never is."""

    __slots__ = ()


Content = str | Html


def text(words: str) -> Html:
    """
    >>> text('<b>&"')
    '&lt;b&gt;&amp;&quot;'
    """
    return Html(escape(printable(words)))


def join(parts: Iterable[Content]) -> Html:
    return Html("".join(part if isinstance(part, Html) else text(part) for part in parts))


def tag(name: str, /, *content: Content, **attributes: object) -> Html:
    """An element.  `class_` is `class`, `_` in a name is `-`; an attribute that is None is left out.

    >>> tag("td", "a<b", class_="n", data_x=1)
    '<td class="n" data-x="1">a&lt;b</td>'
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in VOID and not content:
        return Html(f"<{name}{given}>" if name in ("meta", "br") else f"<{name}{given}/>")
    return Html(f"<{name}{given}>{join(content)}</{name}>")
