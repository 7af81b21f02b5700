"""Settings of a broker: the original's names, defaults and texts; mistakes are named."""

import dataclasses
import logging
from typing import Any

import pytest

from bolide.broker.config import PARTS, BrokerConfig
from bolide.broker.foreign_settings import FOREIGN
from bolide.model.errors import ConfigError
from bolide.model.setting import Number
from bolide.model.settings_table import SUGGESTIONS_MAX, SettingsError

SETTINGS = BrokerConfig.settings()


def test_the_defaults_are_the_original_s() -> None:
    settings = BrokerConfig().as_settings()
    assert settings["listenPort"] == "10911"
    assert settings["brokerClusterName"] == "DefaultCluster"
    assert settings["mappedFileSizeCommitLog"] == str(1024**3)
    assert settings["mappedFileSizeConsumeQueue"] == "6000000"
    assert settings["flushDiskType"] == "ASYNC_FLUSH"
    assert settings["maxMessageSize"] == "4194304"
    assert settings["autoCreateTopicEnable"] == "true"
    assert settings["flushIntervalCommitLog"] == "500"
    assert settings["syncFlushTimeout"] == "5000"
    assert settings["accessMessageInMemoryMaxRatio"] == "40"
    assert settings["maxTransferCountOnMessageInMemory"] == "32"
    assert settings["fileReservedTime"] == "72"
    assert settings["deleteWhen"] == "04"
    assert settings["diskMaxUsedSpaceRatio"] == "75"
    assert settings["diskSpaceCleanForciblyRatio"] == "85"
    assert settings["diskSpaceWarningLevelRatio"] == "90"
    assert settings["cleanFileForciblyEnable"] == "true"
    assert settings["cleanResourceInterval"] == "10000"
    assert settings["deleteCommitLogFilesInterval"] == "100"
    assert settings["deleteConsumeQueueFilesInterval"] == "100"
    assert settings["deleteFileBatchMax"] == "10"
    assert settings["redeleteHangedFileInterval"] == "120000"


