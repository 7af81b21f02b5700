"""Settings of a broker: the original's names, defaults and texts; mistakes are named."""

import dataclasses
import logging

import pytest

from bolide.broker.config import WITHOUT_EFFECT, BrokerConfig
from bolide.model.errors import ConfigError


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
        ("listenPort", "x", "listenPort is a whole number, not 'x'"),
        ("listenPort", "65536", "listenPort must be from 0 to 65535"),
        ("listenPort", "-1", "listenPort must be"),
        ("mappedFileSizeCommitLog", "10", "at least 4096"),
        ("autoCreateTopicEnable", "yes", "true or false"),
        ("flushDiskType", "SOMETIMES", "ASYNC_FLUSH, SYNC_FLUSH"),
        ("brokerRole", "SLAVE", "ASYNC_MASTER"),
        ("maxMessageSize", "99999999999", "maxMessageSize must be"),
        ("deleteWhen", "4pm", "list of hours from 00 to 23 like 04 or 02;14, not '4pm'"),
        ("deleteWhen", "24", "list of hours"),
        ("deleteWhen", "", "list of hours"),
        ("fileReservedTime", "-1", "fileReservedTime must be"),
        ("diskMaxUsedSpaceRatio", "101", "diskMaxUsedSpaceRatio must be from 0 to 100"),
        ("deleteFileBatchMax", "0", "at least 1"),
        ("listenport", "1", "did you mean listenPort"),
        ("nonsense", "1", "unknown setting 'nonsense'"),
    ],
)
def test_a_mistake_is_named_with_its_key(key: str, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        BrokerConfig.from_settings({key: text})


def test_keys_of_the_original_without_effect_are_accepted_and_named(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        BrokerConfig.from_settings({"inSyncReplicas": "1", "haListenPort": "10912", "brokerName": "b"})
    assert "settings without effect here: haListenPort, inSyncReplicas" in caplog.text


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


def test_access_control_is_never_left_out_silently() -> None:
    with pytest.raises(ConfigError, match="aclEnable"):
        BrokerConfig.from_settings({"aclEnable": "true"})
    assert BrokerConfig.from_settings({"aclEnable": "false"}) == BrokerConfig()


def test_a_master_has_the_number_0_whatever_the_file_says(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert BrokerConfig.from_settings({"brokerId": "3"}).broker_id == 0
    assert "brokerId" in caplog.text


def test_a_master_that_is_to_wait_for_slaves_says_that_there_are_none(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        BrokerConfig.from_settings({"brokerRole": "SYNC_MASTER"})
    assert "there are no slaves here" in caplog.text


@pytest.mark.parametrize("key", ["brokerName", "brokerClusterName", "storePathRootDir"])
def test_names_are_not_empty(key: str) -> None:
    with pytest.raises(ConfigError, match=f"{key} is empty"):
        BrokerConfig.from_settings({key: " "})


def test_what_has_effect_is_not_listed_as_without() -> None:
    assert WITHOUT_EFFECT.isdisjoint(BrokerConfig().as_settings())


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
    keys = [field.metadata["key"] for field in dataclasses.fields(BrokerConfig)]
    assert len(set(keys)) == len(keys)
