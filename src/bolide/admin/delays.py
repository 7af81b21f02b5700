"""What brokers do with messages that wait: how long each delay level is there, and whether one can be recalled."""

from bolide.admin.brokers import settings_of
from bolide.admin.cluster import broker_settings, listed, masters
from bolide.admin.connection import AdminConnection
from bolide.model.delay_levels import DelayLevels, parse_delay
from bolide.model.errors import BolideError, ConfigError, PermissionDenied, ProtocolError, RemoteError
from bolide.model.printable import printable

RECALLS = "recallMessageEnable"


async def level_of(servers: AdminConnection, delay: str) -> int:
    """The level that waits as long as `10s` says; `ConfigError` lists what there is when none does.

    All brokers must mean the same by it, because nobody knows yet which of them gets the message.
    """
    delay_ms = parse_delay(delay)
    texts: dict[str, str] = {}
    for broker in await masters(servers):
        assert broker.master is not None
        settings = await broker_settings(servers, broker.master)
        texts.setdefault(settings.get("messageDelayLevel", ""), broker.broker_name)
    if len(texts) > 1:
        raise ConfigError(
            f"the brokers {listed(texts.values())} have different delay levels: say which one with --delay-level"
        )
    (text,) = texts
    levels = DelayLevels.parse(text)
    if delay_ms not in levels.delays_ms:
        raise ConfigError(f"no delay level waits {delay}; there are {', '.join(levels.names)}")
    return levels.delays_ms.index(delay_ms) + 1


async def check_recalls(servers: AdminConnection, broker: str) -> BolideError | None:
    """`PermissionDenied` where a broker would refuse to recall any message, as far as it tells.

    Gives why it could not be asked, where it could not.
    """
    try:
        settings = await settings_of(servers, broker)
    except (RemoteError, ProtocolError):  # it keeps them to itself
        return None
    except BolideError as error:
        return error
    if settings.get(RECALLS) == "false":
        raise PermissionDenied(
            f"{printable(broker)} would refuse: messages cannot be recalled there while {RECALLS} is false"
            f" (`bolide broker config set {printable(broker)} {RECALLS}=true` changes that)"
        )
    return None