def test_settings_survive_the_round_trip_through_text() -> None:
    config = BrokerConfig.from_settings(
        {"brokerName": "b", "listenPort": " 1234 ", "longPollingEnable": "FALSE", "brokerPermission": "4"}
    )
    assert (config.broker_name, config.port, config.long_polling, config.permission) == ("b", 1234, False, 4)
    assert BrokerConfig.from_settings(config.as_settings()) == config


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("listenPort", "x", "listenPort must be a whole number from 0 to 65535, not 'x'"),
        ("listenPort", "65536", "listenPort must be a whole number from 0 to 65535"),
        ("listenPort", "-1", "listenPort must be"),
        ("mappedFileSizeCommitLog", "10", "from 4096 to 2147483647"),
        ("mappedFileSizeConsumeQueue", "2147483648", "from 20 to 2147483647"),
        ("autoCreateTopicEnable", "yes", "true or false"),
        ("flushDiskType", "SOMETIMES", "ASYNC_FLUSH or SYNC_FLUSH"),
        ("brokerRole", "SLAVE", "ASYNC_MASTER"),
        ("maxMessageSize", "99999999999", "maxMessageSize must be"),
        ("deleteWhen", "4pm", "list of hours from 00 to 23 like 04 or 02;14, not '4pm'"),
        ("deleteWhen", "24", "list of hours"),
        ("deleteWhen", "", "list of hours"),
        ("fileReservedTime", "-1", "fileReservedTime must be"),
        ("diskMaxUsedSpaceRatio", "101", "diskMaxUsedSpaceRatio must be a whole number from 0 to 100"),
        ("deleteFileBatchMax", "0", "from 1 to"),
        ("brokerName", "a b", "blanks"),
        ("brokerName", "a" * 128, "128 characters; 127 are allowed"),
        ("namesrvAddr", "x:1\ny:2", "namesrvAddr must be text"),
        ("listenport", "1", "did you mean listenPort"),
        ("nonsense", "1", "unknown setting 'nonsense'"),
    ],
)
def test_a_mistake_is_named_with_its_key(key: str, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        BrokerConfig.from_settings({key: text})


def test_every_number_has_both_bounds_and_64_bits_at_most() -> None:
    numbers = [setting for _, setting in SETTINGS.values() if isinstance(setting, Number)]
    ints = [field for field in dataclasses.fields(BrokerConfig) if field.type in (int, "int")]
    assert len(numbers) == len(ints) > 20, "what is a number is bounded as one"
    for number in numbers:
        assert -(2**63) <= number.low <= number.high < 2**63


@pytest.mark.parametrize(
    "text", ["1" + "0" * 400, "9" * 20, "4" + "0" * 35, "-1" + "0" * 400, "1e400", "0x10", "1_0"]
)
@pytest.mark.parametrize("key", [key for key, (_, one) in SETTINGS.items() if isinstance(one, Number)])
def test_no_number_is_taken_that_has_more_than_64_bits_or_is_none(key: str, text: str) -> None:
    for make in (BrokerConfig.from_settings, BrokerConfig().changed):
        with pytest.raises(ConfigError, match=key):
            make({key: text})


@pytest.mark.parametrize("name", [name for name, one in SETTINGS.values() if isinstance(one, Number)])
@pytest.mark.parametrize("value", [10**400, -(10**400), 2**63, True, 1.0])
def test_the_bounds_hold_however_the_value_was_made(name: str, value: Any) -> None:
    with pytest.raises(ConfigError):
        dataclasses.replace(BrokerConfig(), **{name: value})


def test_no_interval_lets_background_work_sleep_for_longer_than_an_hour() -> None:
    for name, setting in SETTINGS.values():
        if isinstance(setting, Number) and name.endswith("_ms"):
            assert setting.high <= 3_600_000, setting.key


def test_no_settings_leave_a_pull_without_an_answer_or_make_it_a_giant_frame() -> None:
    bounds = {key: one.high for key, (_, one) in SETTINGS.items() if isinstance(one, Number)}
    assert bounds["shortPollingTimeMills"] < 30_000, "when clients give up"
    for where in ("Memory", "Disk"):
        assert bounds[f"maxTransferBytesOnMessageIn{where}"] <= 8 * 1024**2, "half a frame"
        assert bounds[f"maxTransferCountOnMessageIn{where}"] <= 32_768


def test_all_mistakes_are_named_at_once() -> None:
    given = {
        "listenPort": "x",
        "brokerRole": "SLAVE",
        "nonsense": "1",
        "brokerName": "b",
        "inSyncReplicas": "2",
    }
    with pytest.raises(SettingsError) as caught:
        BrokerConfig.from_settings(given)
    assert {problem.key for problem in caught.value.problems} == given.keys() - {"brokerName"}
    for word in ("listenPort", "SLAVE", "nonsense", "inSyncReplicas=2"):
        assert word in str(caught.value)


def test_what_the_original_has_by_default_is_taken_in_silence() -> None:
    """Goal: a file that spells the defaults out, as some do, is as good as an empty one."""
    for foreign in FOREIGN.values():
        for default in foreign.defaults:
            assert BrokerConfig.examine({foreign.key: f" {default.upper()} "}) == ({}, [], []), foreign.key


@pytest.mark.parametrize(
    ("key", "value", "meaning"),
    [
        ("haListenPort", "10999", "no replication here"),
        ("haListenPort", "1", "no replication here"),
        ("sendMessageThreadPoolNums", "128", "no thread pools"),
        ("timerWarmEnable", "true", "one loop files and delivers"),
        ("enableCalcFilterBitMap", "true", "asked of each message"),
        ("transientStorePoolEnable", "true", "in another way here"),
    ],
)
def test_what_does_nothing_here_is_warned_of_with_what_that_means(
    key: str, value: str, meaning: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert BrokerConfig.from_settings({key: value}) == BrokerConfig()
    assert f"{key}={value}" in caplog.text
    assert meaning in caplog.text


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        *((key, "2", "no replication here") for key in ("inSyncReplicas", "minInSyncReplicas", "brokerId")),
        ("brokerRole", "SYNC_MASTER", "no replication here"),
        ("brokerRole", "SLAVE", "no replication here"),
        ("enableControllerMode", "true", "no replication here"),
        ("enableDLegerCommitLog", "true", "no replication here"),
        ("allAckInSyncStateSet", "true", "no replication here"),
        ("aclEnable", "true", "access control"),
        ("authenticationEnabled", "true", "access control"),
        ("authorizationEnabled", "TRUE", "access control"),
        ("storeType", "defaultRocksDB", "would not be found"),
        ("mapedFileSizeConsumeQueue", "300000", "newer name"),
    ],
)
def test_what_would_cost_messages_or_safety_is_refused(key: str, value: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        BrokerConfig.from_settings({key: value})


@pytest.mark.parametrize(
    ("key", "suggestion"),
    [
        ("enableDLedgerCommitLog", "did you mean enableDLegerCommitLog?"),
        ("listenport", "did you mean listenPort?"),
        ("brokerPermision", "did you mean brokerPermission?"),
        ("myOwnIdea", ""),
        ("brokerColour", ""),
        ("x" * 500, ""),
    ],
)
def test_a_suggestion_is_made_only_where_it_is_plain(key: str, suggestion: str) -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.from_settings({key: "1"})
    assert str(caught.value).endswith(suggestion or f"unknown setting {key[:64]!r}")


@pytest.mark.parametrize("key", ["storePathCommitLog", "storePathConsumeQueue", "storePathIndex"])
def test_a_part_of_the_store_elsewhere_is_refused_rather_than_not_found(key: str) -> None:
    """A broker that ignored the key would start empty beside the messages of the original."""
    with pytest.raises(ConfigError, match=f"{key} must be /data/store/"):
        BrokerConfig.from_settings({"storePathRootDir": "/data/store", key: "/fast/disk"})


def test_paths_that_say_what_is_so_anyway_are_fine() -> None:
    paths = {
        "storePathCommitLog": "/data/store/commitlog/",
        "storePathConsumeQueue": "/data/store/consumequeue",
    }
    given = {"storePathRootDir": "/data/store", "storePathIndex": "/data/store/index", **paths}
    assert BrokerConfig.from_settings(given).root == "/data/store"


@pytest.mark.parametrize("key", ["brokerName", "brokerClusterName", "storePathRootDir"])
def test_names_are_not_empty(key: str) -> None:
    with pytest.raises(ConfigError, match=f"{key} is empty"):
        BrokerConfig.from_settings({key: " "})


def test_a_setting_is_ours_or_only_the_original_s() -> None:
    assert FOREIGN.keys().isdisjoint(SETTINGS.keys() | PARTS.keys())


def test_only_live_settings_change_while_the_broker_runs() -> None:
    config = BrokerConfig()
    assert config.changed({"brokerPermission": "4"}).permission == 4
    for key in ("listenPort", "storePathRootDir", "flushDiskType", "brokerName"):
        with pytest.raises(ConfigError, match=f"{key} cannot change while the broker runs"):
            config.changed({key: config.as_settings()[key]})


@pytest.mark.parametrize(
    ("key", "text", "taken"),
    [
        ("diskMaxUsedSpaceRatio", "5", 10),
        ("diskMaxUsedSpaceRatio", "99", 95),
        ("diskSpaceCleanForciblyRatio", "10", 30),
        ("diskSpaceCleanForciblyRatio", "99", 85),
        ("diskSpaceWarningLevelRatio", "10", 35),
        ("diskSpaceWarningLevelRatio", "97", 97),
    ],
)
def test_a_share_of_the_disk_outside_its_range_is_brought_to_the_border_and_said(
    key: str, text: str, taken: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert BrokerConfig.from_settings({key: text}).as_settings()[key] == str(taken)
    assert (f"taking {taken} instead of {text}" in caplog.text) == (str(taken) != text)


def test_how_long_messages_stay_may_change_while_the_broker_runs() -> None:
    changed = BrokerConfig().changed({"fileReservedTime": "1", "deleteWhen": "02;14"}).retention
    assert (changed.reserved_ms, changed.hours) == (3_600_000, frozenset({2, 14}))


def test_one_refused_change_refuses_all_of_them() -> None:
    config = BrokerConfig()
    for bad in ({"listenPort": "1"}, {"nonsense": "1"}, {"shortPollingTimeMills": "0"}):
        with pytest.raises(ConfigError):
            config.changed({"brokerPermission": "4", **bad})
    assert config.permission == 6


def test_every_setting_has_a_key_of_its_own() -> None:
    assert len(SETTINGS) == len(dataclasses.fields(BrokerConfig))


def test_a_refused_change_says_of_no_setting_that_it_was_taken(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        with pytest.raises(ConfigError):
            BrokerConfig().changed({"diskMaxUsedSpaceRatio": "99", "brokerPermission": "99"})
        assert caplog.text == ""
        BrokerConfig().changed({"diskMaxUsedSpaceRatio": "99"})
        assert "taking 95 instead of 99" in caplog.text


def test_a_file_full_of_unknown_settings_is_answered_at_once() -> None:
    """Each suggestion is a comparison with all settings; what a mistake looks like is plain after some."""
    found = BrokerConfig.examine({f"brokerNam{number}": "x" for number in range(5000)})
    assert len(found.problems) == 5000
    assert "did you mean brokerName" in found.problems[0].text
    assert sum("did you mean" in problem.text for problem in found.problems) <= SUGGESTIONS_MAX
