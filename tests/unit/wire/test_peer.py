"""Peer: calls in flight by opaque, their deadlines, one-way requests."""

from typing import Any

import pytest

from bolide.model.errors import ProtocolError
from bolide.wire import peer as peer_module
from bolide.wire.command import Command, encode_frame
from bolide.wire.frame import Intake, decode_frame
from bolide.wire.peer import Answer, Peer


def receive(peer: Peer, data: bytes) -> list[Any]:
    target = peer.reader.writable()
    target[: len(data)] = data
    peer.reader.received(len(data))
    items: list[Any] = []
    while (item := peer.next()) is not None:
        items.append(item)
    return items


def answer_to(request: bytes, **parts: Any) -> bytes:
    return encode_frame(decode_frame(request).answer(**parts))


def test_answers_find_their_calls_in_any_order() -> None:
    peer = Peer(Intake(65536))
    requests = [peer.call(Command(11), 1000, f"call {number}") for number in range(3)]
    data = b"".join(answer_to(requests[number], remark=str(number)) for number in (2, 0, 1))
    answers = receive(peer, data)
    assert all(isinstance(answer, Answer) for answer in answers)
    assert [(answer.token, answer.command.remark) for answer in answers] == [
        ("call 2", "2"),
        ("call 0", "0"),
        ("call 1", "1"),
    ]


def test_calls_in_flight_have_different_opaques() -> None:
    peer = Peer(Intake(1024))
    opaques = [decode_frame(peer.call(Command(11), 1000, "x")).opaque for _ in range(100)]
    assert len(set(opaques)) == 100


def test_answers_that_nobody_waits_for_come_without_a_caller() -> None:
    peer = Peer(Intake(65536))
    request = peer.call(Command(11), 1000, "once")
    unknown = encode_frame(Command(0, opaque=12345, flag=1))
    following = encode_frame(Command(40, opaque=1))
    items = receive(peer, unknown + answer_to(request) + answer_to(request) + following)
    assert [type(item) for item in items] == [Answer, Answer, Answer, Command]
    assert [item.token for item in items[:3]] == [None, "once", None]


def test_a_request_from_the_other_side_is_not_taken_for_an_answer() -> None:
    peer = Peer(Intake(65536))
    request = peer.call(Command(11), 1000, "mine")
    theirs = Command(40, opaque=decode_frame(request).opaque)
    (item,) = receive(peer, encode_frame(theirs))
    assert item == theirs
    assert [answer.token for answer in receive(peer, answer_to(request))] == ["mine"]


def test_a_call_expires_at_its_deadline_and_nobody_waits_for_its_late_answer() -> None:
    peer = Peer(Intake(65536))
    late = peer.call(Command(11), 100, "first")
    peer.call(Command(11), 200, "second", 50)
    assert peer.next_deadline_ms() == 100
    assert peer.expire(99) == []
    assert peer.expire(100) == [("first", 100)]
    assert [answer.token for answer in receive(peer, answer_to(late))] == [None]
    assert peer.next_deadline_ms() == 200
    assert peer.expire(10_000) == [("second", 150)], "and says how long it was given"
    assert peer.next_deadline_ms() is None


def test_an_answered_call_does_not_expire() -> None:
    peer = Peer(Intake(65536))
    receive(peer, answer_to(peer.call(Command(11), 100, "x")))
    assert peer.next_deadline_ms() is None
    assert peer.expire(1000) == []


def test_deadlines_of_answered_calls_do_not_pile_up() -> None:
    """A caller with a long timeout and a fast server must not remember every call it ever made."""
    peer = Peer(Intake(65536))
    peer.call(Command(11), 1, "a call that stays")
    for _ in range(20_000):
        receive(peer, answer_to(peer.call(Command(11), 1_000_000, "x")))
    assert len(peer._deadlines) < 5_000
    assert [token for token, _ in peer.expire(2)] == ["a call that stays"]


def test_a_lost_connection_gives_back_every_call() -> None:
    peer = Peer(Intake(1024))
    for number in range(3):
        peer.call(Command(11), 100, number)
    assert peer.lost() == [0, 1, 2]
    assert peer.lost() == []
    assert peer.expire(1000) == []


def test_a_one_way_request_waits_for_nothing() -> None:
    peer = Peer(Intake(1024))
    notice = decode_frame(peer.notify(Command(40)))
    assert notice.is_one_way
    assert not notice.is_response
    assert peer.next_deadline_ms() is None


def test_calls_in_flight_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_module, "CALLS_MAX", 3)
    peer = Peer(Intake(1024))
    for number in range(3):
        peer.call(Command(11), 100, number)
    with pytest.raises(ProtocolError, match="already waiting"):
        peer.call(Command(11), 100, "one too many")


def test_silence_begins_with_the_first_call_that_expired_after_the_last_thing_heard() -> None:
    peer = Peer(Intake(1024))

    def after(now_ms: int) -> tuple[list[Any], int | None]:
        return [token for token, _ in peer.expire(now_ms)], peer.silent_since_ms

    peer.call(Command(11), 100, "heard of", 10)
    peer.heard()
    peer.call(Command(11), 300, "held", 10)  # sent in the same millisecond as the last thing was heard
    peer.call(Command(11), 200, "short", 150)
    assert after(100) == (["heard of"], None)
    assert after(200) == (["short"], 150)
    assert after(300) == (["held"], 10)
    peer.heard()
    assert after(1_000) == ([], None)
    peer.call(Command(11), 2_000, "late", 1_500)
    assert after(2_000) == (["late"], 1_500)


def test_opaques_begin_again_when_they_are_used_up() -> None:
    peer = Peer(Intake(65536))
    peer._number = 0x7FFF_FFFE
    requests = [peer.call(Command(11), 100, number) for number in range(3)]
    assert [decode_frame(request).opaque for request in requests] == [0x7FFF_FFFF, 0, 1]
    answers = receive(peer, answer_to(requests[2]))
    assert [answer.token for answer in answers] == [2]
    assert [token for token, _ in peer.expire(100)] == [0, 1]
