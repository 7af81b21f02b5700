"""Every public method of every client, and for each parameter an argument that could be meant: what a walk needs to use
all of them wrongly, in one way at a time.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pyarrow as pa

import bolide
import bolide.aio
from bolide import Message, MessageQueue, Transaction

NAMESERVER = "127.0.0.1:1"
TOPIC = "misused"
QUEUE = MessageQueue(TOPIC, "broker", 0)


def commit(message: object) -> Transaction:
    return Transaction.COMMIT


def listen(messages: object) -> None:
    pass


GOOD: dict[str, Any] = {
    "bytes_max": 1000,
    "callback": None,
    "check": commit,
    "columns": None,
    "concurrency": 2,
    "group": "misused",
    "listener": listen,
    "local": commit,
    "max_bytes": 1000,
    "max_messages": 1,
    "message": Message(TOPIC, b"x"),
    "messages": [Message(TOPIC, b"x")],
    "messages_max": 1,
    "moment": 1_700_000_000_000,
    "nameserver": NAMESERVER,
    "offset": 0,
    "queue": QUEUE,
    "queues": [QUEUE],
    "receipt": "handle",
    "selector": None,
    "sql": None,
    "table": pa.table({"topic": [TOPIC], "body": [b"x"]}),
    "tags": "*",
    "timeout_ms": 500,
    "to": 0,
    "topic": TOPIC,
    "wait_ms": 0,
}
"""By the name of a parameter, for all clients: one name means one thing."""

BAD: dict[str, Any] = {
    "nothing": None,
    "a number": 7,
    "below zero": -1,
    "beyond": 2**80,
    "a fraction": 2.5,
    "not a number": float("nan"),
    "a truth value": True,
    "a text": "a text",
    "an empty text": "",
    "a lone surrogate": "\ud800",
    "a NUL": "a\0b",
    "a long text": "x" * 300,
    "bytes": b"bytes",
    "a list": [None],
    "an empty list": [],
    "a dict": {"a": 1},
    "an object": object(),
    "a class": Message,
    "a queue of nothing": MessageQueue(None, None, None),  # type: ignore[arg-type]
    "a queue of a surrogate": MessageQueue("\ud800", "\ud800", 0),
    "a message to nowhere": Message(None, b"x"),  # type: ignore[arg-type]
    "a function of nothing": lambda: None,
    "a function that fails": lambda *given: 1 / 0,
}


@dataclass(frozen=True)
class Client:
    """One class of one shell."""

    shell: ModuleType
    kind: str

    @property
    def is_blocking(self) -> bool:
        return self.shell is bolide

    @property
    def type(self) -> Any:
        return getattr(self.shell, self.kind)

    def make(self, nameserver: str = NAMESERVER, **settings: Any) -> Any:
        return self.type(**{**arguments(self.type.__init__), "nameserver": nameserver, **settings})

    @property
    def settings(self) -> list[str]:
        own = [one.name for one in parameters(self.type.__init__)]
        return [*own, *sorted(bolide.ClientOptions.__optional_keys__)]

    @property
    def methods(self) -> dict[str, Callable[..., Any]]:
        return {
            name: found
            for name, found in inspect.getmembers(self.type, inspect.isfunction)
            if not name.startswith("_")
        }

    def __str__(self) -> str:
        return f"{self.shell.__name__}.{self.kind}"


def parameters(function: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    for one in inspect.signature(function).parameters.values():
        if one.name not in ("self", "surroundings") and one.kind is not inspect.Parameter.VAR_KEYWORD:
            yield one


def arguments(function: Callable[..., Any]) -> dict[str, Any]:
    """One that could be meant for each parameter without a default, and little time."""
    return {
        one.name: GOOD[one.name]
        for one in parameters(function)
        if one.default is inspect.Parameter.empty or one.name == "timeout_ms"
    }


KINDS = ("LitePullConsumer", "Producer", "PullConsumer", "PushConsumer", "TransactionProducer")
CLIENTS = [Client(shell, kind) for shell in (bolide, bolide.aio) for kind in KINDS]
