"""SQL expressions: what they want, what is refused and with which words."""

import gc

import pytest

from bolide.model import limits
from bolide.model.errors import SubscriptionMalformed
from bolide.record.codec import encode_record
from bolide.rules.sql import tokens
from bolide.rules.sql.judge import Judge
from bolide.rules.sql.parse import CHAIN_MAX, parse
from bolide.rules.sql.tokens import Kind, Token
from bolide.rules.sql.tree import And, Constant, Equal, In, Int32, Property


def stored(**properties: str) -> bytes:
    return "".join(f"{name}\x01{value}\x02" for name, value in properties.items()).encode()


@pytest.mark.parametrize(
    ("expression", "wanted", "unwanted"),
    [
        ("a = 1", {"a": "1"}, {"a": "2"}),
        ("a = 'x'", {"a": "x"}, {"a": "X"}),
        ("a <> 1", {"a": "2"}, {"a": "1"}),
        ("a > 1 AND a <= 3", {"a": "3"}, {"a": "1"}),
        ("a < 1.5 or a >= 3", {"a": "3"}, {"a": "2"}),
        ("a BETWEEN 1 AND 3", {"a": "1"}, {"a": "4"}),
        ("a NOT BETWEEN 1 AND 3", {"a": "4"}, {"a": "3"}),
        ("a IN ('x', 'y')", {"a": "y"}, {"a": "z"}),
        ("a NOT IN ('x', 'y')", {"a": "z"}, {"a": "y"}),
        ("a IS NULL", {"b": "1"}, {"a": "1"}),
        ("a IS NOT NULL", {"a": "1"}, {"b": "1"}),
        ("a CONTAINS 'ell'", {"a": "hello"}, {"a": "help"}),
        ("a NOT CONTAINS 'ell'", {"a": "help"}, {"a": "hello"}),
        ("a STARTSWITH 'he'", {"a": "hello"}, {"a": "she"}),
        ("a ENDSWITH 'he'", {"a": "she"}, {"a": "hello"}),
        ("flag = TRUE", {"flag": "True"}, {"flag": "yes"}),
        ("a = -5", {"a": "-5"}, {"a": "5"}),
        ("a > b", {"a": "10", "b": "9.5"}, {"a": "9", "b": "10"}),
        ("a = 'it''s'", {"a": "it's"}, {"a": "its"}),
        ("TAGS = 'red' AND (KEYS IS NOT NULL)", {"TAGS": "red", "KEYS": "k"}, {"TAGS": "red"}),
        ("a = 1 -- and a comment", {"a": "1"}, {"a": "2"}),
        ("/* one */ a = /* two */ 1", {"a": "1"}, {"a": "2"}),
        ("a = 'ä€'", {"a": "ä€"}, {"a": "a"}),
    ],
)
def test_a_message_is_wanted_if_the_expression_is_true_of_it(
    expression: str, wanted: dict[str, str], unwanted: dict[str, str]
) -> None:
    judge = Judge(expression)
    assert judge.wants(stored(**wanted)) is True
    assert judge.wants(stored(**unwanted)) is False


@pytest.mark.parametrize(
    ("expression", "is_wanted"),
    [
        ("a = 1", False),
        ("NOT (a = 1)", False),
        ("a = 1 OR b = 2", True),
        ("a = 1 AND b = 2", False),
        ("NOT (a = 1 AND b = 3)", True),
        ("a <> 1", False),
        ("1 <> a", True),  # in the original too: a constant differs from nothing
        ("a IN ('x')", False),
        ("a NOT IN ('x')", False),
        ("a NOT CONTAINS 'x'", False),
        ("a", False),
        ("NOT a", False),
        ("a = c", True),  # neither is there
        ("(a = 1) IS NULL", True),
        ("NULL", False),
        ("TRUE", True),
    ],
)
def test_what_is_said_of_a_property_that_is_not_there_is_neither_true_nor_false(
    expression: str, is_wanted: bool
) -> None:
    assert Judge(expression).wants(stored(b="2")) is is_wanted


@pytest.mark.parametrize("value", ["abc", "5.0", "2147483648", " 5", "0x5"])
def test_a_property_that_is_no_number_of_the_kind_asked_for_makes_the_message_unwanted(value: str) -> None:
    for expression in ("a > 3", "NOT (a > 3)", "a <> 3", "a > 3 OR TRUE"):
        assert Judge(expression).wants(stored(a=value)) is False


def test_what_decides_the_whole_is_not_asked_further() -> None:
    assert Judge("TRUE OR a > 3").wants(stored(a="abc"))
    assert not Judge("a > 3 OR TRUE").wants(stored(a="abc"))


def test_the_last_of_several_pairs_of_a_name_counts() -> None:
    judge = Judge("a = 2")
    assert judge.wants(b"a\x011\x02a\x012\x02")
    assert judge.wants(b"a\x012\x02a\x01\x02a\x02")
    assert judge.wants(b"a\x012")
    assert not judge.wants(b"a\x012\x02a\x011\x02")
    assert not judge.wants(b"aa\x012\x02")


def test_a_record_is_judged_by_its_properties() -> None:
    record = encode_record(
        topic=b"T",
        body=b"a\x012\x02",
        properties=b"a\x011\x02",
        queue_id=0,
        flag=0,
        queue_offset=0,
        log_offset=0,
        sys_flag=0,
        born_timestamp_ms=0,
        born_host=bytes(8),
        store_timestamp_ms=0,
        store_host=bytes(8),
        reconsume_times=0,
        prepared_offset=0,
    )
    assert Judge("a = 1")(record)
    assert Judge("a = 1")(memoryview(record))
    assert not Judge("a = 2")(record)


