"""What fixtures leave on the disk: nothing, unless a test failed that had something there."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.arch.house import ROOT

STORES = """
import pytest

@pytest.fixture(scope="session")
def session_store(tmp_path_factory):
    return tmp_path_factory.mktemp("session-store")

@pytest.fixture(scope="module")
def module_store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("module-store")
    yield folder
    assert folder.is_dir(), "it went before its fixture ended"
"""
PASSES = """
def test_passes(session_store, module_store):
    assert session_store.is_dir() and module_store.is_dir()
"""
FAILS = """
def test_fails(session_store, module_store):
    assert not session_store.is_dir()
"""


@pytest.mark.parametrize(
    ("tests", "kept"),
    [
        ({"test_a": PASSES, "test_b": PASSES}, set()),
        ({"test_a": PASSES, "test_b": FAILS}, {"session-store0", "module-store1"}),
    ],
    ids=["passes", "fails"],
)
def test_a_folder_of_a_fixture_goes_with_it_unless_a_test_failed(
    tests: dict[str, str], kept: set[str], tmp_path: Path
) -> None:
    suite, base = tmp_path / "suite", tmp_path / "base"
    suite.mkdir()
    (suite / "conftest.py").write_text(STORES)
    for name, text in tests.items():
        (suite / f"{name}.py").write_text(text)
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-c",
        "/dev/null",
        f"--rootdir={suite}",
        f"--basetemp={base}",
    ]
    words += ["-p", "tests.folders", "-p", "no:cacheprovider", str(suite)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == (1 if kept else 0), done.stdout
    assert {folder.name for folder in base.iterdir() if not folder.is_symlink()} == kept
