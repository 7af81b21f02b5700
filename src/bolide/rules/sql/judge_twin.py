"""Asks an expression about a record: the readable twin of `_judge.pyx`."""

from collections.abc import Iterable, Mapping

from bolide.model.pairs import NAME_END
from bolide.record.layout import open_record
from bolide.rules.sql.numbers import decimal, order_of, whole_32, whole_64
from bolide.rules.sql.parse import parse
from bolide.rules.sql.tree import (
    And,
    Between,
    Constant,
    Equal,
    Flag,
    Has,
    In,
    Int32,
    Int64,
    IsNull,
    Negative,
    Node,
    Not,
    Or,
    Order,
    Property,
    Value,
)

Properties = Mapping[str, str]

_PAIR_END = b"\x02"


class Undecidable(Exception):
    """A comparison of what cannot be compared, such as a property `abc` with 3.  No such message is wanted."""


class Judge:
    """Whether a record's properties fulfil an expression.  Equal expressions judge alike."""

    def __init__(self, expression: str) -> None:
        self.expression = expression
        self._tree, self.weight = parse(expression)

    def __call__(self, record: bytes | memoryview) -> bool:
        opened = open_record(record, 0, len(record))
        return self.wants(bytes(record[opened.properties_at : opened.end]))

    def wants(self, properties: bytes) -> bool:
        """The same for properties as they are stored."""
        try:
            return _evaluate(self._tree, _pairs(properties)) is True
        except Undecidable:
            return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Judge) and self.expression == other.expression

    def __hash__(self) -> int:
        return hash(self.expression)


def _pairs(properties: bytes) -> Properties:
    """As everywhere, the last of several pairs of one name counts, and one without a value is none."""
    found: dict[str, str] = {}
    for pair in properties.split(_PAIR_END):
        name, _, value = pair.decode("utf-8", "surrogateescape").partition(NAME_END)
        if value:
            found[name] = value
    return found


def _evaluate(node: Node, properties: Properties) -> Value:
    match node:
        case Constant(value):
            return value
        case Property(name):
            return properties.get(name)
        case Negative(operand):
            value = _evaluate(operand, properties)
            if isinstance(value, float):
                return -value
            return type(value)(-value) if isinstance(value, Int32 | Int64) else None
        case Flag(operand):
            return None if _evaluate(operand, properties) is None else False
        case Not(operand):
            value = _evaluate(operand, properties)
            return None if value is None else not value
        case And(terms):
            return _until(False, terms, properties)
        case Or(terms):
            return _until(True, terms, properties)
        case IsNull(operand):
            return _evaluate(operand, properties) is None
        case Equal(left, right):
            return _equal(_evaluate(left, properties), _evaluate(right, properties))
        case Order(left, right):
            value = _evaluate(left, properties)
            if value is None:
                return None
            answer = _order(value, _evaluate(right, properties))
            return None if answer is None else _meets(node, answer)
        case Between():
            return _between(node, properties)
        case In(operand, texts, is_negated):
            value = _evaluate(operand, properties)
            return None if value is None else (value in texts) is not is_negated
        case Has():
            return _has(node, _evaluate(node.operand, properties))


def _until(decisive: bool, terms: Iterable[Node], properties: Properties) -> bool | None:
    """AND is false as soon as one term is, OR is true; else one that is neither keeps the whole open."""
    is_open = False
    for term in terms:
        value = _evaluate(term, properties)
        if value is decisive:
            return decisive
        is_open |= value is None
    return None if is_open else not decisive


def _equal(left: Value, right: Value) -> bool | None:
    if left is None or right is None:  # not symmetric, as in the original
        return True if left is right else None if left is None else False
    if type(left) is type(right):
        return left == right if not isinstance(left, float) else order_of(left, float(right)) == 0
    return _compared(left, right) == 0


def _order(left: Value, right: Value) -> int | None:
    """-1, 0 or 1; None beside nothing."""
    if left is None or right is None:
        return None
    if isinstance(left, str) and isinstance(right, str):
        return order_of(_known(decimal(left)), _known(decimal(right)))
    return _compared(left, right)


def _meets(node: Order, answer: int) -> bool:
    return node.less if answer < 0 else node.greater if answer > 0 else node.equal


def _between(node: Between, properties: Properties) -> bool | None:
    """`value >= low AND value <= high`, or its contrary; the second is not asked where the first decides."""
    value = _evaluate(node.value, properties)
    if value is None:
        return None
    low = _order(value, _evaluate(node.low, properties))
    if low is not None and low < 0:
        return node.is_negated
    high = _order(value, _evaluate(node.high, properties))
    if high is not None and high > 0:
        return node.is_negated
    return None if low is None or high is None else not node.is_negated


def _compared(left: Value, right: Value) -> int:
    """-1, 0 or 1, after a text was read as what the other is; -1 for what is never equal."""
    if isinstance(left, bool):
        if isinstance(right, str):  # only the other way round, in the original
            raise Undecidable
        return left - right if isinstance(right, bool) else -1
    if isinstance(right, bool):
        return (left.lower() == "true") - right if isinstance(left, str) else -1
    if isinstance(left, str):
        left = _like(left, right)
    elif isinstance(right, str):
        right = _like(right, left)
    if isinstance(left, float) or isinstance(right, float):
        return order_of(float(left), float(right))  # type: ignore[arg-type]
    return (left > right) - (left < right)  # type: ignore[operator]


def _like(text: str, other: Value) -> int | float:
    """The text as a number of the other's kind."""
    if isinstance(other, Int32):
        return _known(whole_32(text))
    if isinstance(other, Int64):
        return _known(whole_64(text))
    return _known(decimal(text))


def _known(number: float | None) -> float:
    if number is None:
        raise Undecidable
    return number


def _has(node: Has, value: Value) -> bool:
    if not node.text or not isinstance(value, str):
        return False
    if node.at_start:
        found = value.startswith(node.text)
    elif node.at_end:
        found = value.endswith(node.text)
    else:
        found = node.text in value
    return found is not node.is_negated
