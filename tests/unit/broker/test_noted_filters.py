"""Which heartbeats make the broker look at SQL expressions, and write them down."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bolide.broker import noted_filters
from bolide.broker.handlers.client import Clients
from bolide.model.filter import Filter
from bolide.model.topic import Subscription
from bolide.rules.filters import filter_of
from bolide.store.tables import FilterTable, filters
from bolide.wire.bodies.group import ConsumerData, HeartbeatData
from tests.unit.broker.handlers.desk import Desk
from tests.unit.net.stage import eventually


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    yield desk
    desk.close()


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Expressions, as often as they were read."""
    seen: list[str] = []

    def read(subscription: Subscription) -> Filter:
        seen.append(subscription.expression)
        return filter_of(subscription)

    monkeypatch.setattr(noted_filters, "filter_of", read)
    return seen


def heartbeat(desk: Desk, expression: str, version: int = 1) -> FilterTable:
    """Its group wants these messages; the table when that is noted."""
    wanted = Subscription.parse("orders", expression, version, "SQL92")
    desk.ask(34, HeartbeatData("one", consumers=(ConsumerData("billing", subscriptions=(wanted,)),)).encode())
    noted = desk.part(Clients)._filters
    desk.run(eventually(lambda: noted._noting._waiting is None))
    return noted.table


@pytest.mark.parametrize("expression", ["price > 1", "price >"], ids=["sound", "unsound"])
def test_an_expression_is_looked_at_once_and_again_when_it_changes(
    desk: Desk, looked_at: list[str], expression: str
) -> None:
    for version in (1, 1, 1, 2, 2):
        heartbeat(desk, expression, version)
    assert looked_at == [expression, expression]


def test_one_for_which_there_is_no_room_is_neither_looked_at_nor_written_with_every_heartbeat(
    desk: Desk, looked_at: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filters, "FILTER_TABLE_BYTES_MAX", 0)
    for _ in range(3):
        table = heartbeat(desk, "price > 1")
        assert not table.is_dirty
    assert looked_at == ["price > 1"]


def test_a_group_that_has_gone_is_looked_at_when_it_comes_back(desk: Desk, looked_at: list[str]) -> None:
    table = heartbeat(desk, "price > 1")
    desk.lose("10.0.0.1:5000")
    noted = desk.part(Clients)._filters

    async def sweep() -> None:
        noted.sweep()
        await eventually(lambda: noted._noting._waiting is None)

    desk.run(sweep())
    assert [kept.is_dead for kept in table] == [True]
    heartbeat(desk, "price > 1")
    assert [kept.is_dead for kept in table] == [False]
    assert len(looked_at) == 2
