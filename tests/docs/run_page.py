"""Runs the Python examples of one page, one after the other, against a server of its own.  Not a test.

    run_page.py PAGE

In a process of its own, as a reader would: a page may end a Spark session, or change how everybody logs.
"""

import re
import sys
from pathlib import Path

from bolide.testing import EmbeddedServer

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ADDRESS = "127.0.0.1:9876"
"""What the pages say; replaced by the address of the server at hand."""


def main(page: Path) -> None:
    text = page.read_text()
    names: dict[str, object] = {"__name__": "__example__"}
    with EmbeddedServer() as server:
        for block in BLOCK.finditer(text):
            above = "\n" * text.count(
                "\n", 0, block.start(1)
            )  # so that a traceback names the page's own line
            code = above + block[1].replace(ADDRESS, server.nameserver)
            exec(compile(code, page, "exec"), names)  # noqa: S102 - our own pages


if __name__ == "__main__":
    main(Path(sys.argv[1]))
