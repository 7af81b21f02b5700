"""A pipeline in Python: the same keys as in YAML, as arguments, and functions where YAML names a place in a file.

    from bolide.pipeline import Pipeline

    pipeline = Pipeline("orders", nameserver="127.0.0.1:9876")
    pipeline.source("orders", topic="orders")
    pipeline.sql("paid", "SELECT * FROM orders WHERE tags = 'PAID'")
    pipeline.sink("archive", "paid", format="parquet", path="out/paid")

Nothing is run here and Spark is not imported: calls only gather what a YAML file would say.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from bolide.pipeline.declared.tree import Node

F = TypeVar("F", bound=Callable[..., Any])


class Pipeline:
    """Sources, steps and sinks, gathered call by call.  `bolide pipeline run FILE.py` finds it in the file."""

    def __init__(self, name: str, **keys: Any) -> None:
        """`keys` are those at the top of a YAML file: nameserver, trigger, checkpoint, settings, quarantine."""
        self._line = _caller_line()
        self._keys: dict[str, Node] = {
            key: node_of(value, self._line) for key, value in {"name": name, **keys}.items()
        }

    def source(self, name: str, **keys: Any) -> None:
        """What is read: topic, format, path, schema, options, batch, watermark, expect."""
        self._add("sources", name, keys, _caller_line())

    def sql(self, name: str, text: str, **keys: Any) -> None:
        """A step that is a query over sources and other steps."""
        self._add("steps", name, {"sql": text, **keys}, _caller_line())

    def step(self, *inputs: str, name: str | None = None, **keys: Any) -> Callable[[F], F]:
        """A step that is a function; its arguments are the frames of `inputs`, its name is the step's."""
        line = _caller_line()

        def add(function: F) -> F:
            self._add("steps", name or function.__name__, {"python": function, "from": inputs, **keys}, line)
            return function

        return add

    def state(self, name: str, input: str, processor: type, **keys: Any) -> None:
        """A step with state: key, schema, time and output say how Spark's `StatefulProcessor` is run."""
        self._add("steps", name, {"state": processor, "from": input, **keys}, _caller_line())

    def dedup(self, name: str, input: str, *, expect: Any = None, **keys: Any) -> None:
        """A step that drops duplicates: by, within, late and time say which are."""
        members = {"dedup": {"from": input, **keys}, "expect": expect}
        self._add("steps", name, members, _caller_line())

    def join(self, name: str, left: str, right: str, *, expect: Any = None, **keys: Any) -> None:
        """A step that joins two streams: on, within, late, time, type and select say how."""
        members = {"join": {"left": left, "right": right, **keys}, "expect": expect}
        self._add("steps", name, members, _caller_line())

    def sink(self, name: str, input: str, **keys: Any) -> None:
        """Where rows go: topic, format, path, options, output, partition_by, trigger."""
        self._add("sinks", name, {"from": input, **keys}, _caller_line())

    def tree(self) -> Node:
        """What a YAML file of the same meaning would be read as."""
        return Node(self._line, self._keys)

    def _add(self, kind: str, name: str, keys: Mapping[str, Any], line: int) -> None:
        members = self._keys.setdefault(kind, Node(line, {})).value
        assert isinstance(members, dict)
        if name in members:
            raise ValueError(f"{kind} has {name!r} already, from line {members[name].line}")
        members[name] = node_of(keys, line)


def node_of(value: Any, line: int) -> Node:
    """Values of Python as a file would say them."""
    match value:
        case None:
            return Node(line, None)
        case bool():
            return Node(line, str(value).lower(), text_line=line)
        case str() | int() | float():
            return Node(line, str(value), text_line=line)
        case Mapping():
            return Node(line, {str(key): node_of(item, line) for key, item in value.items()})
        case Sequence():
            return Node(line, [node_of(item, line) for item in value])
    if callable(value):
        return Node(line, None, object=value)
    return Node(line, str(value), text_line=line)  # a path, for example


def _caller_line() -> int:
    """Of the file that calls a method of `Pipeline`."""
    return sys._getframe(2).f_lineno
