"""bolide: Apache RocketMQ rebuilt in Python.  These are the blocking clients; `bolide.aio` has them for asyncio.

Example::

    from bolide import Message, Producer

    with Producer("127.0.0.1:9876", group="orders") as producer:
        receipt = producer.send(Message("orders", b"...", tags="paid", keys=["42"]))

Names are resolved when they are first used, so that `import bolide` costs nothing.
"""

import importlib

TYPE_CHECKING = False  # type checkers know the name; importing it would cost more than all the rest here

if TYPE_CHECKING:
    from bolide.client.blocking import Producer, PullConsumer, PushConsumer
    from bolide.client.results import PullBlock, PullResult, PullStatus, SendReceipt, SendStatus
    from bolide.model.errors import (
        BolideError,
        CallTimeout,
        ClientError,
        ConnectionLost,
        MessageIllegal,
        RemoteError,
        RouteNotFound,
    )
    from bolide.model.message import Message, StoredMessage
    from bolide.model.offsets import MessageQueue

__all__ = [
    "BolideError",
    "CallTimeout",
    "ClientError",
    "ConnectionLost",
    "Message",
    "MessageIllegal",
    "MessageQueue",
    "Producer",
    "PullBlock",
    "PullConsumer",
    "PullResult",
    "PullStatus",
    "PushConsumer",
    "RemoteError",
    "RouteNotFound",
    "SendReceipt",
    "SendStatus",
    "StoredMessage",
]

_HOMES = {
    "bolide.client.blocking": ("Producer", "PullConsumer", "PushConsumer"),
    "bolide.client.results": ("PullBlock", "PullResult", "PullStatus", "SendReceipt", "SendStatus"),
    "bolide.model.errors": (
        *("BolideError", "CallTimeout", "ClientError", "ConnectionLost"),
        *("MessageIllegal", "RemoteError", "RouteNotFound"),
    ),
    "bolide.model.message": ("Message", "StoredMessage"),
    "bolide.model.offsets": ("MessageQueue",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # a checker would take it for "any name exists"

    def __getattr__(name: str) -> object:
        home = _HOME_OF.get(name)
        if home is None:
            raise AttributeError(f"module 'bolide' has no attribute {name!r}")
        return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
