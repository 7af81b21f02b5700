"""A definition from its file, YAML or Python, with everything that is wrong with it."""

import importlib.util
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from bolide.model.errors import ConfigError
from bolide.pipeline.declared.check import check_definition
from bolide.pipeline.declared.definition import Definition, Problem
from bolide.pipeline.declared.fields import Problems
from bolide.pipeline.declared.parse import parse_definition
from bolide.pipeline.declared.python_form import Pipeline
from bolide.pipeline.declared.tree import BadTree, Node, read_yaml

YAML_SUFFIXES = (".yaml", ".yml")
MODULE_PREFIX = "bolide_pipeline_"
"""Of the modules that files become, so that none takes the name of another module."""


@dataclass(frozen=True)
class Loaded:
    """A definition and its problems, by line.  It may be run when none of them is more than a warning."""

    file: Path
    definition: Definition | None
    problems: Sequence[Problem]

    @property
    def errors(self) -> Sequence[Problem]:
        return [problem for problem in self.problems if not problem.is_warning]


def load(file: Path) -> Loaded:
    """Reads and checks a file.  A Python file is run for that, as every import is; Spark is not started."""
    if not file.is_file():
        raise ConfigError(f"there is no file {file}; `bolide pipeline init` writes one to begin with")
    problems = Problems()
    definition = None
    try:
        tree = _yaml_tree(file) if file.suffix in YAML_SUFFIXES else _python_tree(file)
        definition = parse_definition(tree, file.absolute(), problems)
        check_definition(definition, problems)
    except BadTree as error:
        problems.found.append(error.problem)
    return Loaded(file, definition, sorted(problems.found))


def load_module(file: Path) -> ModuleType:
    """A Python file as a module, run once."""
    name = f"{MODULE_PREFIX}{file.stem}"
    known = sys.modules.get(name)
    if known is not None and known.__file__ == str(file):
        return known
    return _run_file(name, file)


def _yaml_tree(file: Path) -> Node:
    try:
        return read_yaml(file.read_text())
    except UnicodeDecodeError as error:
        raise BadTree(Problem(1, f"the file is not UTF-8 text: {error}")) from error
    except ImportError as error:
        raise ConfigError(
            f"pipelines in YAML need pyyaml: {error}. `pip install 'bolide[spark]'` brings it"
        ) from error


def _python_tree(file: Path) -> Node:
    if file.suffix != ".py":
        raise ConfigError(f"{file} is neither YAML ({', '.join(YAML_SUFFIXES)}) nor Python (.py)")
    try:
        module = load_module(file.absolute())
    except ImportError as error:
        raise BadTree(Problem(_line_in(file, error), f"an import failed: {error}")) from error
    except Exception as error:
        text = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise BadTree(Problem(_line_in(file, error), text)) from error
    found = [value for value in vars(module).values() if isinstance(value, Pipeline)]
    if len(set(map(id, found))) != 1:
        said = "no Pipeline" if not found else f"{len(found)} of them"
        raise BadTree(Problem(1, f"the file makes one Pipeline and keeps it in a name; this one has {said}"))
    return found[0].tree()


def _run_file(name: str, file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(file.parent))  # modules beside it
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.path.remove(str(file.parent))
    return module


def _line_in(file: Path, error: BaseException) -> int:
    """The last line of the file that took part in an error."""
    if isinstance(error, SyntaxError) and error.filename == str(file.absolute()):
        return error.lineno or 1
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(file.absolute())
    ]
    return (lines[-1] or 1) if lines else 1
