"""Settings of a name server, under the original's key names, and which of them may change while it runs.

A key that nobody knows is an error that names its nearest relatives.  Keys of the original that have no meaning
here (sizes of thread pools, Netty's buffers) are accepted at start, so that an existing file works, and reported.
"""

import dataclasses
import difflib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bolide.model.errors import ConfigError, PermissionDenied, RequestError

log = logging.getLogger(__name__)

WITHOUT_EFFECT = frozenset(
    {
        *("rocketmqHome", "configStorePath", "configBlackList", "productEnvName"),
        *("clientRequestThreadPoolNums", "defaultThreadPoolNums", "clientRequestThreadPoolQueueCapacity"),
        *("defaultThreadPoolQueueCapacity", "unRegisterBrokerQueueCapacity", "notifyMinBrokerIdChanged"),
        *("serverWorkerThreads", "serverCallbackExecutorThreads", "serverSelectorThreads"),
        *("serverOnewaySemaphoreValue", "serverAsyncSemaphoreValue", "serverChannelMaxIdleTimeSeconds"),
        *("serverSocketSndBufSize", "serverSocketRcvBufSize", "writeBufferHighWaterMark"),
        *("writeBufferLowWaterMark", "serverSocketBacklog", "serverNettyWorkerGroupEnable"),
        *("serverPooledByteBufAllocatorEnable", "enableShutdownGracefully", "shutdownWaitTimeSeconds"),
        *("useEpollNativeSelector",),
    }
)
"""Keys of the original that change nothing here."""

MUST_BE_OFF = frozenset({"clusterTest", "supportActingMaster", "enableControllerInNamesrv"})
"""Modes of the original that this name server does not have; saying that they are off is fine."""


def _setting(key: str, default: Any, *, live: bool = False) -> Any:
    return field(default=default, metadata={"key": key, "live": live})


@dataclass
class NameServerConfig:
    """Each setting knows its key in the original's files; `live` ones can be changed by request 318."""

    host: str = _setting("bindAddress", "0.0.0.0")
    port: int = _setting("listenPort", 9876)
    kv_config_path: str | None = _setting("kvConfigPath", None)
    scan_interval_ms: int = _setting("scanNotActiveBrokerInterval", 5_000)
    order_message_enable: bool = _setting("orderMessageEnable", False, live=True)
    return_order_topics: bool = _setting("returnOrderTopicConfigToBroker", True, live=True)
    forget_absent_topics: bool = _setting("deleteTopicWithBrokerRegistration", False, live=True)
    enable_all_topic_list: bool = _setting("enableAllTopicList", True, live=True)
    enable_topic_list: bool = _setting("enableTopicList", True, live=True)
    need_wait_for_service: bool = _setting("needWaitForService", False, live=True)
    wait_seconds_for_service: int = _setting("waitSecondsForService", 45, live=True)

    @classmethod
    def from_settings(cls, settings: Mapping[str, str]) -> "NameServerConfig":
        """From the original's keys; `ConfigError` for keys and values that cannot be meant."""
        config = cls()
        for key, value in settings.items():
            if key in WITHOUT_EFFECT:
                log.warning("the setting %s has no effect on this name server", key)
            elif key in MUST_BE_OFF:
                if _read_flag(key, value):
                    raise ConfigError(f"{key} is not available: this name server has no such mode")
            else:
                setattr(config, _known(key).name, parse_setting(key, value))
        return config

    def change(self, settings: Mapping[str, str]) -> None:
        """Change settings while running: all of them or none."""
        changes = {}
        for key, value in settings.items():
            try:
                name, known = _known(key).name, _known(key)
                if not known.metadata["live"]:
                    raise PermissionDenied(f"{key} can only be set when the name server starts")
                changes[name] = parse_setting(key, value)
            except ConfigError as error:
                raise RequestError(str(error)) from error
        for name, changed in changes.items():
            setattr(self, name, changed)

    def as_settings(self) -> dict[str, str]:
        """All settings with the original's keys, as text."""
        return {key: _format(getattr(self, known.name)) for key, known in _KEYS.items()}


_KEYS = {known.metadata["key"]: known for known in dataclasses.fields(NameServerConfig)}
_NUMBER_BOUNDS = {
    "listenPort": (0, 65_535),
    "scanNotActiveBrokerInterval": (1, 3_600_000),
    "waitSecondsForService": (0, 86_400),
}


def parse_setting(key: str, text: str) -> Any:
    """The value of one known key."""
    default = _known(key).default
    if isinstance(default, bool):
        return _read_flag(key, text)
    if isinstance(default, int):
        return _read_number(key, text)
    return text.strip() or default


def _known(key: str) -> "dataclasses.Field[Any]":
    known = _KEYS.get(key)
    if known is None:
        near = difflib.get_close_matches(key, _KEYS, n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise ConfigError(f"a name server has no setting {key[:64]!r}{hint}")
    return known


def _read_flag(key: str, text: str) -> bool:
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise ConfigError(f"{key} must be true or false, not {text[:32]!r}")
    return word == "true"


def _read_number(key: str, text: str) -> int:
    low, high = _NUMBER_BOUNDS[key]
    word = text.strip()
    if not word.isdecimal() or len(word) > 10 or not low <= int(word) <= high:
        raise ConfigError(f"{key} must be a number from {low} to {high}, not {text[:32]!r}")
    return int(word)


def _format(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
