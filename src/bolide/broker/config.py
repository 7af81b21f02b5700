"""Settings of a broker: typed, with the original's names and defaults.

How they are read, checked and changed is that of every server's table (`model/settings_table.py`).  What the original
has and this broker has not stands in `foreign_settings.py`.
"""

import dataclasses
import os
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from bolide.broker.foreign_settings import FOREIGN
from bolide.model.addresses import check_addresses, check_host
from bolide.model.delay_levels import DEFAULT_LEVELS, DelayLevels
from bolide.model.errors import ConfigError
from bolide.model.limits import HOLD_MS_MAX, PULL_BYTES_MAX, PULL_COUNT_MAX, TOPIC_QUEUES_MAX
from bolide.model.names import check_topic
from bolide.model.setting import choice, flag, number, text
from bolide.model.settings_table import Examined, Finding, SettingsTable
from bolide.record.layout import CHECK_SEALED, CHECK_SUMS
from bolide.store.retention import HOUR_MS, RetentionSettings, parse_hours

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


def _percent(key: str, default: int, taken: tuple[int, int], about: str) -> Any:
    return number(key, default, 0, 100, about, live=True, taken=taken)


def _patience(key: str, default: int, what: str) -> Any:
    return number(
        key, default, 1, 60 * MINUTE_MS, f"milliseconds that {what} may wait for its turn", live=True
    )


