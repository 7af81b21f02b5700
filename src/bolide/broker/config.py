"""Settings of a broker: typed, with the original's names and defaults.

`BrokerConfig.from_settings` takes text under the keys of the original's `broker.conf`, and names everything that is
wrong with it at once.  What the original has and this broker has not stands in `foreign_settings.py`; a key that
nobody knows is an error.  Only settings marked `live` may change while the broker runs.

The bounds hold for every `BrokerConfig`, however it was made: background work sleeps for these intervals, and answers
become as large as these sizes.
"""

import dataclasses
import difflib
import logging
import os
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple, Self

from bolide.broker.foreign_settings import FOREIGN, Foreign
from bolide.broker.setting import Setting, choice, flag, number, settings_of, text
from bolide.model.errors import ConfigError
from bolide.model.limits import HOLD_MS_MAX, PULL_BYTES_MAX, PULL_COUNT_MAX
from bolide.record.layout import CHECK_SEALED, CHECK_SUMS
from bolide.store.retention import HOUR_MS, RetentionSettings, parse_hours

log = logging.getLogger(__name__)

PARTS = {
    "storePathCommitLog": "commitlog",
    "storePathConsumeQueue": "consumequeue",
    "storePathIndex": "index",
}
"""Keys by which the original puts parts of a store elsewhere, and where they are under the root."""

MINUTE_MS = 60_000
HOURS_MAX = 24 * 365 * 100

NAME_LENGTHS = (1, 127)
NOT_IN_NAMES = frozenset("/\\@;: ")
"""Names of clusters and brokers become those of topics, of folders, and words in registrations."""

NO_REPLICAS = (
    ": there is no replication here, no broker follows another, and messages are on this broker's disk alone"
)


def check_name(name: str) -> None:
    """Whether a cluster or a broker can be called so."""
    if not NOT_IN_NAMES.isdisjoint(name):
        raise ConfigError(f"{name[:64]!r} cannot be a name: blanks and / \\ @ ; : are not possible")


class Finding(NamedTuple):
    """Something about one setting that its author should know."""

    key: str
    text: str


class SettingsError(ConfigError):
    """Settings with which no broker starts; all that is wrong with them."""

    def __init__(self, problems: Iterable[Finding]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problem.text for problem in self.problems))


class Examined(NamedTuple):
    """What some settings come to."""

    values: dict[str, Any]
    problems: list[Finding]
    warnings: list[Finding]


def _percent(key: str, default: int, taken: tuple[int, int], about: str) -> Any:
    return number(key, default, 0, 100, about, live=True, taken=taken)


