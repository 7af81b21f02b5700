"""Settings of a name server, by the original's keys."""

import dataclasses

import pytest

from bolide.model.errors import ConfigError
from bolide.model.settings_table import SettingsError
from bolide.nameserver.config import NameServerConfig


def test_keys_of_the_original_are_accepted() -> None:
    config = NameServerConfig.from_settings(
        {
            "listenPort": "9877",
            "bindAddress": "127.0.0.1",
            "kvConfigPath": "/data/kv.json",
            "orderMessageEnable": "TRUE",
            "deleteTopicWithBrokerRegistration": "true",
            "returnOrderTopicConfigToBroker": "false",
        }
    )
    assert (config.host, config.port, config.kv_config_path) == ("127.0.0.1", 9877, "/data/kv.json")
    assert (config.order_message_enable, config.forget_absent_topics) == (True, True)
    assert config.return_order_topics is False


def test_what_is_shown_can_be_read_again() -> None:
    config = NameServerConfig(port=1, order_message_enable=True, kv_config_path="x")
    assert NameServerConfig.from_settings(config.as_settings()) == config
    assert NameServerConfig.from_settings(NameServerConfig().as_settings()) == NameServerConfig()


def test_keys_without_effect_are_accepted_and_reported(caplog: pytest.LogCaptureFixture) -> None:
    settings = {"serverWorkerThreads": "8", "enableControllerInNamesrv": "false"}
    assert NameServerConfig.from_settings(settings) == NameServerConfig()
    assert "serverWorkerThreads" in caplog.text


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("listenport", "1", "listenPort"),
        ("colour", "red", "colour"),
        ("listenPort", "many", "0 to 65535"),
        ("listenPort", "65536", "0 to 65535"),
        ("orderMessageEnable", "1", "true or false"),
        ("enableControllerInNamesrv", "true", "not available"),
    ],
)
def test_what_cannot_be_meant_is_an_error_that_helps(key: str, value: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        NameServerConfig.from_settings({key: value})


def test_all_that_is_wrong_is_said_at_once() -> None:
    given = {"listenPort": "many", "colour": "red", "clusterTest": "true", "kvConfigPath": "x" * 5_000}
    with pytest.raises(SettingsError) as caught:
        NameServerConfig.from_settings(given)
    assert [problem.key for problem in caught.value.problems] == [*given]


def test_the_bounds_hold_for_a_table_made_by_hand_too() -> None:
    for wrong in ({"port": 65_536}, {"scan_interval_ms": 0}, {"host": "h" * 256}, {"enable_topic_list": 1}):
        with pytest.raises(ConfigError):
            NameServerConfig(**wrong)
    with pytest.raises(dataclasses.FrozenInstanceError):
        NameServerConfig().port = 1  # type: ignore[misc]


def test_one_refused_change_refuses_all_of_them() -> None:
    config = NameServerConfig()
    for refused in ({"listenPort": "1"}, {"colour": "red"}, {"waitSecondsForService": "-1"}):
        with pytest.raises(ConfigError):
            config.changed({"orderMessageEnable": "true", **refused})
    assert config.changed({"orderMessageEnable": "true"}).order_message_enable