@dataclasses.dataclass(frozen=True)
class BrokerConfig(SettingsTable):
    SERVER = "broker"
    FOREIGN = FOREIGN

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
    nameservers: str = text(
        "namesrvAddr", "", "name servers to register with, host:port, with ; between them",
        more=partial(check_addresses, "namesrvAddr"))
    bind_host: str = text(
        "bindAddress", "0.0.0.0", "the address to listen on", length=(0, 255), more=partial(check_host, "bindAddress"))
    advertised_host: str = text(
        "brokerIP1", "", "the address that clients are told; this machine's own one if it is empty", length=(0, 255),
        more=partial(check_host, "brokerIP1"))
    port: int = number(
        "listenPort", 10911, 0, 65535, "the port to listen on; clients of 4.4 and older use the one two below")
    # ---- topics and groups
    permission: int = number(
        "brokerPermission", 6, 0, 6, "what its topics permit at most: 4 to read, 2 to write, 6 both", live=True)
    auto_create_topic: bool = flag(
        "autoCreateTopicEnable", True, "whether a message to an unknown topic makes the topic", live=True)
    auto_create_group: bool = flag(
        "autoCreateSubscriptionGroup", True, "whether a consumer of an unknown group makes the group", live=True)
    server_side_reset: bool = flag(
        "useServerSideResetOffset", True, "whether the broker itself lets a group go on elsewhere (5.x), or tells its"
        " members to (4.x), which has to be online then", live=True)
    default_topic_queues: int = number(
        "defaultTopicQueueNums", 8, 1, int(TOPIC_QUEUES_MAX), "queues of TBW102, and of a topic made after it at most")
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
        "mappedFileSizeConsumeQueue", 6_000_000, 20, 2**31 - 1, "bytes of a queue file, 20 for each message")
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
    store_replies: bool = flag(
        "storeReplyMessageEnable", True, "whether replies to requests are stored, beside being handed over", live=True)
    # ---- messages that wait
    delay_level_texts: str = text(
        "messageDelayLevel", str(DEFAULT_LEVELS), "how long messages of each delay level wait, the first being level 1",
        length=(1, 2048), more=DelayLevels.parse)
    persist_delays_ms: int = number(
        "flushDelayOffsetInterval", 10_000, 1, 10 * MINUTE_MS,
        "milliseconds until it is in its file how far delayed messages were delivered")
    # ---- transactions
    reject_half: bool = flag(
        "rejectTransactionMessage", False, "whether half messages are refused", live=True)
    transaction_timeout_ms: int = number(
        "transactionTimeOut", 6_000, 0, 60 * MINUTE_MS,
        "milliseconds that a producer has to end a transaction before its group is asked", live=True)
    transaction_check_interval_ms: int = number(
        "transactionCheckInterval", 30_000, 10, 60 * MINUTE_MS,
        "milliseconds between two times that producers are asked", live=True)
    transaction_checks_max: int = number(
        "transactionCheckMax", 15, 0, 1_000_000,
        "how often a group is asked before its half message is moved to TRANS_CHECK_MAX_TIME_TOPIC", live=True)
    # ---- pulling
    property_filter: bool = flag(
        "enablePropertyFilter", True, "whether groups may say by an SQL expression which messages they want", live=True)
    dead_filters_kept: int = number(
        "filterDataCleanTimeSpan", 24 * HOUR_MS, 0, 2**53,
        "milliseconds that an SQL subscription stays in consumerFilter.json after its group has gone", live=True)
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
    # ---- timed messages
    timer_enabled: bool = flag(
        "timerWheelEnable", True, "whether messages may say at which time they are to be delivered", live=True)
    timer_delay_s_max: int = number(
        "timerMaxDelaySec", 259_200, 1, 3_650 * 86_400, "seconds that a message may ask to wait at most", live=True)
    timer_step_ms: int = number(
        "timerPrecisionMs", 1_000, 10, 1_000,
        "milliseconds of a slot in the timer's files; messages are delivered to the millisecond all the same")
    timer_roll_steps: int = number(
        "timerRollWindowSlot", 172_800, 2, 7 * 86_400 - 60,
        "slots after which a message that waits longer is written to the log again, so that it does not expire")
    timer_file_bytes: int = number(
        "mappedFileSizeTimerLog", 104_857_600, 520, 2**31 - 1, "bytes of a file of the timer's, 52 for each message")
    timer_flush_ms: int = number(
        "timerFlushIntervalMs", 1_000, 1, 60 * MINUTE_MS, "milliseconds between two writes of the timer's files")
    timer_slot_messages_max: int = number(
        "timerCongestNumEachSlot", 2**31 - 1, 1, 2**31 - 1, "messages that may be due in one slot", live=True)
    timer_delete_key_has_topic: bool = flag(
        "appendTopicForTimerDeleteKey", False, "whether the record of a recall names the topic with the key, for a "
        "broker of the original that goes on with the store", live=True)
    recall_enabled: bool = flag(
        "recallMessageEnable", False, "whether producers may recall timed messages", live=True)
    overflow_to_first: bool = flag(
        "overflowToFirstOffset", False,
        "whether a pull beyond the end of a queue that has its first message goes on there, as up to 4.9.3", live=True)
    slave_read: bool = flag(
        "slaveReadEnable", False,
        "whether groups that are further behind than memory are told to ask another broker of this name", live=True)
    disable_slow_groups: bool = flag(
        "disableConsumeIfConsumerReadSlowly", False, "whether groups that are too far behind may not consume any more",
        live=True)
    slow_group_bytes: int = number(
        "consumerFallbehindThreshold", 16 * 1024**3, 0, 2**53, "how many bytes of the log are too far", live=True)
    # ---- under pressure
    fails_fast: bool = flag(
        "brokerFastFailureEnable", True, "whether a request that has waited too long for its turn is refused as busy",
        live=True)
    send_patience_ms: int = _patience("waitTimeMillsInSendQueue", 200, "a send")
    pull_patience_ms: int = _patience("waitTimeMillsInPullQueue", 5_000, "a pull")
    lite_pull_patience_ms: int = _patience("waitTimeMillsInLitePullQueue", 5_000, "a pull of a lite consumer")
    heartbeat_patience_ms: int = _patience("waitTimeMillsInHeartbeatQueue", 31_000, "a heartbeat")
    transaction_patience_ms: int = _patience("waitTimeMillsInTransactionQueue", 3_000, "the end of a transaction")
    admin_patience_ms: int = _patience("waitTimeMillsInAdminBrokerQueue", 5_000, "a request of an admin tool")
    # ---- tracing
    trace_on: bool = flag("traceOn", True, "what producers are told of tracing")
    trace_topic_made: bool = flag(
        "traceTopicEnable", False, "whether there is a topic for traces from the start")
    trace_topic: str = text(
        "msgTraceTopicName", "RMQ_SYS_TRACE_TOPIC", "the name of that topic", length=(1, 127), more=check_topic)
    region: str = text("regionId", "DefaultRegion", "the region that messages and answers name", length=(0, 255))
    # fmt: on

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
    def delay_levels(self) -> DelayLevels:
        return DelayLevels.parse(self.delay_level_texts)

    @property
    def writable(self) -> bool:
        return bool(self.permission & 2)

    @property
    def readable(self) -> bool:
        return bool(self.permission & 4)

    @classmethod
    def examine(cls, settings: Mapping[str, str]) -> Examined:
        found = cls._examine(settings, PARTS)
        found.problems.extend(_parts_elsewhere(settings, found.values.get("root", cls.root)))
        return found


def _parts_elsewhere(settings: Mapping[str, str], root: str) -> Iterable[Finding]:
    """A broker that ignored them would start empty beside the messages of the original."""
    for key, part in PARTS.items():
        place = os.path.join(root, part)
        given = settings.get(key, place)
        if os.path.normpath(os.path.expanduser(given)) != os.path.normpath(os.path.expanduser(place)):
            why = f"{key} must be {place}, not {given[:255]!r}: a store is one directory here; move or link it there"
            yield Finding(key, why)
