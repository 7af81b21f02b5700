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
    "bolide.client.blocking.lite": ("LitePullConsumer",),
    "bolide.client.blocking.producer": ("Producer",),
    "bolide.client.blocking.pull": ("PullConsumer",),
    "bolide.client.blocking.push": ("PushConsumer",),
    "bolide.client.blocking.transaction": ("TransactionProducer",),
    "bolide.client.context": ("ConsumeContext",),
    "bolide.client.dedup": ("DedupWindow",),
    "bolide.client.gather": ("SendFuture", "SendReceipt"),
    "bolide.client.hooks": ("CallEvent", "ConsumeEvent", "Hooks", "SendEvent"),
    "bolide.client.requests": ("reply_to",),
    "bolide.client.results": (
        *("PartlyStored", "PullBlock", "PullResult", "PullStatus", "RowsPartlyStored", "SendStatus"),
        *("TableReceipt", "Transaction", "TransactionReceipt"),
    ),
    "bolide.client.selectors": ("by_hash", "by_machine_room", "by_random"),
    "bolide.client.terms": ("ClientOptions",),
    "bolide.model.credentials": ("Credentials",),
    "bolide.model.errors": (
        *(
            "BadRow",
            "BolideError",
            "CallTimeout",
            "ClientError",
            "ClientNotRunning",
            "ConfigError",
            "ConnectionLost",
        ),
        *(
            "DedupFailed",
            "InvalidRequest",
            "MalformedRecord",
            "MessageIllegal",
            "NoBroker",
            "NoNameServer",
        ),
        *("NoReply", "NoRoom", "NotOurQueue", "NotWritable", "ProtocolError", "RemoteError", "RequestError"),
        *(
            "RequirementMissing",
            "RouteNotFound",
            "StrategyFailed",
            "SubscriptionConflict",
            "SubscriptionMalformed",
        ),
        *("TlsFailed", "Vetoed"),
    ),
    "bolide.model.message": ("Message",),
    "bolide.model.offsets": ("MessageQueue",),
    "bolide.model.response_code": ("ResponseCode",),
    "bolide.model.verdicts": ("Later", "RetryLater", "Suspend"),
    "bolide.net.tls": ("Tls",),
    "bolide.record.stored": ("StoredMessage",),
    "bolide.rules.allocate.hash_ring": ("ConsistentHashStrategy",),
    "bolide.rules.allocate.machine_rooms": ("MachineRoomNearbyStrategy", "MachineRoomStrategy"),
    "bolide.rules.allocate.plain": ("ConfigStrategy",),
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
