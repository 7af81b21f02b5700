"""Settings at run time, and the state that operators read."""

import logging

import pytest

from bolide.broker.handlers.runtime import NOT_HERE, VERSION_TEXT, Runtime, format_duration
from bolide.broker.handlers.settings import TOLD_TOO
from bolide.model.errors import InvalidRequest
from bolide.wire.bodies.properties import parse_settings
from bolide.wire.bodies.route import decode_kv_table
from bolide.wire.command import VERSION
from tests.unit.broker.handlers.desk import Desk


def test_settings_are_shown_under_the_originals_names(desk: Desk) -> None:
    answer = desk.ask(26)
    shown = parse_settings(answer.body)
    assert shown["brokerClusterName"] == "DefaultCluster"
    assert shown["flushDiskType"] == "ASYNC_FLUSH"
    assert shown["brokerPermission"] == "6"
    assert answer.fields == {"version": '{"counter":0,"stateVersion":0,"timestamp":1700000000000}'}


def test_a_drained_broker_is_registered_before_the_answer(desk: Desk) -> None:
    before = desk.topics.version.counter
    assert desk.ask(25, b"brokerPermission=4\n").code == 0
    assert desk.config.permission == 4
    assert desk.topics.version.counter == before + 1, "name servers see that something is new"
    assert desk.registrations == 1


def test_other_settings_need_no_registration(desk: Desk) -> None:
    desk.ask(25, b"# comment\nautoCreateTopicEnable=false\nlongPollingEnable = false\n")
    assert not desk.config.auto_create_topic
    assert not desk.config.long_polling
    assert desk.registrations == 0


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"brokerPermision=4", "did you mean brokerPermission"),
        (b"brokerName=other", "cannot change while the broker runs"),
        (b"flushDiskType=SYNC_FLUSH", "cannot change while the broker runs"),
        (b"brokerPermission=9", "from 0 to 6"),
        (b"autoCreateTopicEnable=perhaps", "true or false"),
        (b"no separator", "key=value"),
    ],
)
def test_a_change_that_cannot_be_made_is_refused_with_the_reason(
    desk: Desk, body: bytes, reason: str
) -> None:
    before = desk.config
    with pytest.raises(InvalidRequest, match=reason):
        desk.ask(25, b"longPollingEnable=false\n" + body)
    assert desk.config == before, "a change is made whole or not at all"


def test_the_state_has_what_cluster_list_and_broker_status_read(desk: Desk) -> None:
    desk.topic("orders")
    desk.part(Runtime).sample_traffic()
    desk.write("orders", 0, 50)
    desk.traffic.found, desk.traffic.missed, desk.traffic.transferred = 5, 10, 40
    desk.clock.ms += 10_000
    state = decode_kv_table(desk.ask(28).body)
    assert state["brokerActive"] == "true"
    assert state["brokerVersionDesc"] == VERSION_TEXT
    assert state["putTps"] == "5.00 5.00 5.00"
    assert state["getTransferredTps"] == "4.00 4.00 4.00"
    assert state["getTotalTps"].split()[0] == "1.50"
    assert state["msgPutTotalTodayNow"] == state["putMessageTimesTotal"] == "50"
    assert state["msgGetTotalTodayNow"] == "40"
    assert state["runtime"] == "[ 0 days, 0 hours, 0 minutes, 10 seconds ]"
    assert 0 <= float(state["commitLogDiskRatio"]) <= 1
    for number in (
        *("sendThreadPoolQueueSize", "pullThreadPoolQueueHeadWaitTimeMills", "ackThreadPoolQueueSize"),
        *("pageCacheLockTimeMills", "timerReadBehind", "timerOffsetBehind", "timerCongestNum"),
        *("msgPutTotalYesterdayMorning", "msgPutTotalTodayMorning", "commitLogMaxOffset", "bootTimestamp"),
    ):
        assert state[number].isdigit(), number
    assert float(state["timerEnqueueTps"]) == float(state["timerDequeueTps"]) == 0


def test_every_figure_and_every_setting_is_told_by_one_place(desk: Desk) -> None:
    figures = [*NOT_HERE, *(name for of_part in desk.state.figures for name in of_part())]
    assert sorted(figures) == sorted(set(figures))
    assert TOLD_TOO.keys().isdisjoint(desk.config.as_settings())


def test_the_version_that_is_shown_is_the_version_that_is_spoken() -> None:
    assert (VERSION, VERSION_TEXT) == (493, "V5_4_0")


def test_a_duration_is_written_as_the_original_writes_it() -> None:
    assert format_duration(((26 * 60 + 3) * 60 + 4) * 1000) == "[ 1 days, 2 hours, 3 minutes, 4 seconds ]"
    assert format_duration(-5) == "[ 0 days, 0 hours, 0 minutes, 0 seconds ]"


def test_a_change_of_settings_is_said_once_and_no_change_is_not(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            desk.ask(25, b"")
            assert "has changed settings" not in caplog.text
        for _ in range(5):
            desk.ask(25, b"brokerPermission=4")
            desk.ask(25, b"brokerPermission=6")
    assert caplog.text.count("has changed settings") == 2
