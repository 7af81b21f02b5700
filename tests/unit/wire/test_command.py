"""Commands: both header forms, what is accepted from other clients, and what is refused."""

import json
import struct

import pytest

from bolide.model.errors import ProtocolError
from bolide.model.limits import HEADER_FIELDS_MAX
from bolide.model.response_code import ResponseCode
from bolide.wire.command import COMPACT, JSON, VERSION, Command, decode_command, encode_frame
from bolide.wire.frame import decode_frame

COMPACT_HEADER = bytes.fromhex(
    "00 69 00 01 99 00 00 00 07 00 00 00 00 00 00 00 00 00 00 00 14"
    "00 05 74 6f 70 69 63 00 00 00 09 54 6f 70 69 63 54 65 73 74"
)
ROUTE_REQUEST = Command(105, {"topic": "TopicTest"}, opaque=7, language="JAVA", version=409, form=COMPACT)


def test_the_compact_header_has_the_bytes_of_the_reference() -> None:
    frame = encode_frame(ROUTE_REQUEST)
    assert frame == bytes.fromhex("00 00 00 2d 01 00 00 29") + COMPACT_HEADER
    assert decode_frame(frame) == ROUTE_REQUEST


def test_the_prefix_of_a_json_frame_has_the_bytes_of_the_reference() -> None:
    header = b'{"code":1,"remark":"' + b"r" * 109 + b'"}'
    frame = struct.pack(">II", 4 + len(header), len(header)) + header
    assert len(header) == 131
    assert frame[:8] == bytes.fromhex("00 00 00 87 00 00 00 83")
    assert decode_frame(frame).remark == "r" * 109


@pytest.mark.parametrize("form", [JSON, COMPACT])
def test_every_part_of_a_command_survives_the_round_trip(form: int) -> None:
    command = Command(
        code=11,
        fields={"topic": "T", "subscription": 'a "b" \\ ü \U0001f600 \x01\x02'},
        body=bytes(range(256)),
        remark="größer",
        opaque=-5,
        flag=3,
        language="GO",
        version=317,
        form=form,
    )
    assert decode_frame(encode_frame(command)) == command


@pytest.mark.parametrize("form", [JSON, COMPACT])
def test_a_command_without_fields_remark_and_body_survives_too(form: int) -> None:
    command = Command(code=3, form=form)
    assert decode_frame(encode_frame(command)) == command


def test_codes_that_do_not_fit_the_compact_form_come_back_whole() -> None:
    for code in (200050, 200056, 200151, 32767, 40000):
        assert decode_frame(encode_frame(Command(code, form=COMPACT))).code == code


def test_an_answer_has_the_opaque_and_the_form_of_its_request() -> None:
    for form in (JSON, COMPACT):
        request = Command(310, opaque=41, flag=0, form=form, language="CPP", version=333)
        answer = request.answer(ResponseCode.NO_PERMISSION, remark="no")
        assert (answer.opaque, answer.form, answer.flag) == (41, form, 1)
        assert (answer.language, answer.version) == ("PYTHON", VERSION)


def test_numbers_booleans_and_null_are_accepted_as_fields() -> None:
    """Node and C++ send them; null means that the field is not there."""
    fields = {"e": 3, "k": True, "m": False, "x": None, "f": 1.5, "n": {"a": 1}, "l": [1]}
    header = json.dumps({"code": 310, "opaque": 1, "flag": 0, "extFields": fields}).encode()
    assert decode_command(JSON, header, b"").fields == {
        "e": "3",
        "k": "true",
        "m": "false",
        "f": "1.5",
        "n": '{"a":1}',
        "l": "[1]",
    }


@pytest.mark.parametrize("header", [b"{}", b'{"code":null,"extFields":null,"remark":null,"language":null}'])
def test_what_is_missing_or_null_is_empty(header: bytes) -> None:
    command = decode_command(JSON, header, b"")
    assert (command.code, command.opaque, command.flag, command.version) == (0, 0, 0, 0)
    assert (command.fields, command.remark, command.language) == ({}, None, "OTHER")


def test_unknown_keys_are_ignored() -> None:
    assert decode_command(JSON, b'{"code":5,"later":{"a":[1,2]},"x":1.5}', b"").code == 5


def test_an_answer_carries_text_fields_only_and_numbers_where_clients_read_numbers() -> None:
    """Go cannot decode a bare number in the fields; C++ reads the head as numbers."""
    frame = encode_frame(Command(11).answer(fields={"maxOffset": "5"}))
    head = json.loads(frame[8:])
    assert all(type(value) is str for value in head["extFields"].values())
    assert all(type(head[name]) is int for name in ("code", "flag", "opaque", "version"))
    assert "remark" not in head