@pytest.mark.parametrize(
    ("expression", "at", "words"),
    [
        ("", 1, "the end of the expression"),
        ("a = ", 5, "the end of the expression"),
        ("a = NULL", 5, "IS NULL"),
        ("a > 'x'", 5, "only numbers"),
        ("TRUE > 1", 1, "only numbers"),
        ("a b", 3, "'b' was not expected"),
        ("a = 1 = 2 LIKE 'x'", 11, "'LIKE' was not expected"),
        ("a != 1", 3, "<>"),
        ('a = "x"', 5, "single quotes"),
        ("a = 'x", 5, "closing quote"),
        ("a = 1 /* b", 7, "*/"),
        ("a IN (1)", 7, "a text in single quotes"),
        ("a IN ('x'", 10, ") belongs here"),
        ("a IN ('x', 'y',)", 16, "a text in single quotes"),
        ("a IN ('x' /* */ 'z' /* */, 'y')", 17, ") belongs here"),
        ("3 IN ('x')", 1, "name of a property"),
        ("a BETWEEN 3 AND 1", 11, "nothing is between 3 and 1"),
        ("a NOT 3", 7, "behind NOT"),
        ("a AND 3", 7, "neither true nor false"),
        ("'x'", 1, "neither true nor false"),
        ("TRUE = 3", 1, "truth value"),
        ("a IS 3", 6, "NULL belongs here"),
        ("a = 9223372036854775808", 5, "larger than"),
        ("a = 1e999", 5, "too large"),
        ("a = 007", 6, "'0' was not expected"),
    ],
)
def test_what_is_no_expression_is_refused_with_its_place_and_words(
    expression: str, at: int, words: str
) -> None:
    with pytest.raises(SubscriptionMalformed) as refused:
        Judge(expression)
    assert f"at character {at}," in str(refused.value)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 40 + "a" + ")" * 40,
        "NOT " * 40 + "a",
        "a = " + "- " * 40 + "1",
        " OR ".join(["a = 1"] * (limits.SQL_TERMS_MAX // 2 + 1)),
        "a IN (" + ", ".join(["'x'"] * limits.SQL_LENGTH_MAX) + ")",
        " OR ".join(f"a{n} IS NULL" for n in range(limits.SQL_NAMES_MAX + 1)),
        "a" + " = 1" * (CHAIN_MAX + 2),
    ],
    ids=["parentheses", "nots", "signs", "terms", "length", "names", "chain"],
)
def test_an_expression_that_would_cost_too_much_is_refused(expression: str) -> None:
    with pytest.raises(SubscriptionMalformed):
        Judge(expression)


def test_a_list_may_be_as_long_as_the_expression() -> None:
    judge = Judge("a IN (" + ", ".join(f"'{n}'" for n in range(500)) + ")")
    assert judge.wants(stored(a="499"))


@pytest.mark.parametrize("between", [",", " , ", "/* 'c' */,", ",-- d'\n"])
def test_a_list_is_read_at_once_whatever_is_written_between_its_texts(
    between: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every pull may bring another one."""
    words: list[Token] = []
    one = tokens._token

    def counted(kind: Kind, text: str, at: int) -> Token:
        words.append(one(kind, text, at))
        return words[-1]

    monkeypatch.setattr(tokens, "_token", counted)
    texts = ["it''s", "", *map(str, range(200))]
    expression = parse("a IN (" + between.join(f"'{text}'" for text in texts) + ") AND b = 1")
    assert len(words) < 20
    assert expression.root == And(
        (
            In(Property("a"), frozenset({"it's", *texts[1:]}), False),
            Equal(Property("b"), Constant(Int32(1))),
        )
    )


def test_what_is_compared_twice_is_kept_and_asked_once() -> None:
    """Else each BETWEEN around another would double the tree."""
    nested = "a"
    for _ in range(15):
        nested = f"-({nested} BETWEEN 1 AND 2)"
    gc.collect()
    before = len(gc.get_objects())
    judge = Judge(f"{nested} IS NULL")
    gc.collect()
    assert len(gc.get_objects()) - before < 500
    assert judge.wants(stored(a="1"))
    assert judge.weight == 31


@pytest.mark.timeout(60)  # matched in two ways, each of these takes many minutes
@pytest.mark.parametrize("text", ["1" * 30_000 + "x", "0" * 30_000 + "x", "0x" + "1" * 30_000, "1." * 15_000])
def test_a_text_of_many_digits_is_read_once(text: str) -> None:
    for expression in ("a > 2.5", "a > 3", "a = 3000000000"):
        assert not Judge(expression).wants(stored(a=text))


def test_as_many_names_as_are_allowed_are_judged() -> None:
    names = [f"a{number}" for number in range(limits.SQL_NAMES_MAX)]
    judge = Judge(" AND ".join(f"{name} IS NOT NULL" for name in names))
    assert judge.wants(stored(**dict.fromkeys(names, "1")))
    assert not judge.wants(stored(**dict.fromkeys(names[:-1], "1")))


def test_equal_expressions_are_equal_filters() -> None:
    assert Judge("a = 1") == Judge("a = 1")
    assert hash(Judge("a = 1")) == hash(Judge("a = 1"))
    assert Judge("a = 1") != Judge("a = 2")
