"""Type checkers see the whole public API; what they see of it is stated in `typed_use.py`."""

import ast
import inspect
from pathlib import Path

import bolide
import bolide.aio

USE = Path(__file__).with_name("typed_use.py")


def test_the_package_says_that_it_has_types() -> None:
    assert Path(bolide.__file__).with_name("py.typed").exists()


def test_every_public_name_that_is_no_error_is_used_where_types_are_stated() -> None:
    used = {
        getattr(node, "id", getattr(node, "attr", getattr(node, "name", None)))
        for node in ast.walk(ast.parse(USE.read_text()))
    }
    errors = {
        name
        for name in bolide.__all__
        if inspect.isclass(found := getattr(bolide, name)) and issubclass(found, bolide.BolideError)
    }
    assert sorted(set(bolide.__all__) - used - errors) == []


def test_type_checkers_find_the_same_names_as_programs() -> None:
    stub = ast.parse(Path(bolide.__file__).with_name("__init__.pyi").read_text())
    seen = {alias.asname for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == set(bolide.__all__) == set(bolide.aio.__all__)
