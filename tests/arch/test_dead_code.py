"""Nothing stands in the house that nobody uses: every function, class and constant is named where it is not defined.

Tests do not count as users: what only they need belongs to them.  Applications do.  A name that is used anywhere
counts as used everywhere, so this finds what is forgotten and not everything that is superfluous.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import bolide
from tests.arch import cython, house

ALIVE = {
    **dict.fromkeys(
        (
            "connection_made",
            "get_buffer",
            "eof_received",
            "pause_writing",
            "resume_writing",
        ),
        "asyncio calls the protocol of a connection",
    ),
    **dict.fromkeys(
        ("ITEM_SIZE_AT", "TAGS_CODE_AT"),
        "a layout names every field; these are read by its compiled side only",
    ),
    "streamReader": "Spark asks the source for what it can do",
    **dict.fromkeys(
        (
            "decode_member_group",
            "decode_producer_connections",
        ),
        "the wire has both directions of every body; a client of ours does not ask for this one yet",
    ),
}
"""Used by somebody whom the search cannot see, with the reason."""

NAMES_OF_OTHERS = house.PACKAGE / "compat"
"""Code that was written for other clients calls these; nobody here does."""

HARMLESS_DECORATORS = {
    "asynccontextmanager",
    "cache",
    "cached_property",
    "classmethod",
    "contextmanager",
    "dataclass",
    "lru_cache",
    "overload",
    "property",
    "staticmethod",
}
"""Any other decorator may hand a function to somebody who calls it."""


def test_everything_in_the_house_is_used() -> None:
    known = _used() | ALIVE.keys()
    assert {name: places for name, places in _definitions().items() if name not in known} == {}


def test_what_is_called_alive_is_there_and_would_look_dead() -> None:
    assert ALIVE.keys() - _definitions().keys() == set()
    assert ALIVE.keys() & _used() == set()


def _used() -> set[str]:
    return _offered().union(
        *map(_used_in, house.sources(".py")), *map(cython.names_used, house.sources(".pyx", ".pxi"))
    )


def _offered() -> set[str]:
    """What the package has for applications: its names, and the methods of its classes."""
    found = {name: getattr(bolide, name) for name in bolide.__all__}
    kinds = [base for value in found.values() for base in getattr(value, "__mro__", ())]
    methods = {name for kind in kinds if kind.__module__.startswith("bolide.") for name in vars(kind)}
    return {*found, *(name for name in methods if not name.startswith("_"))}


def _definitions() -> dict[str, list[str]]:
    places: dict[str, list[str]] = defaultdict(list)
    for path in house.sources(".py"):
        if path.is_relative_to(NAMES_OF_OTHERS):
            continue
        for name, line in _defined_in(ast.parse(path.read_text())):
            places[name].append(f"{house.name_of(path)}:{line}")
    for path in house.sources(".pyx", ".pxi"):
        for function in cython.functions(path):
            places[function.name].append(f"{house.name_of(path)}:{function.line}")
    return {name: found for name, found in places.items() if not name.startswith("__")}


def _defined_in(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and all(
            _name_of(decorator) in HARMLESS_DECORATORS for decorator in node.decorator_list
        ):
            yield node.name, node.lineno
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name, statement.lineno


def _used_in(path: Path) -> set[str]:
    """Names that are read, types in quotes included.  An import is no use, unless it gives another name."""
    used: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()):
                used.add(name)
            case ast.alias(name=name, asname=str(other)) if name != other:
                used.add(name)
            case ast.MatchClass(kwd_attrs=names):
                used.update(names)
        for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if annotation is not None:
                used.update(_names_in_quotes(annotation))
    return used


def _names_in_quotes(annotation: ast.AST) -> Iterator[str]:
    for node in ast.walk(annotation):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.findall(r"\w+", node.value)


def _name_of(decorator: ast.expr) -> str:
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(function).rpartition(".")[2]
