"""Settings of a broker: typed, with the original's names and defaults.

`BrokerConfig.from_settings` takes text under the keys of the original's `broker.conf`.  A key of the original that
has no effect here yet is accepted and named in a warning; an unknown key is an error that suggests what was meant.
Only settings marked `live` may change while the broker runs.
"""

import dataclasses
import difflib
import logging
import os
from collections.abc import Callable, Mapping
from typing import Any, Self, get_type_hints

from bolide.model.errors import ConfigError
from bolide.record.layout import CHECK_SEALED, CHECK_SUMS
from bolide.store.retention import HOUR_MS, RetentionSettings, parse_hours

log = logging.getLogger(__name__)

PARTS = {
    "storePathCommitLog": "commitlog",
    "storePathConsumeQueue": "consumequeue",
    "storePathIndex": "index",
}
"""Keys by which the original puts parts of a store elsewhere, and where they are under the root."""

HOURS_MAX = 24 * 365 * 100


def _setting(key: str, default: Any, *, live: bool = False, among: tuple[str, ...] = (),
             low: int | None = None, high: int | None = None,
             clamp: tuple[int, int] | None = None, check: Callable[[str], object] | None = None) -> Any:  # fmt: skip
    return dataclasses.field(
        default=default,
        metadata={
            **{"key": key, "live": live, "among": among, "low": low, "high": high},
            **{"clamp": clamp, "check": check},
        },
    )


def _percent(key: str, default: int, clamp: tuple[int, int]) -> Any:
    """A share of the disk.  What lies outside `clamp` is brought to its border, as the original does."""
    return _setting(key, default, live=True, low=0, high=100, clamp=clamp)


