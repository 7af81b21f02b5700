"""A folder that a fixture took from `tmp_path_factory` goes when that fixture ends, unless a test failed meanwhile.

A server's store takes a gigabyte, and the whole suite starts some sixty.
"""

import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    if "tmp_path_factory" not in fixturedef.argnames or fixturedef.argname == "tmp_path":
        return (yield)
    base = request.getfixturevalue("tmp_path_factory").getbasetemp()
    before, failed = set(base.iterdir()), request.session.testsfailed
    taken: set[Path] = set()

    def remove() -> None:
        if request.session.testsfailed == failed:
            for folder in taken:
                shutil.rmtree(folder, ignore_errors=True)

    fixturedef.addfinalizer(remove)  # finalizers run last in, first out: after the fixture's own end
    try:
        return (yield)
    finally:
        taken.update(set(base.iterdir()) - before)
