"""What heartbeats leave behind: SQL subscriptions in their file, and groups whose members do not agree."""

import json
import logging

import pytest

from bolide.broker.handlers.client import Clients
from bolide.store.tables import FilterTable
from bolide.wire.bodies.connection import GroupConnections
from tests.unit.broker.handlers.desk import Desk
from tests.unit.net.stage import eventually

HEART_BEAT, UNREGISTER, CONNECTIONS = 34, 35, 203
DAY_MS = 24 * 3600 * 1000


def beat(desk: Desk, client_id: str, by: str, *subscriptions: tuple[str, str, str]) -> None:
    described = [
        {"topic": topic, "subString": expression, "expressionType": kind, "subVersion": 1}
        for topic, expression, kind in subscriptions
    ]
    group = {"groupName": "g", "subscriptionDataSet": described}
    body = json.dumps({"clientID": client_id, "consumerDataSet": [group]}).encode()
    desk.ask(HEART_BEAT, body, by=by)


async def sweep(desk: Desk) -> None:
    desk.part(Clients).expire()


def filters(desk: Desk) -> FilterTable:
    return desk.part(Clients)._filters.table


def test_a_heartbeat_with_an_expression_is_in_the_file_and_tags_are_not(desk: Desk) -> None:
    beat(desk, "c", "10.0.0.1:1", ("T", "a = 1", "SQL92"), ("U", "A || B", "TAG"))
    desk.run(eventually(lambda: [one.topic for one in filters(desk)] == ["T"]))
    assert filters(desk).is_dirty


def test_what_is_no_expression_stays_out_of_the_file(desk: Desk) -> None:
    beat(desk, "c", "10.0.0.1:1", ("T", "a = ", "SQL92"), ("U", "a = 1", "SQL92"))
    desk.run(eventually(lambda: [one.topic for one in filters(desk)] == ["U"]))


def test_an_expression_is_dead_when_its_group_has_gone_and_forgotten_a_day_later(desk: Desk) -> None:
    beat(desk, "c", "10.0.0.1:1", ("T", "a = 1", "SQL92"))
    desk.run(eventually(lambda: any(filters(desk))))
    desk.lose("10.0.0.1:1")
    desk.run(sweep(desk))
    desk.run(eventually(lambda: all(one.is_dead for one in filters(desk))))
    desk.clock.ms += DAY_MS
    desk.run(sweep(desk))
    assert list(filters(desk)) == []


def test_a_group_that_goes_back_to_tags_has_no_living_expression(desk: Desk) -> None:
    beat(desk, "c", "10.0.0.1:1", ("T", "a = 1", "SQL92"))
    desk.run(eventually(lambda: any(filters(desk))))
    desk.lose("10.0.0.1:1")
    beat(desk, "c", "10.0.0.1:2", ("T", "*", "TAG"))
    desk.run(eventually(lambda: all(one.is_dead for one in filters(desk))))


def test_members_that_subscribe_differently_are_said_once_and_shown_by_203(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """CM-05: different subscriptions in one group are said aloud."""
    with caplog.at_level(logging.WARNING):
        beat(desk, "a", "10.0.0.1:1", ("T", "A", "TAG"), ("%RETRY%g", "*", "TAG"))
        assert not caplog.records
        beat(desk, "b", "10.0.0.2:1", ("T", "B", "TAG"), ("%RETRY%g", "*", "TAG"))
        beat(desk, "b", "10.0.0.2:1", ("T", "B", "TAG"), ("%RETRY%g", "*", "TAG"))
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 1
    assert "'g' subscribe to different things" in said[0]
    assert "'b' of 10.0.0.2:1" in said[0]
    shown = GroupConnections.decode("g", desk.ask(CONNECTIONS, consumerGroup="g").body).differences
    assert [(one.client_ids, one.subscriptions) for one in shown] == [
        (("a",), (("T", "A"),)),
        (("b",), (("T", "B"),)),
    ]


def test_members_that_agree_are_shown_as_before(desk: Desk) -> None:
    beat(desk, "a", "10.0.0.1:1", ("T", "A", "TAG"))
    beat(desk, "b", "10.0.0.2:1", ("T", "A", "TAG"))
    answer = desk.ask(CONNECTIONS, consumerGroup="g").body
    assert b"subscriptionDifferences" not in answer
    assert GroupConnections.decode("g", answer).differences == ()
