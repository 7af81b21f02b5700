"""Checks of `bolide doctor` on what a broker says about itself: does it take messages, how full is its disk, is its
store sound, does it know what time it is?
"""

import re
from collections.abc import Iterator, Mapping

from bolide.cli.findings import Finding, doubtful, good, wrong
from bolide.store.retention import RetentionSettings

CLOCK_MS_MAX = 5_000
"""How far the clock of a broker may be off; its own words are only exact to a second."""

_RUNTIME = re.compile(r"(?<!\d)(\d{1,9}) days?, (\d{1,9}) hours?, (\d{1,9}) minutes?, (\d{1,9}) seconds?")
_RATIO = re.compile(r"[01]\.\d{1,9}")
_NUMBER = re.compile(r"[0-9]{1,18}")

DISK_SETTINGS = {
    "diskMaxUsedSpaceRatio": RetentionSettings().clean_percent,
    "diskSpaceCleanForciblyRatio": RetentionSettings().force_percent,
    "diskSpaceWarningLevelRatio": RetentionSettings().full_percent,
}
"""How full a disk may be before something follows from it; what holds where a broker does not say."""

FULL_PERCENT = 99.0
"""Nothing that a setting says can help there: the next segment finds no room."""


def check_state(
    name: str, state: Mapping[str, str], settings: Mapping[str, str], now_ms: int
) -> Iterator[Finding]:
    """`state` is what `mqadmin brokerStatus` shows, `settings` what `getBrokerConfig` shows."""
    yield from _check_taking(name, state, settings)
    yield from _check_store(name, state, settings)
    yield _compare_clocks(name, state, now_ms)


def _check_taking(name: str, state: Mapping[str, str], settings: Mapping[str, str]) -> Iterator[Finding]:
    refusal = state.get("putMessageRefusal", "")
    if refusal:
        yield wrong(
            "messages",
            f"{name} refuses messages: {refusal}",
            "Free some space on its disk, give the file system more, or keep messages for less time: fileReservedTime"
            f" is {settings.get('fileReservedTime', 'unknown')} hours, and"
            f" `bolide broker config set {name} fileReservedTime=HOURS`, then"
            " `mqadmin deleteExpiredCommitLog`, deletes older ones now. It takes messages again by itself.",
        )
    permission = settings.get("brokerPermission", "6")
    if permission in ("0", "4"):
        what = "neither sent to nor read" if permission == "0" else "read but not sent to"
        yield doubtful(
            "messages",
            f"{name} can be {what}: brokerPermission is {permission}",
            f"If it was drained on purpose, well; else `bolide broker undrain {name}` ends that.",
        )
    if not refusal and permission not in ("0", "4"):
        yield good("messages", f"{name} takes messages")


def _check_store(name: str, state: Mapping[str, str], settings: Mapping[str, str]) -> Iterator[Finding]:
    ratio = state.get("commitLogDiskRatio", "")
    used = 100 * float(ratio) if _RATIO.fullmatch(ratio) else 0.0
    clean, force, full = (_percent(settings, key, default) for key, default in DISK_SETTINGS.items())
    if used > clean and not state.get("putMessageRefusal"):
        yield (wrong if used > FULL_PERCENT else doubtful)(
            "disk",
            f"the disk of {name} is {used:.1f} % full",
            f"Free some space: from {clean} % on messages older than fileReservedTime are deleted at any hour, from"
            f" {force} % on the oldest whatever their age, and from {full} % on no more are taken (docs/retention.md).",
        )
    damaged = state.get("damagedMessagesPassedOver", "0")
    if damaged != "0":
        yield doubtful(
            "store",
            f"{name} has passed over {damaged} damaged messages since it started",
            "`bolide store verify DIR` on its store names them; check the disk, too.",
        )


def _percent(settings: Mapping[str, str], key: str, default: int) -> int:
    text = settings.get(key, "")
    return int(text) if _NUMBER.fullmatch(text) else default


def _compare_clocks(name: str, state: Mapping[str, str], now_ms: int) -> Finding:
    """Start time plus running time is the broker's idea of now."""
    running = _RUNTIME.search(state.get("runtime", ""))
    boot = state.get("bootTimestamp", "")
    if running is None or not _NUMBER.fullmatch(boot):
        return good("clock", f"{name} does not tell its time")
    days, hours, minutes, seconds = map(int, running.groups())
    running_ms = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000
    off_ms = int(boot) + running_ms - now_ms
    if abs(off_ms) > CLOCK_MS_MAX:
        text = f"the clock of {name} is {abs(off_ms) // 1000} s {'ahead of' if off_ms > 0 else 'behind'} this one"
        return doubtful("clock", text, "Let NTP set both: retention, delays and --since go by the clock.")
    return good("clock", f"{name} and this machine agree on the time")