@dataclasses.dataclass(frozen=True)
class BrokerConfig:
    # ---- who we are
    cluster_name: str = _setting("brokerClusterName", "DefaultCluster", low=1)
    broker_name: str = _setting("brokerName", "broker-a", low=1)
    broker_id: int = _setting("brokerId", 0, low=0, clamp=(0, 0))
    role: str = _setting("brokerRole", "ASYNC_MASTER", among=("ASYNC_MASTER", "SYNC_MASTER"))
    nameservers: str = _setting("namesrvAddr", "")
    bind_host: str = _setting("bindAddress", "0.0.0.0")
    advertised_host: str = _setting("brokerIP1", "")
    port: int = _setting("listenPort", 10911, low=0, high=65535)
    # ---- topics and groups
    permission: int = _setting("brokerPermission", 6, live=True, low=0, high=6)
    auto_create_topic: bool = _setting("autoCreateTopicEnable", True, live=True)
    auto_create_group: bool = _setting("autoCreateSubscriptionGroup", True, live=True)
    register_period_ms: int = _setting("registerNameServerPeriod", 30_000, low=1)
    force_register: bool = _setting("forceRegister", True)
    compress_register: bool = _setting("compressedRegister", False)
    # ---- the store
    root: str = _setting("storePathRootDir", os.path.join("~", "store"), low=1)
    segment_bytes: int = _setting("mappedFileSizeCommitLog", 1024**3, low=4096)
    queue_file_bytes: int = _setting("mappedFileSizeConsumeQueue", 6_000_000, low=20)
    flush_disk_type: str = _setting("flushDiskType", "ASYNC_FLUSH", among=("ASYNC_FLUSH", "SYNC_FLUSH"))
    flush_interval_ms: int = _setting("flushIntervalCommitLog", 500, live=True, low=1)
    flush_pages_least: int = _setting("flushCommitLogLeastPages", 4, live=True, low=0)
    flush_thorough_ms: int = _setting("flushCommitLogThoroughInterval", 10_000, live=True, low=1)
    flush_queues_thorough_ms: int = _setting("flushConsumeQueueThoroughInterval", 60_000, live=True, low=1)
    sync_flush_timeout_ms: int = _setting("syncFlushTimeout", 5_000, live=True, low=1)
    persist_offsets_ms: int = _setting("flushConsumerOffsetInterval", 5_000, low=1)
    seal_records: bool = _setting("enabledAppendPropCRC", False)
    require_seals: bool = _setting("forceVerifyPropCRC", False)
    body_bytes_max: int = _setting("maxMessageSize", 4 * 1024 * 1024, low=1, high=15 * 1024 * 1024)
    # ---- how long messages stay (store/retention.py)
    reserved_hours: int = _setting("fileReservedTime", 72, live=True, low=0, high=HOURS_MAX)
    delete_when: str = _setting("deleteWhen", "04", live=True, check=parse_hours)
    disk_clean_percent: int = _percent("diskMaxUsedSpaceRatio", 75, (10, 95))
    disk_force_percent: int = _percent("diskSpaceCleanForciblyRatio", 85, (30, 85))
    # The original goes to 90 at most: its log meets a full disk while it is written, ours when a segment is reserved.
    disk_full_percent: int = _percent("diskSpaceWarningLevelRatio", 90, (35, 100))
    clean_forcibly: bool = _setting("cleanFileForciblyEnable", True, live=True)
    clean_interval_ms: int = _setting("cleanResourceInterval", 10_000, low=1)
    delete_segments_interval_ms: int = _setting("deleteCommitLogFilesInterval", 100, live=True, low=0)
    delete_queues_interval_ms: int = _setting("deleteConsumeQueueFilesInterval", 100, live=True, low=0)
    delete_batch_max: int = _setting("deleteFileBatchMax", 10, live=True, low=1)
    delete_again_ms: int = _setting("redeleteHangedFileInterval", 120_000, live=True, low=0)
    index_enabled: bool = _setting("messageIndexEnable", True)
    index_slots: int = _setting("maxHashSlotNum", 5_000_000, low=1, high=100_000_000)
    index_entries: int = _setting("maxIndexNum", 20_000_000, low=2, high=80_000_000)
    # ---- pulling
    long_polling: bool = _setting("longPollingEnable", True, live=True)
    short_polling_ms: int = _setting("shortPollingTimeMills", 1_000, live=True, low=1)
    memory_ratio: int = _setting("accessMessageInMemoryMaxRatio", 40, live=True, low=0, high=100)
    hot_count_max: int = _setting("maxTransferCountOnMessageInMemory", 32, live=True, low=1)
    hot_bytes_max: int = _setting("maxTransferBytesOnMessageInMemory", 262_144, live=True, low=1)
    cold_count_max: int = _setting("maxTransferCountOnMessageInDisk", 8, live=True, low=1)
    cold_bytes_max: int = _setting("maxTransferBytesOnMessageInDisk", 65_536, live=True, low=1)
    trace_on: bool = _setting("traceOn", True)
    region: str = _setting("regionId", "DefaultRegion")

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
        """From text; `ConfigError` says which key is wrong and how."""
        values: dict[str, Any] = {}
        without_effect: list[str] = []
        for key, text in settings.items():
            field = _FIELDS.get(key)
            if field is not None:
                values[field.name] = _read(field, text)
            elif key in WITHOUT_EFFECT:
                without_effect.append(key)
            else:
                raise ConfigError(_unknown(key))
        if without_effect:
            log.warning("settings without effect here: %s", ", ".join(sorted(without_effect)))
        config = cls(**values)
        _refuse_what_would_hurt(config, settings)
        return config

    def changed(self, settings: Mapping[str, str]) -> Self:
        """A copy with run-time changes; refuses all of them when one is refused."""
        values: dict[str, Any] = {}
        for key, text in settings.items():
            field = _FIELDS.get(key)
            if field is None:
                raise ConfigError(_unknown(key))
            if not field.metadata["live"]:
                raise ConfigError(f"{key} cannot change while the broker runs; set it and restart")
            values[field.name] = _read(field, text)
        return dataclasses.replace(self, **values)

    def as_settings(self) -> dict[str, str]:
        """All settings as text, under the original's keys."""
        return {key: _text(getattr(self, field.name)) for key, field in _FIELDS.items()}


