"""Every Python example in README.md and docs runs as it stands, page by page, against a real server.

The blocks of a page share their names, as a reader would paste them one after the other.  A block that is only a
sketch says so: ```` ```python no-run ````.
"""

import re
from pathlib import Path

import pytest

from bolide.testing import EmbeddedServer

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ADDRESS = "127.0.0.1:9876"  # what the pages say; replaced by the address of the server at hand

WITH_EXAMPLES = [
    pytest.param(page, marks=[pytest.mark.needs("java")] if "local_session" in page.read_text() else [])
    for page in PAGES
    if BLOCK.search(page.read_text())
]


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    names: dict[str, object] = {"__name__": "__example__"}
    with EmbeddedServer() as server:
        for block in BLOCK.finditer(text):
            above = "\n" * text.count(
                "\n", 0, block.start(1)
            )  # so that a traceback names the page's own line
            code = above + block[1].replace(ADDRESS, server.nameserver)
            exec(compile(code, page, "exec"), names)  # noqa: S102 - our own pages
