"""Which changes of a running broker's settings are asked about: those that delete messages or turn clients away."""

import pytest

from bolide.admin.stakes import stakes_of
from bolide.broker.config import BrokerConfig


@pytest.mark.parametrize(
    ("key", "old", "new", "said"),
    [
        ("brokerPermission", "6", "4", "producers are turned away"),
        ("brokerPermission", "6", "2", "consumers get no messages"),
        ("brokerPermission", "6", "0", "producers are turned away and consumers get no messages"),
        ("brokerPermission", "", "4", "producers are turned away"),
        ("brokerPermission", "4", "6", None),
        ("brokerPermission", "6", "x", "may be turned away"),
        ("fileReservedTime", "72", "71", "older than 71 hours"),
        ("fileReservedTime", "72", "73", None),
        ("fileReservedTime", "72", " 72 ", None),
        ("fileReservedTime", "72", "072", None),
        ("fileReservedTime", "", "72", "older than 72 hours"),
        ("deleteWhen", "04", "05", "these hours"),
        ("diskMaxUsedSpaceRatio", "75", "10", "10 % full"),
        ("cleanFileForciblyEnable", "false", "TRUE", "whatever their age"),
        ("cleanFileForciblyEnable", "true", "false", None),
        ("timerWheelEnable", "true", "false", "are refused"),
        ("flushIntervalCommitLog", "500", "1", None),
    ],
)
def test_a_change_costs_what_it_takes_away(key: str, old: str, new: str, said: str | None) -> None:
    costs = stakes_of({key: old} if old else {}, {key: new})
    assert len(costs) == (said is not None)
    assert all(said in cost for cost in costs if said)


def test_every_setting_that_may_cost_something_is_one_that_may_change() -> None:
    from bolide.admin.stakes import _COSTS

    live = {key for key, (_, setting) in BrokerConfig.settings().items() if setting.live}
    assert _COSTS.keys() <= live