WITHOUT_EFFECT = frozenset(
    {
        *("haListenPort", "brokerIP2", "destroyMapedFileIntervalForcibly"),
        *("defaultTopicQueueNums", "sendMessageThreadPoolNums", "pullMessageThreadPoolNums"),
        *("useReentrantLockWhenPutMessage", "waitTimeMillsInSendQueue", "mapedFileSizeCommitLog"),
        *("osPageCacheBusyTimeOutMills", "transientStorePoolEnable", "warmMapedFileEnable"),
        *("slaveReadEnable", "enablePropertyFilter", "messageDelayLevel", "timerWheelEnable"),
        *("traceTopicEnable", "msgTraceTopicName", "clusterTopicEnable", "brokerTopicEnable"),
        "checkCRCOnRecover",  # always
        *("rocketmqHome", "storePathCommitLog", "storePathConsumeQueue", "storePathIndex"),
        "transactionTimeOut",
        *("transactionCheckMax", "transactionCheckInterval", "rejectTransactionMessage"),
        *("fetchNamesrvAddrByAddressServer", "serverWorkerThreads", "serverSelectorThreads"),
        *("inSyncReplicas", "totalReplicas", "minInSyncReplicas", "enableControllerMode"),
        *("aclEnable", "autoDeleteUnusedStats", "disableConsumeIfConsumerReadSlowly"),
    }
)


def _read(field: "dataclasses.Field[Any]", text: str) -> Any:
    key, among = field.metadata["key"], field.metadata["among"]
    low, high = field.metadata["low"], field.metadata["high"]
    kind = _TYPES[field.name]
    text = text.strip()
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise ConfigError(f"{key} is true or false, not {text!r}")
        return text.lower() == "true"
    if kind is int:
        try:
            number = int(text)
        except ValueError:
            raise ConfigError(f"{key} is a whole number, not {text!r}") from None
        if (low is not None and number < low) or (high is not None and number > high):
            limits = f"at least {low}" if high is None else f"from {low} to {high}"
            raise ConfigError(f"{key} must be {limits}, not {number}")
        return _clamped(key, number, field.metadata["clamp"])
    if low is not None and len(text) < low:
        raise ConfigError(f"{key} is empty")
    if among and text not in among:
        raise ConfigError(f"{key} is one of {', '.join(among)}, not {text!r}")
    if field.metadata["check"] is not None:
        field.metadata["check"](text)
    return text


def _refuse_what_would_hurt(config: BrokerConfig, settings: Mapping[str, str]) -> None:
    """Keys whose neglect is worse than no start: an open broker, or an empty one beside the messages."""
    for key, part in PARTS.items():
        place = os.path.join(config.root, part)
        given = settings.get(key, place)
        if os.path.normpath(os.path.expanduser(given)) != os.path.normpath(os.path.expanduser(place)):
            raise ConfigError(
                f"{key} must be {place}, not {given!r}: a store is one directory here; move or link it there"
            )
    if config.role == "SYNC_MASTER":
        log.warning("brokerRole=SYNC_MASTER: there are no slaves here; this broker alone acknowledges")
    if settings.get("aclEnable", "").strip().lower() == "true":
        raise ConfigError(
            "aclEnable=true: there is no access control here yet, everybody could send and read;"
            " leave it out to accept that"
        )


def _clamped(key: str, number: int, clamp: tuple[int, int] | None) -> int:
    if clamp is None or clamp[0] <= number <= clamp[1]:
        return number
    nearest = clamp[0] if number < clamp[0] else clamp[1]
    if clamp[0] == clamp[1]:
        log.warning("%s is always %d here: taking it instead of %d", key, nearest, number)
    else:
        log.warning("%s is from %d to %d: taking %d instead of %d", key, *clamp, nearest, number)
    return nearest


def _unknown(key: str) -> str:
    close = difflib.get_close_matches(key, [*_FIELDS, *WITHOUT_EFFECT], n=3)
    hint = f"; did you mean {' or '.join(close)}?" if close else ""
    return f"unknown setting {key!r}{hint}"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_TYPES = get_type_hints(BrokerConfig)
_FIELDS = {field.metadata["key"]: field for field in dataclasses.fields(BrokerConfig)}