@dataclasses.dataclass(frozen=True)
class BrokerConfig:
    # fmt: off
    # ---- who we are
    cluster_name: str = text(
        "brokerClusterName", "DefaultCluster", "the cluster that it belongs to", length=NAME_LENGTHS, more=check_name)
    broker_name: str = text(
        "brokerName", "broker-a", "its name, which no other broker of the cluster has", length=NAME_LENGTHS,
        more=check_name)
    broker_id: int = number("brokerId", 0, 0, 0, "its number among the brokers of its name", hint=NO_REPLICAS)
    role: str = choice(
        "brokerRole", ("ASYNC_MASTER",), "what it is to other brokers of its name",
        hint=f"{NO_REPLICAS}. ASYNC_MASTER accepts that")
    nameservers: str = text("namesrvAddr", "", "name servers to register with, host:port, with ; between them")
    bind_host: str = text("bindAddress", "0.0.0.0", "the address to listen on", length=(0, 255))
    advertised_host: str = text(
        "brokerIP1", "", "the address that clients are told; this machine's own one if it is empty", length=(0, 255))
    port: int = number(
        "listenPort", 10911, 0, 65535, "the port to listen on; clients of 4.4 and older use the one two below")
    # ---- topics and groups
    permission: int = number(
        "brokerPermission", 6, 0, 6, "what its topics permit at most: 4 to read, 2 to write, 6 both", live=True)
    auto_create_topic: bool = flag(
        "autoCreateTopicEnable", True, "whether a message to an unknown topic makes the topic", live=True)
    auto_create_group: bool = flag(
        "autoCreateSubscriptionGroup", True, "whether a consumer of an unknown group makes the group", live=True)
    register_period_ms: int = number(
        "registerNameServerPeriod", 30_000, 1, 60 * MINUTE_MS, "milliseconds between two registrations",
        taken=(10_000, 60_000))
    force_register: bool = flag(
        "forceRegister", True, "whether it registers every time, without asking first if anything is new")
    compress_register: bool = flag("compressedRegister", False, "whether registrations are compressed")
    # ---- the store
    root: str = text(
        "storePathRootDir", os.path.join("~", "store"), "the directory of the store", length=(1, 4096))
    segment_bytes: int = number(
        "mappedFileSizeCommitLog", 1024**3, 4096, 2**31 - 1, "bytes of a segment of the log; never more in one file")
    queue_file_bytes: int = number(
        "mappedFileSizeConsumeQueue", 6_000_000, 20, 2_000_000_000, "bytes of a queue file, 20 for each message")
    flush_disk_type: str = choice(
        "flushDiskType", ("ASYNC_FLUSH", "SYNC_FLUSH"), "whether a send is acknowledged when its message is synced"
        " (SYNC_FLUSH), or when it is written")
    flush_interval_ms: int = number(
        "flushIntervalCommitLog", 500, 1, 10 * MINUTE_MS, "milliseconds between two looks whether to sync the log",
        live=True)
    flush_pages_least: int = number(
        "flushCommitLogLeastPages", 4, 0, 1_000_000, "pages of 4 KiB that are worth a sync", live=True)
    flush_thorough_ms: int = number(
        "flushCommitLogThoroughInterval", 10_000, 1, 60 * MINUTE_MS,
        "milliseconds after which fewer pages are worth one too", live=True)
    flush_queues_thorough_ms: int = number(
        "flushConsumeQueueThoroughInterval", 60_000, 1, 60 * MINUTE_MS, "milliseconds between two checkpoints",
        live=True)
    sync_flush_timeout_ms: int = number(
        "syncFlushTimeout", 5_000, 1, 10 * MINUTE_MS, "milliseconds after which a sender hears that a sync takes long",
        live=True)
    persist_offsets_ms: int = number(
        "flushConsumerOffsetInterval", 5_000, 1, 10 * MINUTE_MS,
        "milliseconds until the progress of groups is in its file")
    seal_records: bool = flag(
        "enabledAppendPropCRC", False, "whether a record carries a checksum of all of it, not only of its body")
    require_seals: bool = flag(
        "forceVerifyPropCRC", False, "whether records without such a checksum are passed over")
    body_bytes_max: int = number(
        "maxMessageSize", 4 * 1024**2, 1, 15 * 1024**2, "bytes of a message's body; larger ones are refused")
    # ---- how long messages stay (store/retention.py)
    reserved_hours: int = number(
        "fileReservedTime", 72, 0, HOURS_MAX, "hours that messages stay at least, while there is room", live=True)
    delete_when: str = text(
        "deleteWhen", "04", "hours of the day at which older ones are deleted, with ; between them", live=True,
        length=(0, 255), more=parse_hours)
    disk_clean_percent: int = _percent(
        "diskMaxUsedSpaceRatio", 75, (10, 95), "how full the disk may be before older ones go at any hour, in percent")
    disk_force_percent: int = _percent(
        "diskSpaceCleanForciblyRatio", 85, (30, 85), "how full before the oldest go whatever their age")
    # The original goes to 90 at most: its log meets a full disk while it is written, ours when a segment is reserved.
    disk_full_percent: int = _percent(
        "diskSpaceWarningLevelRatio", 90, (35, 100), "how full before no more messages are taken")
    clean_forcibly: bool = flag(
        "cleanFileForciblyEnable", True, "whether messages may go before their time when the disk is too full",
        live=True)
    clean_interval_ms: int = number(
        "cleanResourceInterval", 10_000, 1, 60 * MINUTE_MS, "milliseconds between two looks for what has expired")
    delete_segments_interval_ms: int = number(
        "deleteCommitLogFilesInterval", 100, 0, MINUTE_MS, "milliseconds between two deleted segments", live=True)
    delete_queues_interval_ms: int = number(
        "deleteConsumeQueueFilesInterval", 100, 0, MINUTE_MS, "milliseconds between two deleted queue files",
        live=True)
    delete_batch_max: int = number(
        "deleteFileBatchMax", 10, 1, 10_000, "segments that are deleted at one time", live=True)
    delete_again_ms: int = number(
        "redeleteHangedFileInterval", 120_000, 0, 60 * MINUTE_MS,
        "milliseconds until a segment that could not be deleted is tried again", live=True)
    index_enabled: bool = flag("messageIndexEnable", True, "whether messages can be found by their keys")
    index_slots: int = number("maxHashSlotNum", 5_000_000, 1, 100_000_000, "slots of an index file")
    index_entries: int = number("maxIndexNum", 20_000_000, 2, 80_000_000, "keys in an index file")
    # ---- pulling
    long_polling: bool = flag(
        "longPollingEnable", True, "whether a pull waits for messages as long as its client asks for", live=True)
    short_polling_ms: int = number(
        "shortPollingTimeMills", 1_000, 1, int(HOLD_MS_MAX), "milliseconds that it waits otherwise", live=True)
    memory_ratio: int = number(
        "accessMessageInMemoryMaxRatio", 40, 0, 100,
        "how much of the machine's memory the newest messages count as being in, in percent", live=True)
    hot_count_max: int = number(
        "maxTransferCountOnMessageInMemory", 32, 1, int(PULL_COUNT_MAX), "messages in one pull of such", live=True)
    hot_bytes_max: int = number(
        "maxTransferBytesOnMessageInMemory", 262_144, 1, int(PULL_BYTES_MAX), "bytes in one pull of such", live=True)
    cold_count_max: int = number(
        "maxTransferCountOnMessageInDisk", 8, 1, int(PULL_COUNT_MAX), "messages in one pull of older ones", live=True)
    cold_bytes_max: int = number(
        "maxTransferBytesOnMessageInDisk", 65_536, 1, int(PULL_BYTES_MAX), "bytes in one pull of older ones",
        live=True)
    trace_on: bool = flag("traceOn", True, "what producers are told of tracing")
    region: str = text("regionId", "DefaultRegion", "the region that messages and answers name", length=(0, 255))
    # fmt: on

    def __post_init__(self) -> None:
        for name, setting in SETTINGS.values():
            setting.check(getattr(self, name))

    @property
    def retention(self) -> RetentionSettings:
        return RetentionSettings(
            reserved_ms=self.reserved_hours * HOUR_MS,
            hours=parse_hours(self.delete_when),
            clean_percent=self.disk_clean_percent,
            force_percent=self.disk_force_percent,
            full_percent=self.disk_full_percent,
            may_force=self.clean_forcibly,
            batch_max=self.delete_batch_max,
        )

    @property
    def check_on_read(self) -> int:
        """What of a record must be right before it is handed out, see `record/layout.py`."""
        return CHECK_SEALED if self.require_seals else CHECK_SUMS

    @property
    def writable(self) -> bool:
        return bool(self.permission & 2)

    @property
    def readable(self) -> bool:
        return bool(self.permission & 4)

    @classmethod
    def from_settings(cls, settings: Mapping[str, str]) -> Self:
        """From text; `SettingsError` says which keys are wrong and how.  What has no effect is said in the log."""
        values, problems, warnings = examine(settings)
        if problems:
            raise SettingsError(problems)
        for warning in warnings:
            log.warning("%s", warning.text)
        return cls(**values)

    def changed(self, settings: Mapping[str, str]) -> Self:
        """A copy with run-time changes; refuses all of them when one is refused."""
        values: dict[str, Any] = {}
        said: list[str] = []
        for key, given in settings.items():
            if key not in SETTINGS:
                raise ConfigError(_unknown(key, [key for key, (_, one) in SETTINGS.items() if one.live]))
            name, setting = SETTINGS[key]
            if not setting.live:
                raise ConfigError(f"{key} cannot change while the broker runs; set it and restart")
            values[name], why = setting.bring(setting.read(given))
            said += [why] if why else []
        changed = dataclasses.replace(self, **values)
        for why in said:  # of what was taken, so only when nothing was refused
            log.warning("%s", why)
        return changed

    def as_settings(self) -> dict[str, str]:
        """All settings as text, under the original's keys."""
        return {key: _text(getattr(self, name)) for key, (name, _) in SETTINGS.items()}


