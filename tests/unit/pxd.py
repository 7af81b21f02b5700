"""What a .pxd says in numbers, so that tests can hold it against its module."""

import ast
import re
from pathlib import Path
from types import ModuleType

_LINE = re.compile(r"^    (?:#define BOLIDE_)?(\w+)(?: =)? (0x[0-9A-F]+|[0-9]+)U?$", re.MULTILINE)


def numbers_for_compiled_code(module: ModuleType) -> dict[str, int]:
    """The numbers in the enumerations and defines of the .pxd beside a module."""
    assert module.__file__ is not None
    text = Path(module.__file__).with_suffix(".pxd").read_text()
    return {name: int(ast.literal_eval(value)) for name, value in _LINE.findall(text)}