def test_an_answer_always_has_a_map_of_fields() -> None:
    assert json.loads(encode_frame(Command(11).answer())[8:])["extFields"] == {}


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"[]",
        b"7",
        b"not json",
        b'{"code":310',
        b'{"code":310}}',
        b'{"code":"x"}',
        b'{"code":[1]}',
        b'{"code":{"a":1}}',
        b'{"opaque":1e999}',
        b'{"opaque":2147483648}',
        b'{"flag":-2147483649}',
        b'{"extFields":[1]}',
        b'{"extFields":"x"}',
        b'{"remark":"\xff"}',
        b'{"remark":"\xed\xa0\x80"}',
        b'{"remark":"\\ud800"}',
        b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}",
        b'{"extFields":{"a":' + b"[" * 900 + b"]" * 900 + b"}}",
        b'{"language":' + b"[" * 1020 + b"]" * 1020 + b"}",
        b'{"remark":' + b"[" * 1020 + b"]" * 1020 + b"}",
    ],
    ids=lambda header: header[:24].decode("ascii", "replace"),
)
def test_a_json_header_that_is_none_is_a_protocol_error(header: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_command(JSON, header, b"")


@pytest.mark.parametrize(
    "header",
    [
        b"",
        COMPACT_HEADER[:20],
        COMPACT_HEADER[:-1],
        COMPACT_HEADER[:13] + b"\x00\x00\x00\xff" + COMPACT_HEADER[17:],
        COMPACT_HEADER[:13] + b"\xff\xff\xff\xff" + COMPACT_HEADER[17:],
        COMPACT_HEADER[:17] + b"\xff\xff\xff\xff" + COMPACT_HEADER[21:],
        COMPACT_HEADER[:28] + b"\xff\xff\xff\xff" + COMPACT_HEADER[32:],
        COMPACT_HEADER[:32] + b"\xff" * 9,
    ],
    ids=["empty", "short", "cut", "long remark", "negative remark", "long map", "long value", "not UTF-8"],
)
def test_a_compact_header_that_is_none_is_a_protocol_error(header: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_command(COMPACT, header, b"")


def test_every_cut_of_a_compact_header_is_a_protocol_error() -> None:
    for length in range(len(COMPACT_HEADER)):
        with pytest.raises(ProtocolError):
            decode_command(COMPACT, COMPACT_HEADER[:length], b"")


def test_an_unknown_header_form_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError, match="form 2"):
        decode_command(2, b"{}", b"")


@pytest.mark.parametrize("version", [b"2147483648", b"-2147483649", b"999999999999999999"])
def test_a_version_that_cannot_be_is_none(version: bytes) -> None:
    assert decode_command(JSON, b'{"code":11,"version":' + version + b"}", b"").version == 0


def test_an_unknown_language_is_other() -> None:
    header = COMPACT_HEADER[:2] + b"\xc8" + COMPACT_HEADER[3:]
    assert decode_command(COMPACT, header, b"").language == "OTHER"


def test_a_header_too_large_for_a_frame_is_refused_before_it_is_sent() -> None:
    with pytest.raises(ProtocolError, match="does not fit"):
        encode_frame(Command(1, {"x": "y" * 0x1000000}))


@pytest.mark.parametrize("language", ["PYTHON3", "java", "", 5, "x" * 1000, None])
def test_a_language_that_nobody_knows_is_other_and_its_text_is_not_kept(language: object) -> None:
    header = json.dumps({"code": 34, "language": language}).encode()
    assert decode_command(JSON, header, b"").language == "OTHER"


def test_the_name_of_a_language_is_one_object_for_all_commands() -> None:
    one, other = (decode_command(JSON, b'{"code":34,"language":"GO"}', b"") for _ in range(2))
    assert one.language is other.language


@pytest.mark.parametrize("form", [JSON, COMPACT])
def test_a_header_has_at_most_128_fields(form: int) -> None:
    fields = {f"f{number}": "x" for number in range(HEADER_FIELDS_MAX)}
    assert decode_frame(encode_frame(Command(34, fields, form=form))).fields == fields
    with pytest.raises(ProtocolError, match="more than 128 fields"):
        decode_frame(encode_frame(Command(34, fields | {"one more": "x"}, form=form)))


def test_fields_of_one_name_count_each() -> None:
    empty = (b"\x00\x00" + bytes(4)) * (HEADER_FIELDS_MAX + 1)
    header = COMPACT_HEADER[:17] + len(empty).to_bytes(4, "big") + empty
    with pytest.raises(ProtocolError, match="more than 128 fields"):
        decode_command(COMPACT, header, b"")


def test_a_command_knows_how_long_its_frame_was() -> None:
    for form in (JSON, COMPACT):
        frame = encode_frame(Command(34, {"a": "b"}, b"body", remark="r", form=form))
        assert decode_frame(frame).frame_bytes == len(frame)
