"""Whatever a broker takes as a topic, a group or an offset, it writes, reads again, and name servers take it too."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bolide.model.data_version import DataVersion
from bolide.model.errors import RequestError
from bolide.store.disk_os import OsDisk
from bolide.store.tables.persisted import PersistedTable
from bolide.wire.bodies.registration import HeardRegistration, RegistrationBody
from tests.unit.broker.handlers.desk import Desk

NUMBERS = st.one_of(
    st.integers(-2, 20),
    st.sampled_from([2**31 - 1, 2**31, 2**40, 2**63 - 1, 2**63, -(2**31), -(2**31) - 1, -(2**63), 10**400]),
)
TEXTS = st.one_of(
    st.text(max_size=8), st.sampled_from(["NORMAL", "FIFO", "SINGLE_TAG", "MULTI_TAG", "true", "\ud7ff"])
)
NAMES = st.sampled_from(["orders", "%RETRY%billing", "a" * 120, "a" * 127, "a" * 128, "a b", "", "TBW102"])
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS.filter(lambda number: abs(number) < 2**64) | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(Path(folder))
        yield desk
        desk.close()


def read_again(desk: Desk, table: PersistedTable) -> PersistedTable:
    """The table as the next start finds it."""
    path = Path(table.file.path + ".copy")  # the broker itself writes the file when it likes
    path.write_bytes(b"".join(table.pieces()))
    again = type(table)(OsDisk(), str(path), desk.clock)
    again.load()
    return again


def check_kept(desk: Desk) -> None:
    topics, groups, offsets = (read_again(desk, one) for one in (desk.topics, desk.groups, desk.offsets))
    assert list(topics) == list(desk.topics)  # type: ignore[call-overload]
    assert list(groups) == list(desk.groups)  # type: ignore[call-overload]
    assert (offsets._offsets, offsets._pulled) == (desk.offsets._offsets, desk.offsets._pulled)  # type: ignore[attr-defined]
    told = RegistrationBody(DataVersion(), tuple(desk.topics))
    for compressed in (False, True):
        heard = HeardRegistration.decode(
            told.encode(compressed=compressed), compressed=compressed, version=493
        )
        assert [topic.name for topic in heard.topics] == [topic.name for topic in desk.topics]


@settings(deadline=None, max_examples=150)
@given(
    NAMES,
    NUMBERS,
    NUMBERS,
    NUMBERS,
    st.none() | NUMBERS,
    st.sampled_from(["SINGLE_TAG", "MULTI_TAG", "OTHER", "A B"]),
    st.sampled_from(
        ["", "+message.type=FIFO", "-message.type", "+message.type=X", "+a=b", "+queue.type=SimpleCQ"]
    ),
)
def test_a_topic_that_was_taken(
    desk: Desk, name: str, read: int, write: int, perm: int, flag: int | None, kind: str, changes: str
) -> None:
    fields: dict[str, Any] = {"topic": name, "readQueueNums": read, "writeQueueNums": write, "perm": perm}
    fields |= {"topicFilterType": kind, "attributes": changes} | (
        {} if flag is None else {"topicSysFlag": flag}
    )
    try:
        desk.ask(17, **fields)
    except RequestError:
        return
    check_kept(desk)


@settings(deadline=None, max_examples=150)
@given(
    NAMES,
    st.dictionaries(
        st.sampled_from(
            [
                *(
                    "retryQueueNums",
                    "retryMaxTimes",
                    "brokerId",
                    "whichBrokerWhenConsumeSlowly",
                    "groupSysFlag",
                ),
                *("consumeTimeoutMinute", "consumeEnable", "attributes", "groupRetryPolicy", "later"),
            ]
        ),
        st.one_of(
            NUMBERS.filter(lambda number: abs(number) < 2**64), JSON, st.sampled_from([60, 70, 200]).map(deep)
        ),
    ),
    st.dictionaries(st.text(max_size=4).map(lambda text: "+" + text), TEXTS, max_size=2),
)
def test_a_group_that_was_taken(
    desk: Desk, name: str, members: dict[str, Any], attributes: dict[str, str]
) -> None:
    given = {"groupName": name, "attributes": attributes} | members
    try:
        desk.ask(200, orjson.dumps(given))
    except RequestError:
        return
    check_kept(desk)


@settings(deadline=None, max_examples=100)
@given(NUMBERS, NUMBERS, st.sampled_from(["billing", "nobody"]), st.sampled_from(["kept", "missing"]))
def test_an_offset_that_was_taken(desk: Desk, queue_id: int, offset: int, group: str, topic: str) -> None:
    if "kept" not in desk.topics:
        desk.topic("kept", queues=4)
        desk.write("kept", 0, 5)
        desk.groups.find("billing", auto_create=True)
    pull = {"maxMsgNums": 1, "queueOffset": offset, "sysFlag": 5, "commitOffset": offset, "subscription": "*"}
    for code, fields in ((15, {"commitOffset": offset}), (11, pull)):
        try:
            desk.ask(code, consumerGroup=group, topic=topic, queueId=queue_id, **fields)
        except RequestError:
            continue
    check_kept(desk)


@settings(deadline=None, max_examples=60)
@given(st.lists(NAMES | st.text(max_size=8), max_size=3), st.lists(NAMES, max_size=3))
def test_groups_that_heartbeats_made(desk: Desk, groups: list[str], topics: list[str]) -> None:
    subscriptions = [{"topic": topic, "subString": "*", "subVersion": 1} for topic in topics]
    members = [{"groupName": group, "subscriptionDataSet": subscriptions} for group in groups]
    try:
        desk.ask(34, orjson.dumps({"clientID": "c", "consumerDataSet": members}))
    except RequestError:
        return
    check_kept(desk)