SETTINGS: dict[str, tuple[str, Setting]] = settings_of(BrokerConfig)
"""Every setting by its key, with the name of its field."""


def examine(settings: Mapping[str, str]) -> Examined:
    """What some settings come to, and all that is to be said of them."""
    found = Examined({}, [], [])
    for key, given in settings.items():
        if key in SETTINGS:
            _read(key, given, found)
        elif key in FOREIGN:
            _hear(key, given, FOREIGN[key], found)
        elif key not in PARTS:
            found.problems.append(Finding(key, _unknown(key, [*SETTINGS, *FOREIGN, *PARTS])))
    found.problems.extend(_parts_elsewhere(settings, found.values.get("root", BrokerConfig.root)))
    return found


def _read(key: str, given: str, found: Examined) -> None:
    name, setting = SETTINGS[key]
    try:
        found.values[name], why = setting.bring(setting.read(given))
    except ConfigError as error:
        found.problems.append(Finding(key, str(error)))
    else:
        found.warnings.extend([Finding(key, why)] if why else [])


def _hear(key: str, given: str, foreign: Foreign, found: Examined) -> None:
    """A setting of the original's: one that says what is so there by default says nothing."""
    if foreign.is_default(given):
        return
    shown = given.strip()[:64]
    heard = Finding(key, f"{key}={shown if shown.isprintable() else repr(shown)}: {foreign.means}")
    (found.problems if foreign.refused else found.warnings).append(heard)


def _parts_elsewhere(settings: Mapping[str, str], root: str) -> Iterable[Finding]:
    """A broker that ignored them would start empty beside the messages of the original."""
    for key, part in PARTS.items():
        place = os.path.join(root, part)
        given = settings.get(key, place)
        if os.path.normpath(os.path.expanduser(given)) != os.path.normpath(os.path.expanduser(place)):
            why = f"{key} must be {place}, not {given[:255]!r}: a store is one directory here; move or link it there"
            yield Finding(key, why)


def _unknown(key: str, known: Collection[str]) -> str:
    """Suggests what was meant where that is plain: the same letters, or nearly all of them."""
    by_letters = {one.lower(): one for one in known}
    letters = key[:64].lower()
    close = (
        [letters]
        if letters in by_letters
        else difflib.get_close_matches(letters, by_letters, n=2, cutoff=0.85)
    )
    hint = f"; did you mean {' or '.join(by_letters[one] for one in close)}?" if close else ""
    return f"unknown setting {key[:64]!r}{hint}"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
