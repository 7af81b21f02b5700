"""The rules of the compiled modules, which the import linter cannot read."""

import ast
import re
from pathlib import Path

from bolide import compiled
from tests.arch import house

PYX = house.sources(".pyx")
IMPORT = re.compile(r"^\s*(?:from|c?import)\s+bolide\.(\w+)", re.MULTILINE)


def test_the_list_of_compiled_modules_is_the_same_wherever_it_stands() -> None:
    """setup.py cannot import the package it builds: the list is there and in bolide.compiled."""
    setup = ast.parse((house.ROOT / "setup.py").read_text())
    (built,) = (
        ast.literal_eval(node.value)
        for node in setup.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "COMPILED"
    )
    assert sorted(built) == sorted(compiled.COMPILED_MODULES) == sorted(map(_module_of, PYX))


def test_every_compiled_module_stands_in_the_table_of_the_architecture() -> None:
    page = (house.ROOT / "ARCHITECTURE.md").read_text()
    listed = {
        line.split("`")[1] for line in page.splitlines() if line.startswith("| `") and "_twin.py`" in line
    }
    modules = (name.removeprefix("bolide.").replace(".", "/") for name in compiled.COMPILED_MODULES)
    assert listed == {f"{name}.pyx" for name in modules}


def test_a_compiled_module_has_its_types_beside_it() -> None:
    assert [house.name_of(path) for path in PYX if not path.with_suffix(".pyi").exists()] == []


def test_a_compiled_module_has_a_readable_twin_with_the_same_public_names() -> None:
    for path in PYX:
        twin = path.with_name(f"{path.stem.lstrip('_')}_twin.py")
        missing = _public_names(path.with_suffix(".pyi")) - _public_names(twin)
        assert missing == set(), house.name_of(twin)


def test_a_compiled_module_imports_only_from_its_own_room_or_below() -> None:
    layers = house.layer_of_room()
    for path in house.sources(".pyx", ".pxd"):
        own = path.relative_to(house.PACKAGE).parts[0]
        reached = set(IMPORT.findall(path.read_text())) - {own}
        above = {room for room in reached if layers[room] >= layers[own]}
        assert above == set(), house.name_of(path)


def _module_of(path: Path) -> str:
    return ".".join(path.relative_to(house.ROOT / "src").with_suffix("").parts)


def _public_names(path: Path) -> set[str]:
    """Functions, classes and constants at the top of a module, private ones left out."""
    names: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case ast.ImportFrom(names=aliases):  # only `import x as x` offers the name to others
                names.update(alias.name for alias in aliases if alias.asname == alias.name)
    return {name for name in names if not name.startswith("_")}
