"""Both implementations of `scan_pull` and `encode_found` do exactly the same, whatever the bytes are.

Goal: two pulls of equal shape are the same request but for three numbers.  Method: headers in every spelling JSON
allows and mutations of them go through both; what they accept must mean the same to the general path.
"""

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from bolide.model.errors import ProtocolError
from bolide.wire.frame import decode_frame
from bolide.wire.headers.pull import PullAnswer
from tests.property.test_scan_twins import SEEDS, Speller
from tests.property.twins import PULLS, outcome
from tests.unit.wire.stage import frame


def scanned_by_both(data: bytes, start: int = 0) -> Any:
    compiled, twin = (outcome(module.scan_pull, bytearray(data), start, len(data)) for module in PULLS)
    assert compiled == twin
    return compiled[1]


@given(SEEDS)
@example(50836)  # a version that does not fit 32 bits
@settings(max_examples=600)
def test_what_both_scans_take_means_the_same_to_the_general_path(seed: int) -> None:
    data = frame(Speller(seed).pull_header())
    scan = scanned_by_both(data)
    if scan is None:
        return
    shape, opaque, queue_offset, commit_offset, end = scan
    command = decode_frame(data)
    assert end == len(data)
    assert command.code in (11, 361)
    assert (command.opaque, command.flag) == (opaque, 0)
    assert int(command.fields["queueOffset"]) == queue_offset
    assert int(command.fields["commitOffset"]) == commit_offset
    assert len(shape) < len(data) - 8


def test_many_of_the_spelled_pulls_are_plain_and_many_are_not() -> None:
    scans = [scanned_by_both(frame(Speller(seed).pull_header())) for seed in range(300)]
    assert 50 < sum(scan is not None for scan in scans) < 250


def test_pulls_differ_in_shape_when_they_differ_in_anything_but_their_three_numbers() -> None:
    def shape(opaque: int = 1, **changes: str) -> bytes:
        fields = {"topic": "T", "queueOffset": "1", "commitOffset": "1", "queueId": "0", **changes}
        members = ",".join(f'"{name}":"{value}"' for name, value in fields.items())
        header = f'{{"code":11,"extFields":{{{members}}},"flag":0,"opaque":{opaque},"version":493}}'
        scan = scanned_by_both(frame(header.encode()))
        assert scan is not None
        assert isinstance(scan[0], bytes)
        return scan[0]

    base = shape()
    assert shape(opaque=77, queueOffset="123456", commitOffset="-1") == base
    assert shape(queueId="1") != base
    assert shape(topic="T1") != base
    assert shape(extra="") != base


@given(SEEDS, st.data())
@settings(max_examples=300)
def test_mutated_frames_are_taken_or_left_by_both_alike(seed: int, data: st.DataObject) -> None:
    changed = bytearray(frame(Speller(seed).pull_header()))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(changed) - 1))
        changed[at] = data.draw(st.sampled_from([0, 1, 34, 44, 48, 92, 123, 125, 255, changed[at] ^ 1]))
    scan = scanned_by_both(bytes(changed))
    if scan is not None:
        try:
            decode_frame(bytes(changed))
        except ProtocolError as error:
            raise AssertionError("the scan took what is no frame") from error


@given(st.binary(max_size=60), st.integers(-3, 70))
def test_random_bytes_never_disturb_the_scan(data: bytes, start: int) -> None:
    scanned_by_both(data, start)


def test_a_frame_that_is_not_all_there_or_has_a_body_is_left_to_the_general_path() -> None:
    header = b'{"code":11,"extFields":{"queueOffset":"5","commitOffset":"0"},"flag":0,"opaque":7}'
    whole = frame(header)
    assert scanned_by_both(whole) is not None
    for size in range(len(whole)):
        assert scanned_by_both(whole[:size]) is None
    assert scanned_by_both(frame(header, b"body")) is None


def test_the_code_may_stand_anywhere_before_the_fields() -> None:
    fields = b'"extFields":{"queueOffset":"5","commitOffset":"0"}'
    for members in (b'"flag":0,"opaque":7,"code":11,' + fields, b'"language":"GO","code":361,' + fields):
        rest = b"" if b"opaque" in members else b',"flag":0,"opaque":7'
        scan = scanned_by_both(frame(b"{" + members + rest + b"}"))
        assert scan is not None
        assert scan[1:4] == (7, 5, 0)
    assert scanned_by_both(frame(b"{" + fields + b',"code":11,"flag":0,"opaque":7}')) is None


NUMBERS = st.integers(0, 2**63 - 1)


@given(st.integers(-(2**31), 2**31 - 1), NUMBERS, NUMBERS, NUMBERS, st.integers(0, 2**24))
def test_both_write_the_same_answer_and_clients_read_it(
    opaque: int, following: int, offset_min: int, offset_max: int, body_length: int
) -> None:
    heads = [module.encode_found(opaque, following, offset_min, offset_max, body_length) for module in PULLS]
    assert heads[0] == heads[1]
    answer = decode_frame(heads[0] + bytes(body_length))
    assert (answer.code, answer.opaque, answer.remark, len(answer.body)) == (0, opaque, "FOUND", body_length)
    assert PullAnswer.decode(answer.fields) == PullAnswer(0, following, offset_min, offset_max)
