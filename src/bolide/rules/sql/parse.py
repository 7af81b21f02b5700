"""From the text of an expression to its tree.

    or          and (OR and)*
    and         equality (AND equality)*
    equality    comparison (= comparison | <> comparison | IS [NOT] NULL)*
    comparison  unary (< unary | <= unary | > unary | >= unary | [NOT] BETWEEN unary AND unary
                      | [NOT] IN (text, …) | [NOT] CONTAINS text | [NOT] STARTSWITH text | [NOT] ENDSWITH text)*
    unary       + unary | - unary | NOT unary | ( or ) | literal | property

NOT binds as closely as a sign: `NOT a = 1` is `(NOT a) = 1`, in the original too.  Refused is, beside what is not
written like this, what no message could decide: `a > 'x'`, `a = NULL`, `a BETWEEN 3 AND 1`.
"""

import math
from collections.abc import Callable, Iterator
from typing import NoReturn

from bolide.model import limits
from bolide.model.errors import SubscriptionMalformed
from bolide.model.numbers import INT32_MAX, INT64_MAX
from bolide.rules.sql.tokens import Kind, Token, refuse, texts_at, tokens_of
from bolide.rules.sql.tree import (
    And,
    Between,
    Constant,
    Equal,
    Expression,
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
    is_condition,
)

CHAIN_MAX = 8
"""Comparisons of comparisons.  Nobody needs two; each is a level of the tree."""

_ORDERS: dict[str, tuple[bool, bool, bool]] = {
    "<": (True, False, False),
    "<=": (True, True, False),
    ">": (False, False, True),
    ">=": (False, True, True),
}
_CONSTANTS = {"TRUE": Constant(True), "FALSE": Constant(False), "NULL": Constant(None)}
_PLACES = {"CONTAINS": (False, False), "STARTSWITH": (True, False), "ENDSWITH": (False, True)}


def parse(expression: str) -> Expression:
    """The condition that an expression states; `SubscriptionMalformed` says what is wrong with it, and where."""
    if len(expression) > limits.SQL_LENGTH_MAX:
        raise SubscriptionMalformed(
            f"the expression has {len(expression)} characters; {limits.SQL_LENGTH_MAX} are allowed"
        )
    return _Parser(expression).whole()


