"""The same question to many, some at a time: a cluster may have hundreds of brokers and a group thousands of queues."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from bolide.model.errors import BolideError, CallTimeout, ConnectionLost, ProtocolError, RemoteError

AT_ONCE = 16

AWAY = (CallTimeout, ConnectionLost)
UNTOLD = (*AWAY, RemoteError, ProtocolError)
"""One broker may fail in these ways while the others answer."""

Silent = dict[str, BolideError]
"""By name, brokers that have not told what they were asked for, and why."""

T = TypeVar("T")
R = TypeVar("R")


async def of_each(items: Iterable[T], ask: Callable[[T], Awaitable[R]]) -> list[R]:
    """The answers in the order of the items; the first error ends it."""
    waiting = iter(list(enumerate(items)))
    answers: dict[int, R] = {}

    async def work() -> None:
        for number, item in waiting:
            answers[number] = await ask(item)

    try:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(AT_ONCE):
                tasks.create_task(work())
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
    return [answers[number] for number in sorted(answers)]


async def of_brokers(
    addresses: Mapping[str, str], ask: Callable[[str], Awaitable[R]], silent: Silent | None = None
) -> dict[str, R]:
    """By name, what each broker says.  The first error ends it; for who keeps the `silent`, only when nobody tells.

    Who is known to be away is not waited for a second time.
    """
    answers: dict[str, R] = {}

    async def one(item: tuple[str, str]) -> None:
        name, address = item
        if silent is not None and isinstance(silent.get(name), AWAY):
            return
        try:
            answers[name] = await ask(address)
        except UNTOLD as error:
            if silent is None:
                raise
            silent[name] = error

    await of_each(addresses.items(), one)
    if silent and addresses and not answers:
        raise next(silent[name] for name in addresses if name in silent)
    return {name: answers[name] for name in addresses if name in answers}
