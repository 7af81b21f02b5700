"""Values that everyone shares: JSON in two dialects, topics and groups, properties, ids, settings."""

import math
import unicodedata
from concurrent.futures import Executor
from typing import Any

from bolide.broker.config import BrokerConfig
from bolide.cli.settings import read_settings
from bolide.model import config_json, java_json
from bolide.model.addresses import parse_address, parse_addresses
from bolide.model.data_version import DataVersion
from bolide.model.errors import BolideError, ConfigError, InvalidRequest, MessageIllegal, RequestError
from bolide.model.message import format_properties
from bolide.model.names import check_group, check_topic
from bolide.model.pairs import parse_properties
from bolide.model.printable import printable, printable_lines
from bolide.model.recall import RecallHandle, decode_handle
from bolide.model.topic import GroupConfig, Subscription, TopicConfig
from bolide.nameserver.config import NameServerConfig
from bolide.nameserver.kv import KvTable
from bolide.record.message_id import format_offset_id, parse_offset_id
from bolide.wire.bodies.properties import format_settings, parse_settings
from tests.fuzz.memory_disk import MemoryDisk
from tests.fuzz.scratch import scratch
from tests.fuzz.target import Target, same_again

_DIALECT = b'{0:"a",-1:[1,2.5,null,true],{"brokerName":"b","queueId":0,"topic":"T"}:{"x":"\\u0041\\n"}}'
_STANDARD = b'{"a":{"b":[1,-2,3.5,"text",{"c":null}]},"d":false}'


def _is_finite(value: Any) -> bool:
    """JSON has no infinity; a number too large for a double is none that can be written."""
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def _hold_json(value: Any) -> None:
    if _is_finite(value):
        assert java_json.loads(java_json.dumps(value)) == value
        assert java_json.loads(java_json.text_of(value, "\n")) == value


def _read_topic(data: bytes) -> TopicConfig:
    return config_json.topic_from_json(java_json.loads(data))


def _read_group(data: bytes) -> GroupConfig:
    return config_json.group_from_json(java_json.loads(data))


def _hold_config(again: Any, as_json: Any) -> Any:
    def holds(value: Any) -> None:
        if _is_finite(dict(value.extras)):
            assert again(java_json.dumps(as_json(value))) == value

    return holds


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _hold_properties(pairs: dict[str, str]) -> None:
    try:
        text = format_properties(pairs)
    except MessageIllegal:  # a value with a separator, which a text without its last one can have
        return
    assert parse_properties(text) == pairs


def _steers(text: str) -> bool:
    """Whether a terminal would do something else than show it."""
    return any(unicodedata.category(one) in ("Cc", "Cs", "Zl", "Zp") for one in text)


def _read_names(data: bytes) -> str:
    """Whatever a name is, it can be shown."""
    text = _text(data)
    assert not _steers(printable(text))
    assert not _steers(printable_lines(text).replace("\t", "").replace("\n", ""))
    return check_group(check_topic(text))


def _hold_name(name: str) -> None:
    assert name.isascii()
    assert "/" not in name


def _read_offset_id(data: bytes) -> tuple[str, tuple[str, int]]:
    text = _text(data)
    return text, parse_offset_id(text)


def _hold_offset_id(found: tuple[str, tuple[str, int]]) -> None:
    text, (_, log_offset) = found
    host = bytes.fromhex(text)[:-8]
    assert parse_offset_id(format_offset_id(host, log_offset)) == found[1]  # type: ignore[arg-type]


def _hold_subscription(value: Subscription) -> None:
    assert Subscription.parse(value.topic, value.expression) == value


def _read_broker_settings(data: bytes) -> BrokerConfig:
    settings = parse_settings(data)
    try:
        BrokerConfig().changed(settings)
    except ConfigError:
        pass
    return BrokerConfig.from_settings(settings)


def _hold_broker_settings(config: BrokerConfig) -> None:
    assert BrokerConfig.from_settings(parse_settings(format_settings(config.as_settings()))) == config
    assert config.retention.batch_max > 0


def _read_name_server_settings(data: bytes) -> NameServerConfig:
    settings = parse_settings(data)
    try:
        NameServerConfig().changed(settings)
    except ConfigError:
        pass
    return NameServerConfig.from_settings(settings)


def _hold_addresses(found: list[tuple[str, int]]) -> None:
    assert all(host and 0 < port < 65536 for host, port in found)


def _read_settings_file(data: bytes) -> dict[str, str]:
    """As TOML and as properties."""
    found: dict[str, str] = {}
    for name in ("broker.conf", "broker.toml"):
        path = scratch() / name
        path.write_bytes(data)
        found |= read_settings(path, "broker")
    return found


