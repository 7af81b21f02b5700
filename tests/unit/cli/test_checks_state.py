"""What `bolide doctor` makes of a broker's own words."""

from collections.abc import Mapping

import pytest

from bolide.cli.checks_state import check_state
from bolide.cli.findings import Finding, Verdict

NOW_MS = 1_700_000_000_000
HEALTHY = {
    "bootTimestamp": str(NOW_MS - 90_061_000),
    "runtime": "[ 1 days, 1 hours, 1 minutes, 1 seconds ]",
    "commitLogDiskRatio": "0.5000",
    "damagedMessagesPassedOver": "0",
}
SETTINGS = {"brokerPermission": "6", "fileReservedTime": "72"}


def found(state: Mapping[str, str], settings: Mapping[str, str] = SETTINGS) -> dict[str, Finding]:
    findings = list(check_state("broker-a", {**HEALTHY, **state}, settings, NOW_MS))
    assert all(finding.advice or finding.verdict is Verdict.GOOD for finding in findings)
    return {finding.check: finding for finding in findings if finding.verdict is not Verdict.GOOD}


def test_a_healthy_broker_has_nothing_to_say() -> None:
    assert found({}) == {}
    assert list(check_state("silent", {}, {}, NOW_MS))  # an older broker tells less, and that is no problem
    assert not any(one.advice for one in check_state("silent", {}, {}, NOW_MS))


def test_a_broker_that_refuses_messages_is_a_problem_with_its_own_words() -> None:
    finding = found({"putMessageRefusal": "the broker's disk is 93.0% full"})["messages"]
    assert finding.verdict is Verdict.WRONG
    assert "93.0%" in finding.text
    assert "fileReservedTime is 72 hours" in finding.advice


@pytest.mark.parametrize("permission", ["0", "4"])
def test_a_broker_without_the_right_to_be_sent_to_is_named(permission: str) -> None:
    finding = found({}, {"brokerPermission": permission})["messages"]
    assert finding.verdict is Verdict.DOUBTFUL
    assert "bolide broker undrain broker-a" in finding.advice


@pytest.mark.parametrize(
    ("ratio", "limit", "verdict"),
    [
        ("0.8000", "75", Verdict.DOUBTFUL),
        ("0.8000", "95", None),
        ("0.9950", "75", Verdict.WRONG),
        ("x", "75", None),
    ],
)
def test_a_disk_fuller_than_the_broker_likes_is_told(ratio: str, limit: str, verdict: Verdict | None) -> None:
    findings = found({"commitLogDiskRatio": ratio}, {"diskMaxUsedSpaceRatio": limit})
    assert (findings["disk"].verdict if "disk" in findings else None) is verdict


def test_damaged_messages_lead_to_the_store_tools() -> None:
    assert "bolide store verify" in found({"damagedMessagesPassedOver": "3"})["store"].advice


def test_a_clock_that_is_off_is_told_and_nonsense_is_not_believed() -> None:
    assert "100 s behind" in found({"bootTimestamp": str(NOW_MS - 90_161_000)})["clock"].text
    assert found({"bootTimestamp": "9" * 5000}) == {}
    assert found({"runtime": f"{'9' * 5000} days, 0 hours, 0 minutes, 0 seconds"}) == {}
