"""A real broker on a free port without a name server, and what clients send to it."""

import shutil
import struct
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from bolide.broker.app import Broker
from bolide.broker.config import BrokerConfig
from bolide.model.clock import Clock
from bolide.model.errors import StoreError
from bolide.net.guard import Guard
from bolide.net.surroundings import Surroundings
from bolide.record.decode import decode_messages
from bolide.store.disk import Disk
from bolide.wire.command import Command
from bolide.wire.headers.pull import PullFlag, PullRequest
from bolide.wire.headers.send import SendRequest
from tests.unit.net.stage import Wire

GROUP = "TOOLS_CONSUMER"
ALL = int(PullFlag.SUBSCRIPTION)
MAY_WAIT = int(PullFlag.SUBSCRIPTION | PullFlag.SUSPEND)


@asynccontextmanager
async def serving(
    root: Path,
    settings: Mapping[str, str] | None = None,
    *,
    clock: Clock | None = None,
    disk: Disk | None = None,
    guard: Guard | None = None,
    stops_clean: bool = True,
) -> AsyncIterator[tuple[Broker, Wire]]:
    """A broker with small files, and one connection to it; unless it stops clean, its stop may say that it did not."""
    base = {
        "storePathRootDir": str(root),
        "listenPort": "0",
        "bindAddress": "127.0.0.1",
        "mappedFileSizeCommitLog": str(1024 * 1024),
        "mappedFileSizeConsumeQueue": "2000",
        "maxHashSlotNum": "1000",
        "maxIndexNum": "4000",
        "waitTimeMillsInSendQueue": "60000",  # on a busy machine nobody is refused for that
    }
    surroundings = None if clock is None else Surroundings(clock)
    config = BrokerConfig.from_settings({**base, **(settings or {})})
    broker = Broker(config, surroundings, disk, guard=guard)
    await broker.start()
    try:
        yield broker, await connect(broker)
    finally:
        with nullcontext() if stops_clean else suppress(StoreError):
            await broker.stop()


async def connect(broker: Broker) -> Wire:
    return await Wire.connect(f"127.0.0.1:{broker.port}")


def properties_of(number: int = 0, **pairs: str) -> str:
    pairs = {"UNIQ_KEY": f"7F0000010000{number:020X}", "WAIT": "true", **pairs}
    return "".join(f"{name}\x01{value}\x02" for name, value in pairs.items())


def send_request(
    body: bytes = b"hello",
    opaque: int = 1,
    *,
    topic: str = "T",
    queue_id: int = 0,
    tag: str | None = None,
    code: int = 310,
    form: int = 0,
    flag: int = 0,
    **changes: Any,
) -> Command:
    """A send as a Java client writes it; `changes` are fields of the header."""
    pairs = {} if tag is None else {"TAGS": tag}
    header = SendRequest(
        **{
            "topic": topic,
            "producer_group": "g",
            "queue_id": queue_id,
            "born_timestamp_ms": 1,
            "properties": properties_of(opaque, **pairs),
            **changes,
        }
    )
    return Command(code, header.encode(), body, opaque=opaque, flag=flag, language="JAVA", form=form)


def batch_of(*bodies: bytes, number: int = 0, **pairs: str) -> bytes:
    items = []
    for at, body in enumerate(bodies):
        text = properties_of(number + at, **pairs).encode()
        items.append(struct.pack(">IIIiI", 22 + len(body) + len(text), 0, 0, 0, len(body)) + body)
        items.append(struct.pack(">H", len(text)) + text)
    return b"".join(items)


def pull_request(
    offset: int = 0,
    opaque: int = 1,
    *,
    topic: str = "T",
    queue_id: int = 0,
    count: int = 32,
    flags: int = ALL,
    tags: str = "*",
    wait_ms: int = 15_000,
    group: str = GROUP,
    code: int = 11,
    **changes: Any,
) -> Command:
    header = PullRequest(
        **{
            "consumer_group": group,
            "topic": topic,
            "queue_id": queue_id,
            "queue_offset": offset,
            "max_msg_nums": count,
            "sys_flag": flags,
            "suspend_timeout_millis": wait_ms,
            "subscription": tags,
            **changes,
        }
    )
    return Command(code, header.encode(), opaque=opaque)


async def fill(wire: Wire, count: int, *, body: bytes = b"x", tag: str | None = None, **where: Any) -> None:
    """Send `count` messages and wait for their acknowledgements."""
    for start in range(0, count, 500):
        numbers = range(start, min(count, start + 500))
        wire.send(*(send_request(body, number, tag=tag, **where) for number in numbers))
        for _ in numbers:
            answer = await wire.next()
            assert answer.code == 0, answer


def bodies_of(answer: Command) -> list[bytes]:
    return [message.body for message in decode_messages(answer.body, "broker-a")]


def offsets_of(answer: Command) -> tuple[int, int, int]:
    """Next, first and last offset that a pull was told."""
    fields = answer.fields
    return int(fields["nextBeginOffset"]), int(fields["minOffset"]), int(fields["maxOffset"])


def copy_if_there(source: str, target: str) -> None:
    """Tables are written by a thread, beside their file, and take its place: such a file may be gone by now."""
    with suppress(FileNotFoundError):
        shutil.copy2(source, target)