def _hold_settings_file(settings: dict[str, str]) -> None:
    assert all(isinstance(part, str) for pair in settings.items() for part in pair)


class _NoThread(Executor):
    """Nothing is written here."""


def _read_kv(data: bytes) -> KvTable:
    return KvTable(MemoryDisk({"kv": data}), "kv", _NoThread())


_BROKER_SETTINGS = format_settings(BrokerConfig(nameservers="a:1;b:2").as_settings())

MODEL = [
    Target(
        "java_json",
        lambda: [_DIALECT, _STANDARD, b"[" * 60 + b"]" * 60],
        java_json.loads,
        (InvalidRequest,),
        _hold_json,
    ),
    Target(
        "config_json.topic",
        lambda: [
            java_json.dumps(
                config_json.topic_as_json(TopicConfig("T", attributes={"a": "b"}, extras={"x": [1]}))
            )
        ],
        _read_topic,
        (InvalidRequest,),
        _hold_config(_read_topic, config_json.topic_as_json),
    ),
    Target(
        "config_json.group",
        lambda: [java_json.dumps(config_json.group_as_json(GroupConfig("g", extras={"x": {"y": 1}})))],
        _read_group,
        (InvalidRequest,),
        _hold_config(_read_group, config_json.group_as_json),
    ),
    Target(
        "data_version",
        lambda: [b'{"counter":3,"stateVersion":0,"timestamp":1700000000000}'],
        lambda data: DataVersion.from_json(java_json.loads(data)),
        (InvalidRequest,),
        same_again(
            lambda value: java_json.dumps(value.as_json()),
            lambda data: DataVersion.from_json(java_json.loads(data)),
        ),
    ),
    Target(
        "properties",
        lambda: [b"TAGS\x01a\x02KEYS\x01k1 k2\x02UNIQ_KEY\x01U\x02", b"a\x01b\x01c\x02d\x02\x01e\x02"],
        lambda data: parse_properties(_text(data)),
        holds=_hold_properties,
    ),
    Target(
        "names",
        lambda: [b"orders", b"%RETRY%group-1", b"\x1b[31mred"],
        _read_names,
        (InvalidRequest,),
        _hold_name,
    ),
    Target(
        "recall.handle",
        lambda: [RecallHandle("T", "broker-a", 1_794_000_000_000, "7F0000010001").encode().encode()],
        lambda data: decode_handle(_text(data)),
        (InvalidRequest,),
        same_again(lambda handle: bytes(handle.encode(), "ascii"), lambda text: decode_handle(text.decode())),
    ),
    Target(
        "message_id",
        lambda: [b"7F00000100002A9F0000000000001000", b"20010DB8" + b"0" * 24 + b"00002A9F" + b"0" * 16],
        _read_offset_id,
        (InvalidRequest,),
        _hold_offset_id,
    ),
    Target(
        "subscription",
        lambda: [b"*", b"TagA || TagB||C"],
        lambda data: Subscription.parse("T", _text(data)),
        (RequestError,),
        _hold_subscription,
        tokens=(b"||", b"|", b"*"),
    ),
    Target(
        "settings.broker",
        lambda: [_BROKER_SETTINGS, *(line for line in _BROKER_SETTINGS.splitlines())],
        _read_broker_settings,
        (BolideError,),
        _hold_broker_settings,
        tokens=(b"\nenableDLegerCommitLog=true", b"\nbrokerIP1=", b"\nstorePathCommitLog=/x", b"~", b"04;05"),
        share=20,
    ),
    Target(
        "settings.name_server",
        lambda: [
            format_settings(NameServerConfig().as_settings()),
            b"clusterTest=false\nserverWorkerThreads=8",
        ],
        _read_name_server_settings,
        (BolideError,),
        share=50,
    ),
    Target(
        "settings.file",
        lambda: [
            b'# ours\nlistenPort = 10911\nbrokerName = "a"\n[broker]\ntraceOn=true\nx=["a","b"]\ny=0x7F\nz=1.5\n'
        ],
        _read_settings_file,
        (ConfigError,),
        _hold_settings_file,
        tokens=(
            b"\n[nameserver]\n",
            b"0x",
            b"\\\n",
            b"\\ud800",
            b'"""',
            b"1979-05-27",
            b"inf",
            b"a.b=",
            b"f" * 5000,
        ),
        share=30,
    ),
    Target(
        "address",
        lambda: [b"10.0.0.1:9876;[2001:db8::1]:10911", b"host:1"],
        lambda data: [parse_address(one) for one in parse_addresses(_text(data))],
        (ConfigError,),
        _hold_addresses,
    ),
    Target("kv_file", lambda: [b'{"configTable":{"ns":{"k":"v","n":1}}}'], _read_kv, (ConfigError,)),
]
