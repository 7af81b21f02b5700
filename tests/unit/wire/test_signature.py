"""Signatures: the original's own, over the values in the order of their names and the body."""

from bolide.model.credentials import Credentials
from bolide.wire.command import ACCESS_KEY, SECURITY_TOKEN, SIGNATURE, Command
from bolide.wire.signature import sign, signature

ALICE = Credentials("rocketmq2", "12345678")


def test_a_signature_is_the_one_that_the_original_makes() -> None:
    request = Command(105, {"topic": "TopicTest"})
    sign(request, ALICE)
    assert request.fields == {
        ACCESS_KEY: "rocketmq2",
        "topic": "TopicTest",
        SIGNATURE: "GeeGoP9mRvDhoVp4PD5omX0prgE=",
    }


def test_everything_but_the_signature_takes_part() -> None:
    request = Command(310, {"b": "2", "a": "1"}, b"body")
    sign(request, Credentials("key", "secret", "token"))
    assert request.fields[SECURITY_TOKEN] == "token"
    before = request.fields[SIGNATURE]
    changes = [
        Command(310, request.fields | {"a": "9"}, b"body"),
        Command(310, request.fields | {SECURITY_TOKEN: "other"}, b"body"),
        Command(310, request.fields | {ACCESS_KEY: "other"}, b"body"),
        Command(310, request.fields | {"c": "3"}, b"body"),
        Command(310, request.fields, b"other"),
    ]
    assert all(signature(changed, "secret") != before for changed in changes)
    assert signature(Command(99, dict(reversed(request.fields.items())), b"body"), "secret") == before


def test_a_request_that_is_sent_again_is_signed_anew() -> None:
    request = Command(105, {"topic": "TopicTest"})
    sign(request, Credentials("other", "other"))
    sign(request, ALICE)
    assert request.fields[SIGNATURE] == "GeeGoP9mRvDhoVp4PD5omX0prgE="