class _Parser:
    def __init__(self, expression: str) -> None:
        self._expression = expression
        self._tokens = tokens_of(expression)
        self._next = next(self._tokens)
        self._depth = 0
        self._terms_seen = 0
        self._names: set[str] = set()

    def whole(self) -> Expression:
        at = self._next.at
        node = self._condition(self._or(), at)
        if self._next.kind is not Kind.END:
            self._refuse(self._next, f"{_shown(self._next)} was not expected here")
        return Expression(node, self._terms_seen)

    # ---- the grammar, from the loosest to the closest -------------------------------------------------

    def _or(self) -> Node:
        terms = self._terms("OR", self._and)
        return terms[0] if len(terms) == 1 else Or(terms)

    def _and(self) -> Node:
        terms = self._terms("AND", self._equality)
        return terms[0] if len(terms) == 1 else And(terms)

    def _terms(self, keyword: str, parse_one: Callable[[], Node]) -> tuple[Node, ...]:
        at = self._next.at
        terms = [parse_one()]
        while self._took(keyword):
            if len(terms) == 1:
                terms[0] = self._condition(terms[0], at)
            at = self._next.at
            terms.append(self._condition(parse_one(), at))
        return tuple(terms)

    def _equality(self) -> Node:
        at = self._next.at
        left = self._comparison()
        for _ in self._links():
            if self._took("="):
                left = self._equal(left, at)
            elif self._took("<>"):
                left = Not(self._equal(left, at))
            elif self._took("IS"):
                is_negated = self._took("NOT")
                self._need("NULL")
                left = Not(IsNull(left)) if is_negated else IsNull(left)
            else:
                break
        return left

    def _equal(self, left: Node, at: int) -> Node:
        right_at = self._next.at
        right = self._comparison()
        for side, side_at in ((left, at), (right, right_at)):
            if side == Constant(None):
                refuse(self._expression, side_at, "nothing equals NULL; write IS NULL or IS NOT NULL")
        if isinstance(left, Constant) and isinstance(left.value, bool) and _is_no_truth(right):
            refuse(self._expression, at, "a truth value cannot equal what is none")
        return Equal(left, right)

    def _comparison(self) -> Node:
        at = self._next.at
        left = self._unary()
        for _ in self._links():
            if self._next.text in _ORDERS and self._next.kind is Kind.SYMBOL:
                symbol = self._advance().text
                left = self._order(left, at, symbol, *self._operand())
                continue
            is_negated = self._took("NOT")
            if self._took("BETWEEN"):
                left = self._between(left, at, is_negated)
            elif self._took("IN"):
                left = self._in(left, at, is_negated)
            elif self._next.kind is Kind.KEYWORD and self._next.text in _PLACES:
                at_start, at_end = _PLACES[self._advance().text]
                left = Has(left, self._text(), at_start, at_end, is_negated)
            elif is_negated:
                self._refuse(self._next, "behind NOT stands BETWEEN, IN, CONTAINS, STARTSWITH or ENDSWITH")
            else:
                break
        return left

    def _operand(self) -> tuple[Node, int]:
        at = self._next.at
        return self._unary(), at

    def _order(self, left: Node, left_at: int, symbol: str, right: Node, right_at: int) -> Node:
        for side, side_at in ((left, left_at), (right, right_at)):
            self._check_number(side, side_at, symbol)
        return Order(left, right, *_ORDERS[symbol])

    def _check_number(self, node: Node, at: int, symbol: str) -> None:
        if is_condition(node) or (isinstance(node, Constant) and isinstance(node.value, str)):
            refuse(self._expression, at, f"only numbers can be compared by {symbol}")

    def _between(self, value: Node, at: int, is_negated: bool) -> Node:
        low, low_at = self._operand()
        self._need("AND")
        high, high_at = self._operand()
        for node, node_at in ((value, at), (low, low_at), (high, high_at)):
            self._check_number(node, node_at, "BETWEEN")
        if is_negated:
            return Between(value, low, high, is_negated)
        if isinstance(low, Constant) and isinstance(high, Constant) and low.value > high.value:  # type: ignore[operator]
            refuse(self._expression, low_at, f"nothing is between {low.value} and {high.value}")
        return Between(value, low, high, is_negated)

    def _in(self, left: Node, at: int, is_negated: bool) -> Node:
        if not isinstance(left, Property):
            refuse(self._expression, at, "before IN stands the name of a property")
        self._need("(")
        texts = self._texts()
        if self._took(","):
            self._text()  # says why the list does not go on
        self._need(")")
        return In(left, frozenset(texts), is_negated)

    def _unary(self) -> Node:
        self._depth += 1
        if self._depth > limits.SQL_DEPTH_MAX:
            self._refuse(self._next, f"it is nested deeper than {limits.SQL_DEPTH_MAX} levels")
        try:
            if self._took("+"):
                return self._unary()
            if self._took("-"):
                return Negative(self._unary())
            if self._took("NOT"):
                at = self._next.at
                return Not(self._condition(self._unary(), at))
            if self._took("("):
                node = self._or()
                self._need(")")
                return node
            return self._primary()
        finally:
            self._depth -= 1

    def _primary(self) -> Node:
        token = self._advance()
        self._count(token)
        if token.kind is Kind.NAME:
            return Property(token.text)
        if token.kind is Kind.TEXT:
            return Constant(token.text)
        if token.kind is Kind.WHOLE:
            return self._whole_number(token)
        if token.kind is Kind.DECIMAL:
            return self._decimal_number(token)
        if token.kind is Kind.KEYWORD and token.text in _CONSTANTS:
            return _CONSTANTS[token.text]
        self._refuse(token, f"{_shown(token)} stands where a property or a value belongs")

    def _count(self, token: Token) -> None:
        """Each is looked at for each message."""
        self._terms_seen += 1
        if self._terms_seen > limits.SQL_TERMS_MAX:
            self._refuse(
                token,
                f"it has more than {limits.SQL_TERMS_MAX} properties and values; a list behind IN is one",
            )
        if token.kind is Kind.NAME:
            self._names.add(token.text)
            if len(self._names) > limits.SQL_NAMES_MAX:
                self._refuse(token, f"it asks for more than {limits.SQL_NAMES_MAX} different properties")

    # ---- values -------------------------------------------------------------------------------------------

    def _whole_number(self, token: Token) -> Constant:
        digits = token.text.rstrip("lL")
        number = int(digits) if len(digits) <= len(str(INT64_MAX)) else INT64_MAX + 1
        if number > INT64_MAX:
            self._refuse(token, f"the number is larger than {INT64_MAX}")
        return Constant(Int32(number) if number <= INT32_MAX else Int64(number))

    def _decimal_number(self, token: Token) -> Constant:
        number = float(token.text)
        if math.isinf(number):
            self._refuse(token, "the number is too large")
        return Constant(number)

    def _text(self) -> str:
        token = self._advance()
        if token.kind is not Kind.TEXT:
            self._refuse(token, f"a text in single quotes belongs here, not {_shown(token)}")
        return token.text

    def _texts(self) -> list[str]:
        """One or more, with commas in between."""
        texts, end = texts_at(self._expression, self._next.at)
        if not texts:
            self._text()  # says what is wrong
        self._tokens = tokens_of(self._expression, end)
        self._next = next(self._tokens)
        return texts

    def _condition(self, node: Node, at: int) -> Node:
        if isinstance(node, Property):
            return Flag(node)
        if not is_condition(node):
            refuse(self._expression, at, "this is neither true nor false")
        return node

    # ---- reading on -----------------------------------------------------------------------------------

    def _links(self) -> Iterator[None]:
        """The links of a chain like `a = b = c`; whoever finds its end goes out."""
        for _ in range(CHAIN_MAX + 1):
            yield
        self._refuse(self._next, "too many comparisons in a row; use AND")

    def _advance(self) -> Token:
        token = self._next
        if token.kind is not Kind.END:
            self._next = next(self._tokens)
        return token

    def _took(self, text: str) -> bool:
        if self._next.text != text or self._next.kind not in (Kind.KEYWORD, Kind.SYMBOL):
            return False
        self._advance()
        return True

    def _need(self, text: str) -> None:
        if not self._took(text):
            self._refuse(self._next, f"{text} belongs here, not {_shown(self._next)}")

    def _refuse(self, token: Token, why: str) -> NoReturn:
        refuse(self._expression, token.at, why)


def _is_no_truth(node: Node) -> bool:
    return isinstance(node, Constant) and not isinstance(node.value, bool)


def _shown(token: Token) -> str:
    return Kind.END.value if token.kind is Kind.END else repr(token.text)
