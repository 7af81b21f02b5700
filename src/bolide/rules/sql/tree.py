"""An expression as a tree.  What a part of it gives is a text, a number, true or false, or nothing: a property that a
message does not have gives nothing, and what is said of nothing is neither true nor false."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias


class Int32(int):
    """A number that properties must be one of 32 bits to be compared with (Java: Integer)."""


class Int64(int):
    """The same of 64 bits (Java: Long)."""


Value: TypeAlias = str | bool | Int32 | Int64 | float | None


@dataclass(frozen=True, slots=True)
class Constant:
    value: Value


@dataclass(frozen=True, slots=True)
class Property:
    name: str


@dataclass(frozen=True, slots=True)
class Negative:
    """`-3`.  Of anything but a number it is nothing: properties are texts."""

    operand: "Node"


@dataclass(frozen=True, slots=True)
class Flag:
    """A property in place of a condition.  It is a text, so never true."""

    operand: Property


@dataclass(frozen=True, slots=True)
class Not:
    operand: "Node"


@dataclass(frozen=True, slots=True)
class And:
    terms: Sequence["Node"]


@dataclass(frozen=True, slots=True)
class Or:
    terms: Sequence["Node"]


@dataclass(frozen=True, slots=True)
class Equal:
    left: "Node"
    right: "Node"


@dataclass(frozen=True, slots=True)
class Order:
    """`left` before, at or behind `right`, as far as each is wanted."""

    left: "Node"
    right: "Node"
    less: bool
    equal: bool
    greater: bool


@dataclass(frozen=True, slots=True)
class Between:
    """A node of its own, so that its value is asked once."""

    value: "Node"
    low: "Node"
    high: "Node"
    is_negated: bool


@dataclass(frozen=True, slots=True)
class IsNull:
    operand: "Node"


@dataclass(frozen=True, slots=True)
class In:
    operand: Property
    texts: frozenset[str]
    is_negated: bool


@dataclass(frozen=True, slots=True)
class Has:
    """CONTAINS, STARTSWITH and ENDSWITH."""

    operand: "Node"
    text: str
    at_start: bool
    at_end: bool
    is_negated: bool


Node: TypeAlias = (
    Constant | Property | Negative | Flag | Not | And | Or | Equal | Order | Between | IsNull | In | Has
)


class Expression(NamedTuple):
    root: Node
    terms: int
    """Properties and values in it: what it costs to ask it, beside the length of the properties."""


def is_condition(node: Node) -> bool:
    """Whether it is true, false or neither, whatever the message has."""
    if isinstance(node, Constant):
        return node.value is None or isinstance(node.value, bool)
    return not isinstance(node, Property | Negative)
