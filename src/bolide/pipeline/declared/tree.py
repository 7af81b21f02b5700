"""A definition as a tree of nodes with lines: what YAML and Python files have in common.

Scalars stay the text that was written, so that an option `007` is not 7.  `${NAME}` in a text is a variable of the
environment, `${NAME:-otherwise}` one that need not be set.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from bolide.model.errors import ConfigError
from bolide.model.limits.spark import PIPELINE_FILE_BYTES_MAX, PIPELINE_NODES_MAX
from bolide.pipeline.declared.definition import Problem

_VARIABLE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<otherwise>[^}]*))?\}")
_NULL = "tag:yaml.org,2002:null"


@dataclass(frozen=True)
class Node:
    """A text, a list, a mapping, or nothing.  In a mapping the line is that of the key."""

    line: int
    value: "str | list[Node] | dict[str, Node] | None"
    object: object = None
    """What a Python file gave instead of a text: a function or a class."""
    text_line: int = 0
    """Where a text itself begins; behind `|` that is a line further down."""


class BadTree(ConfigError):
    """A file that is no tree of keys and values."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.text)
        self.problem = problem


def read_yaml(text: str, environment: Mapping[str, str] = os.environ) -> Node:
    """The tree of a YAML text; `BadTree` says what is wrong with it and where."""
    import yaml  # with the extra `spark`; a check of the command line must be able to say that it is missing

    if len(text) > PIPELINE_FILE_BYTES_MAX:
        raise BadTree(Problem(1, f"the file is larger than {PIPELINE_FILE_BYTES_MAX} bytes"))
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        return Node(1, None) if root is None else _Walk(environment).node(root, root.start_mark.line + 1)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = " ".join(part for part in (error.context, error.problem) if part)
        raise BadTree(Problem(1 if mark is None else mark.line + 1, f"this is not YAML: {what}")) from error
    except yaml.YAMLError as error:
        raise BadTree(Problem(1, f"this is not YAML: {' '.join(str(error).split())}")) from error
    except RecursionError as error:
        raise BadTree(Problem(1, "the file nests too deeply")) from error


class _Walk:
    """YAML's nodes to ours.  Aliases may make a small file a large tree, so nodes are counted."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._count = 0

    def node(self, found: object, line: int) -> Node:
        import yaml

        self._count += 1
        if self._count > PIPELINE_NODES_MAX:
            raise BadTree(Problem(line, f"the file has more than {PIPELINE_NODES_MAX} keys and values"))
        if isinstance(found, yaml.MappingNode):
            return Node(line, self._mapping(found))
        if isinstance(found, yaml.SequenceNode):
            return Node(line, [self.node(item, item.start_mark.line + 1) for item in found.value])
        assert isinstance(found, yaml.ScalarNode)
        if found.tag == _NULL:
            return Node(line, None)
        below = 1 if found.style in ("|", ">") else 0
        text = expand(found.value, line, self._environment)
        return Node(line, text, text_line=found.start_mark.line + 1 + below)

    def _mapping(self, found: object) -> dict[str, Node]:
        members: dict[str, Node] = {}
        for key, value in found.value:  # type: ignore[attr-defined]
            line = key.start_mark.line + 1
            if not isinstance(key.value, str):
                raise BadTree(Problem(line, "a key is a word, not a list or a mapping"))
            if key.value in members:
                first = members[key.value].line
                raise BadTree(Problem(line, f"the key {key.value!r} is there already, in line {first}"))
            members[key.value] = self.node(value, line)
        return members


def expand(text: str, line: int, environment: Mapping[str, str]) -> str:
    """The text with the variables of the environment that it names."""

    def value_of(found: "re.Match[str]") -> str:
        value = environment.get(found["name"]) or found["otherwise"]
        if value is None:
            raise BadTree(
                Problem(
                    line,
                    f"the variable {found['name']} is not set; ${{{found['name']}:-otherwise}} needs not be",
                )
            )
        return value

    return _VARIABLE.sub(value_of, text)
