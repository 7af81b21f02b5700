"""bolide: Apache RocketMQ rebuilt in Python.  These are the blocking clients; `bolide.aio` has them for asyncio.

Example::

    from bolide import Message, Producer

    with Producer("127.0.0.1:9876", group="orders") as producer:
        receipt = producer.send(Message("orders", b"...", tags="paid", keys=["42"]))

Names are resolved when they are first used, so that `import bolide` costs nothing.  Type checkers read them in
`__init__.pyi`.
"""

import importlib

_HOMES = {
    "bolide.client.blocking": ("Producer", "PullConsumer", "PushConsumer"),
    "bolide.client.results": ("PullBlock", "PullResult", "PullStatus", "SendReceipt", "SendStatus"),
    "bolide.model.errors": (
        *("BolideError", "CallTimeout", "ClientError", "ClientNotRunning", "ConfigError", "ConnectionLost"),
        *(
            "InvalidRequest",
            "MalformedRecord",
            "MessageIllegal",
            "NoBroker",
            "NoNameServer",
            "NotWritable",
            "ProtocolError",
            "RemoteError",
        ),
        *("RequestError", "RetryLater", "RouteNotFound", "SubscriptionMalformed"),
    ),
    "bolide.model.message": ("Message", "StoredMessage"),
    "bolide.model.offsets": ("MessageQueue",),
    "bolide.model.response_code": ("ResponseCode",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # noqa: PLE0605 - the table above is the list


def __getattr__(name: str) -> object:
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("bolide")
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'bolide' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
