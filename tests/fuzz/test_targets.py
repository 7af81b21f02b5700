"""Is there a target for every parser?  Method: see which modules run when the targets get their inputs."""

import ast
import inspect
import pkgutil
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from bolide.wire import headers
from bolide.wire.schema import Header
from tests.arch import house
from tests.fuzz.campaign import Block, inputs_of, on_guard, try_input
from tests.fuzz.target import was_taken
from tests.fuzz.targets import TARGETS, grown_inputs, valid_inputs
from tests.fuzz.targets.wire import HEADERS

PARSERS = (
    *(
        "wire/bodies/*.py",
        "wire/command.py",
        "wire/schema.py",
        "wire/*frame*.py",
        "wire/pull*.py",
        "wire/send_run.py",
    ),
    *("record/*.py", "store/tables/*.py", "store/*_twin.py", "store/checkpoint.py", "store/deletions.py"),
    *("store/file_names.py", "store/deliver_time.py", "store/entry_rules.py", "store/small_file.py"),
    *("store/index*.py", "store/queue*.py", "store/log.py", "store/recover.py", "store/reading.py"),
    *(
        "model/java_json.py",
        "model/config_json.py",
        "model/data_version.py",
        "model/message.py",
        "model/topic.py",
    ),
    *("model/numbers.py", "model/names.py", "broker/config.py", "model/setting.py", "nameserver/config.py"),
    *(
        "nameserver/kv.py",
        "offline/*.py",
        "arrow/columns_twin.py",
        "cli/settings.py",
        "model/addresses.py",
    ),
)
"""Modules that make something of bytes from outside."""

NOT_REACHED = {
    "offline/faults_twin.py": "hears of pages that cannot be read; reads nothing itself",
    "store/ends_twin.py": "is given rows and records that others have read; odd ones by test_ends_twins.py",
    "store/index_query.py": "asks for keys, of which there are none in bytes from outside",
}


@pytest.fixture(scope="module")
def run_modules() -> set[str]:
    """Modules of the package in which a function ran, for the valid inputs and some others."""
    seen: set[str] = set()

    def notice(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            seen.add(frame.f_code.co_filename)

    with on_guard():
        sys.setprofile(notice)
        try:
            for target in TARGETS.values():
                given = len(valid_inputs(target.name)) + len(grown_inputs(target.name))
                for data in inputs_of(target, 1, Block(target.name, 0, given + 20)):
                    try_input(target, data)
        finally:
            sys.setprofile(None)
    return {
        str(path.relative_to(house.PACKAGE)) for path in map(Path, seen) if path.is_relative_to(house.PACKAGE)
    }


def _has_functions(path: Path) -> bool:
    return any(isinstance(node, ast.FunctionDef) for node in ast.walk(ast.parse(path.read_text())))


def _parsers() -> Iterator[str]:
    for pattern in PARSERS:
        found = sorted(house.PACKAGE.glob(pattern))
        assert found, f"no module is {pattern}"
        yield from (str(path.relative_to(house.PACKAGE)) for path in found if _has_functions(path))


def test_every_parser_is_run_by_a_target(run_modules: set[str]) -> None:
    assert sorted(set(_parsers()) - run_modules) == sorted(NOT_REACHED)


def test_every_header_is_read() -> None:
    modules = [
        import_module(f"{headers.__name__}.{one.name}") for one in pkgutil.iter_modules(headers.__path__)
    ]
    classes = {one for module in modules for _, one in inspect.getmembers(module, inspect.isclass)}
    assert {one for one in classes if issubclass(one, Header) and one is not Header} == set(HEADERS.values())


@pytest.mark.parametrize("name", TARGETS)
def test_a_parser_takes_most_of_the_inputs_that_others_are_made_from(name: str) -> None:
    """Otherwise a run would only show how it refuses."""
    corpus = valid_inputs(name)
    assert 2 * sum(was_taken(TARGETS[name], data) for data in corpus) >= len(corpus) > 0
