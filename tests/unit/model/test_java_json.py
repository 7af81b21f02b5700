"""JSON in the dialect of fastjson, compact and pretty."""

import sys
from collections import Counter
from types import MappingProxyType

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bolide.model import java_json
from bolide.model.config_json import group_as_json
from bolide.model.errors import InvalidRequest
from bolide.model.limits import DIALECT_BYTES_MAX, JSON_DEPTH_MAX
from bolide.model.topic import GroupConfig

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def test_integer_and_object_keys_are_bare() -> None:
    assert java_json.dumps({0: "a", java_json.Bare('{"q":1}'): [1]}) == b'{0:"a",{"q":1}:[1]}'
    assert java_json.loads(b'{0:"a",{"q":1}:[1], "x" : {} }') == {"0": "a", '{"q":1}': [1], "x": {}}


def test_pretty_text_has_a_line_for_each_item_and_none_for_nothing() -> None:
    value = {"empty": {}, "none": [], "list": ["a", {"b": 1}], "offsets": {0: 8}}
    assert java_json.text_of(value, "\n").replace("\t", ">") == (
        '{\n>"empty":{},\n>"none":[],\n>"list":[\n>>"a",\n>>{\n>>>"b":1\n>>}\n>],\n>"offsets":{\n>>0:8\n>}\n}'
    )


@given(VALUES)
def test_what_is_written_is_read_back(value: object) -> None:
    assert java_json.loads(java_json.dumps(value)) == value
    assert java_json.loads(java_json.text_of(value, "\n").encode()) == value


@given(VALUES)
def test_the_tolerant_reader_reads_all_that_the_strict_one_reads(value: object) -> None:
    wrapped = java_json.text_of({0: value}, "\n").encode()
    assert java_json.loads(wrapped) == {"0": value}


@given(st.dictionaries(st.integers(-(2**53), 2**53), st.text('{}[],:"\\ 01-\n'), min_size=1))
def test_what_looks_like_a_bare_key_inside_a_text_is_left_alone(texts: dict[int, str]) -> None:
    read = {str(key): text for key, text in texts.items()}
    assert java_json.loads(java_json.dumps(texts)) == read
    keys = {java_json.Bare(java_json.dumps({"t": text}).decode()): key for key, text in texts.items()}
    assert java_json.loads(java_json.dumps(keys)) == {str(key): number for key, number in keys.items()}


def test_read_only_maps_are_written_like_others() -> None:
    assert java_json.text_of(MappingProxyType({}), "\n").encode() == b"{}"


@pytest.mark.parametrize(
    "text",
    [
        b"{0:" + b"9" * 5000 + b"}",
        b"",
        b"{",
        b"{0:1",
        b"{0 1}",
        b"[1,",
        b"{0:1}}",
        b'{0:"a}',
        b"{0:\xff}",
        b"{0:tru}",
        b"[" * 100 + b"0:",
    ],
)
def test_malformed_text_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidRequest):
        java_json.loads(text)


def test_the_slow_dialect_is_bounded_unless_told_otherwise() -> None:
    dialect = b'{0:"' + b"a" * DIALECT_BYTES_MAX + b'"}'
    with pytest.raises(InvalidRequest, match="that are not standard JSON"):
        java_json.loads(dialect)
    assert java_json.loads(dialect, dialect_length_max=None) == {"0": "a" * DIALECT_BYTES_MAX}


def test_another_bound_may_be_given_and_standard_text_has_none() -> None:
    dialect, standard = b'{0:"' + b"a" * 100 + b'"}', b'{"0":"' + b"a" * 100 + b'"}'
    assert java_json.loads(standard, dialect_length_max=10) == java_json.loads(dialect)
    with pytest.raises(InvalidRequest, match="106 bytes that are not standard JSON"):
        java_json.loads(dialect, dialect_length_max=105)
    assert java_json.loads(dialect, dialect_length_max=106) == java_json.loads(dialect)


def nested(levels: int, ends: str = "[]") -> str:
    return ends[0] * levels + ends[1] * levels


@pytest.mark.parametrize("text", [nested(JSON_DEPTH_MAX), nested(JSON_DEPTH_MAX - 1).replace("[]", "{}")])
def test_as_deep_as_allowed_is_read(text: str) -> None:
    java_json.loads(text)
    java_json.loads(text.encode())


@pytest.mark.parametrize("levels", [JSON_DEPTH_MAX + 1, 600, 1000, 100_000])
@pytest.mark.parametrize("around", ["%s", '{"a":1,"b":%s}', "{0:%s}", '["}}]]\\"]]",%s]'])
def test_json_is_bounded_in_depth_whoever_reads_it(levels: int, around: str) -> None:
    """Goal: 600 levels in a group were read by one reader, kept, and could never be written again."""
    with pytest.raises(InvalidRequest):
        java_json.loads(around % nested(levels))
    with pytest.raises(InvalidRequest):
        java_json.loads((around % nested(levels)).replace("[]", '{"a":[]}').encode())


def test_brackets_in_strings_and_side_by_side_are_not_depth() -> None:
    deep = "[" * 500
    value = {"a\\": [deep, f'\\"{deep}\\', '"', deep], "b": [[] for _ in range(1000)]}
    assert java_json.loads(orjson.dumps(value)) == value


@pytest.mark.parametrize("number", ["1e400", "-1e400", "1" + "0" * 400])
def test_infinite_numbers_are_refused(number: str) -> None:
    with pytest.raises(InvalidRequest, match="infinity"):
        java_json.loads(f"{{0:{number}}}")


def test_a_whole_number_of_more_than_64_bits_is_none_in_the_dialect_either() -> None:
    for text in ('{"0":18446744073709551616}', "{0:18446744073709551616}"):
        assert type(java_json.loads(text)["0"]) is float


def test_a_table_of_groups_costs_few_calls_for_each() -> None:
    """A broker with a hundred thousand of them took most of a minute to stop: text was made call by call."""
    groups = [group_as_json(GroupConfig(f"g{number}")) for number in range(100)]
    calls: Counter[str] = Counter()
    sys.setprofile(lambda _frame, event, _arg: calls.update([event]))
    try:
        texts = [java_json.text_of(group, "\n\t\t") for group in groups]
    finally:
        sys.setprofile(None)
    assert [java_json.loads(text) for text in texts] == groups
    assert calls["call"] <= 32 * len(groups)
