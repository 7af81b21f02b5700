"""Headers: wire spelling, types, defaults, and what is refused."""

import dataclasses
import importlib
import pkgutil

import pytest

from bolide.model.errors import InvalidRequest
from bolide.model.message import SysFlag
from bolide.wire import headers
from bolide.wire.headers.pull import PullRequest
from bolide.wire.headers.send import SendRequest, send_fields
from bolide.wire.schema import Header, Int, Long, layout_of, wire


@dataclasses.dataclass(frozen=True)
class Sample(Header):
    consumer_group: str
    queue_id: Long
    client: str = wire("clientID", default="")
    order: bool = False
    note: str | None = None
    limit: Int | None = None


def test_fields_travel_in_their_wire_spelling_as_text() -> None:
    fields = Sample("g", -3, client="c", order=True, limit=5).encode()
    assert fields == {"consumerGroup": "g", "queueId": "-3", "clientID": "c", "order": "true", "limit": "5"}
    assert Sample.decode(fields) == Sample("g", -3, client="c", order=True, limit=5)


def test_unknown_fields_are_ignored_and_missing_ones_have_defaults() -> None:
    assert Sample.decode({"consumerGroup": "g", "queueId": "1", "later": "x"}) == Sample("g", 1)


def test_an_empty_number_counts_as_missing_and_empty_text_does_not() -> None:
    assert Sample.decode({"consumerGroup": "", "queueId": "1", "limit": ""}) == Sample("", 1)
    with pytest.raises(InvalidRequest, match="queueId"):
        Sample.decode({"consumerGroup": "g", "queueId": ""})


@pytest.mark.parametrize("name", ["consumerGroup", "queueId"])
def test_a_missing_required_field_is_named(name: str) -> None:
    fields = {"consumerGroup": "g", "queueId": "1"}
    del fields[name]
    with pytest.raises(InvalidRequest, match=f"{name} is missing"):
        Sample.decode(fields)


@pytest.mark.parametrize(
    "text", ["x", "1.5", "0x10", "1" * 5000, "9223372036854775808", "-9223372036854775809"]
)
def test_what_is_not_a_64_bit_number_is_refused_with_the_field_s_name(text: str) -> None:
    with pytest.raises(InvalidRequest, match="queueId"):
        Sample.decode({"consumerGroup": "g", "queueId": text})


@pytest.mark.parametrize("text", ["2147483648", "-2147483649", "1" + "0" * 400])
def test_what_java_keeps_in_32_bits_is_refused_when_it_is_larger(text: str) -> None:
    with pytest.raises(InvalidRequest, match="limit is not a 32-bit number"):
        Sample.decode({"consumerGroup": "g", "queueId": "1", "limit": text})
    assert Sample.decode({"consumerGroup": "g", "queueId": "1", "limit": "-2147483648"}).limit == -(2**31)


@pytest.mark.parametrize("text", [" 1", "1_0", "\u0661", "1\n", "+-1", "\u00b2"])
def test_a_number_is_made_of_digits(text: str) -> None:
    with pytest.raises(InvalidRequest, match="queueId"):
        Sample.decode({"consumerGroup": "g", "queueId": text})


def test_a_header_says_of_every_number_how_large_it_can_be() -> None:
    @dataclasses.dataclass(frozen=True)
    class Careless(Header):
        number: int

    with pytest.raises(KeyError):
        layout_of(Careless)
    for module in pkgutil.iter_modules(headers.__path__):
        importlib.import_module(f"{headers.__name__}.{module.name}")
    for header in Header.__subclasses__():
        if header is not Careless:
            layout_of(header)


def test_the_64_bit_limits_are_numbers() -> None:
    for text in ("9223372036854775807", "-9223372036854775808"):
        assert Sample.decode({"consumerGroup": "g", "queueId": text}).queue_id == int(text)


@pytest.mark.parametrize(("text", "value"), [("true", True), ("TRUE", True), ("1", False), ("no", False)])
def test_a_boolean_is_true_only_by_its_name_as_in_java(text: str, value: bool) -> None:
    assert Sample.decode({"consumerGroup": "g", "queueId": "1", "order": text}).order is value


def test_both_spellings_of_a_send_give_the_same_request() -> None:
    letters = SendRequest("T", "g", "TBW102", 4, 2, 1, 99, 7, "p", 3, True, 16, True).encode()
    assert set(letters) == set("abcdefghijklm")
    names = {
        **{"topic": "T", "producerGroup": "g", "defaultTopic": "TBW102", "defaultTopicQueueNums": "4"},
        **{"queueId": "2", "sysFlag": "1", "bornTimestamp": "99", "flag": "7", "properties": "p"},
        **{"reconsumeTimes": "3", "unitMode": "true", "maxReconsumeTimes": "16", "batch": "true"},
    }
    assert SendRequest.decode_long(names) == SendRequest.decode(letters)


@pytest.mark.parametrize("batch", [True, False])
def test_fields_that_are_made_in_haste_are_those_of_the_header(batch: bool) -> None:
    header = SendRequest("T", "g", "TBW102", 4, 2, SysFlag.COMPRESSED, 99, -7, "p", batch=batch)
    fields = send_fields("T", "g", "TBW102", 4, 2, SysFlag.COMPRESSED, 99, -7, "p", batch=batch)
    assert list(fields.items()) == list(header.encode().items())


@pytest.mark.parametrize("letter", "abcdefgh")
def test_a_send_needs_what_the_original_needs(letter: str) -> None:
    fields = SendRequest("T").encode()
    assert SendRequest.decode(fields) == SendRequest("T")
    for missing in ({}, {letter: ""}) if letter in "defgh" else ({},):
        less = {**{name: text for name, text in fields.items() if name != letter}, **missing}
        with pytest.raises(InvalidRequest, match=f"required field {letter} is missing"):
            SendRequest.decode(less)


def test_what_is_missing_from_a_long_send_has_its_long_name() -> None:
    with pytest.raises(InvalidRequest, match="required field queueId is missing"):
        SendRequest.decode_long(
            {"topic": "T", "producerGroup": "g", "defaultTopic": "TBW102", "defaultTopicQueueNums": "4"}
        )


def test_a_pull_says_what_it_wants_and_where_from() -> None:
    with pytest.raises(InvalidRequest, match="queueOffset"):
        PullRequest.decode({"consumerGroup": "g", "topic": "T", "queueId": "0", "maxMsgNums": "32"})
