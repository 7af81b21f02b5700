"""The rules of the compiled modules, which the import linter cannot read."""

import ast
import re
from pathlib import Path

import pytest

from bolide import compiled
from tests.arch import house

PYX = house.sources(".pyx")
IMPORT = re.compile(r"^\s*(?:from|c?import)\s+bolide\.(\w+)", re.MULTILINE)


def _module_of(path: Path) -> str:
    return ".".join(path.relative_to(house.ROOT / "src").with_suffix("").parts)


def test_one_list_of_compiled_modules_is_kept_in_two_places_that_agree() -> None:
    """setup.py cannot import the package it builds, so the list stands there and in bolide.compiled."""
    setup = ast.parse((house.ROOT / "setup.py").read_text())
    (built,) = (
        ast.literal_eval(node.value)
        for node in setup.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "COMPILED"
    )
    assert sorted(built) == sorted(compiled.COMPILED_MODULES) == sorted(map(_module_of, PYX))


@pytest.mark.parametrize("path", PYX, ids=house.name_of)
def test_a_compiled_module_has_its_types_beside_it(path: Path) -> None:
    assert path.with_suffix(".pyi").exists()


@pytest.mark.parametrize("path", PYX, ids=house.name_of)
def test_a_compiled_module_has_a_readable_twin_with_the_same_public_names(path: Path) -> None:
    twin = path.with_name(f"{path.stem.lstrip('_')}_twin.py")
    missing = _public_names(path.with_suffix(".pyi")) - _public_names(twin)
    assert not missing


@pytest.mark.parametrize("path", house.sources(".pyx", ".pxd"), ids=house.name_of)
def test_a_compiled_module_imports_only_from_its_own_room_or_below(path: Path) -> None:
    layers = house.layer_of_room()
    own = path.relative_to(house.PACKAGE).parts[0]
    reached = set(IMPORT.findall(path.read_text())) - {own}
    assert {room for room in reached if layers[room] >= layers[own]} == set()


def _public_names(path: Path) -> set[str]:
    """Functions, classes and constants at the top of a module, private ones left out."""
    names: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case ast.ImportFrom(names=aliases):
                names.update(alias.asname for alias in aliases if alias.asname == alias.name)
    return {name for name in names if not name.startswith("_")}
