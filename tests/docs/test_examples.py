"""Every Python example in README.md and docs runs as it stands, page by page, against a real server.

The blocks of a page share their names, as a reader would paste them one after the other.  A block that is only a
sketch says so: ```` ```python no-run ````.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs import run_page
from tests.peers.waiting import PATIENCE_SECONDS

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]

WITH_EXAMPLES = [
    pytest.param(page, marks=[pytest.mark.needs("java")] if "local_session" in page.read_text() else [])
    for page in PAGES
    if run_page.BLOCK.search(page.read_text())
]


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path) -> None:
    found = subprocess.run(
        [sys.executable, str(run_page.__file__), str(page)],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")])),
        },
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_SECONDS,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr
