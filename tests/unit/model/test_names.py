"""Names of topics and groups: what is allowed, and that nothing else can become a path."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bolide.model import names
from bolide.model.errors import InvalidRequest


@pytest.mark.parametrize("name", ["T", "a-b_c", "%RETRY%g", "A|B", "x" * 127, "0"])
def test_legal_topics_come_back_as_they_are(name: str) -> None:
    assert names.check_topic(name) == name


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "blank"),
        ("  ", "blank"),
        ("a b", "' '"),
        ("../x", "'.'"),
        ("a/b", "'/'"),
        ("a\0b", "contains"),
        ("ü", "contains"),
        ("x" * 128, "127 are allowed"),
        ("%RETRY%" + "x" * 249, "255 are allowed"),
    ],
)
def test_illegal_topics_are_refused_with_the_reason(name: str, why: str) -> None:
    with pytest.raises(InvalidRequest, match=why):
        names.check_topic(name)


def test_derived_topics_may_be_longer() -> None:
    for prefix in ("%RETRY%", "%DLQ%"):
        assert names.check_topic(prefix + "x" * (255 - len(prefix)))


def test_groups_have_their_own_limit() -> None:
    assert names.check_group("g" * 120)
    with pytest.raises(InvalidRequest, match="120 are allowed"):
        names.check_group("g" * 121)


@given(st.text(max_size=20))
def test_a_checked_name_is_one_folder_and_no_other_place(name: str) -> None:
    try:
        names.check_topic(name)
    except InvalidRequest:
        return
    assert name not in ("", ".", "..")
    assert not set(name) & set("/\\\0.")


def test_names_are_derived_as_clients_derive_them() -> None:
    assert names.retry_topic("g") == "%RETRY%g"
    assert names.reply_topic("C") == "C_REPLY_TOPIC"
    assert names.is_system_topic("rmq_sys_wheel_timer")
    assert names.is_system_group("CID_RMQ_SYS_TRANS")
    assert not names.is_system_topic("orders")


@pytest.mark.parametrize("half", ["HALF", "OP_HALF"])
@pytest.mark.parametrize("kind", ["", "ROCKSDB_"])
def test_topics_of_transactions_are_the_brokers_own(kind: str, half: str) -> None:
    """RocketMQ 5.5 has a second pair of them."""
    topic = f"RMQ_SYS_{kind}TRANS_{half}_TOPIC"
    assert names.is_system_topic(topic)
    assert topic in names.NO_SEND_TOPICS
