"""A broker on which time stands still, and what a transactional producer says to it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bolide.broker.app import Broker
from bolide.broker.handlers.transaction import Transactions
from bolide.model.names import HALF_TOPIC, OP_HALF_TOPIC
from bolide.model.offsets import LogOffset
from bolide.model.steps import at_once
from bolide.net.guard import Guard
from bolide.record.decode import decode_messages
from bolide.record.message_id import parse_offset_id
from bolide.record.stored import StoredMessage
from bolide.store.new_message import NewMessage
from bolide.wire.bodies.group import HeartbeatData
from bolide.wire.command import Command
from tests.unit.broker.stage import connect, fill, properties_of, pull_request, send_request, serving
from tests.unit.net.stage import Wire, eventually
from tests.unit.store.stage import HeldClock

COMMIT, ROLLBACK, UNKNOWN = 8, 12, 0
TIMEOUT_MS = 6_000
MAKERS = "makers"
BY_HAND = {"transactionCheckInterval": "3600000"}


@dataclass
class Half:
    """What a producer knows of its half message."""

    offset: int
    log_offset: int


@dataclass
class Play:
    broker: Broker
    wire: Wire
    clock: HeldClock

    @property
    def part(self) -> Transactions:
        return self.broker.part(Transactions)

    async def half(self, number: int = 1, *, age_ms: int = 0, **pairs: str) -> Half:
        """Send a half message to queue 2 of the topic T."""
        properties = half_properties(number, **pairs)
        born_ms = self.clock.ms - age_ms
        request = send_request(
            b"%d" % number, queue_id=2, sys_flag=4, properties=properties, born_timestamp_ms=born_ms
        )
        answer = await self.wire.ask(request)
        assert answer.code == 0, answer
        return Half(int(answer.fields["queueOffset"]), parse_offset_id(answer.fields["msgId"])[1])

    async def end(self, half: Half, verdict: int, *, group: str = MAKERS, **fields: str) -> Command:
        named = {
            "producerGroup": group,
            "tranStateTableOffset": str(half.offset),
            "commitLogOffset": str(half.log_offset),
            "commitOrRollback": str(verdict),
            "fromTransactionCheck": "false",
            "msgId": "x",
        }
        return await self.wire.ask(Command(37, {**named, **fields}, opaque=7))

    async def member(self, group: str = MAKERS) -> Wire:
        """One more connection in the group."""
        wire = await connect(self.broker)
        assert (await wire.ask(Command(34, {}, HeartbeatData(f"id-{id(wire)}", (group,)).encode()))).code == 0
        return wire

    def check(self) -> None:
        at_once(self.part.checks.checking())

    def check_later(self) -> None:
        """When every producer had its time."""
        self.clock.ms += TIMEOUT_MS + 1
        self.check()

    async def stored(self, topic: str = "T", queue_id: int = 2) -> list[StoredMessage]:
        answer = await self.wire.ask(pull_request(0, topic=topic, queue_id=queue_id))
        return list(decode_messages(answer.body, "broker-a")) if answer.code == 0 else []

    async def halves(self) -> list[StoredMessage]:
        return await self.stored(HALF_TOPIC, 0)

    async def ops(self) -> list[bytes]:
        return [message.body for message in await self.stored(OP_HALF_TOPIC, 0)]

    async def settled(self) -> None:
        """Until the offsets say what is so, and the log is durable."""
        store = self.broker.state.store
        self.broker.state.settings.change({"flushCommitLogLeastPages": "0"})  # syncs at once
        await eventually(lambda: store.durability.durable == store.log.end)
        for _ in range(2):  # what was noted before, then what is so now
            self.part.halves.keep_settled()


def half_properties(number: int = 1, **pairs: str) -> str:
    return properties_of(number, TRAN_MSG="true", PGROUP=MAKERS, **pairs)


def foreign_half(on: Play, number: int, *, line: int | None = None, **pairs: str) -> Half:
    """A half message as a broker of the original may have left it, with what its client wrote into it."""
    if line is not None:
        pairs["TRAN_PREPARED_QUEUE_OFFSET"] = str(line)
    properties = half_properties(number, REAL_TOPIC="T", REAL_QID="2", **pairs).encode()
    message = NewMessage(HALF_TOPIC, 0, b"%d" % number, properties, 0, 0, on.clock.ms, bytes(8))
    (stored,) = on.broker.state.door.append([message])
    return Half(int(stored.queue_offset), int(stored.log_offset))


Act = Callable[[Play], Awaitable[None]]


def play(
    root: Path,
    *acts: Act,
    settings: Mapping[str, str] | None = None,
    between: Callable[[], None] = lambda: None,
    guard: Guard | None = None,
) -> None:
    """Each act on a broker started anew."""
    clock = HeldClock()

    async def main() -> None:
        for act in acts:
            async with serving(root, {**BY_HAND, **(settings or {})}, clock=clock, guard=guard) as (
                broker,
                wire,
            ):
                if "T" not in broker.state.topics:
                    await fill(wire, 1)
                await act(Play(broker, wire, clock))
            between()

    asyncio.run(main())


def asked(request: Command) -> tuple[Half, StoredMessage]:
    """What a producer is asked."""
    assert request.code == 39
    half = Half(int(request.fields["tranStateTableOffset"]), int(request.fields["commitLogOffset"]))
    (message,) = decode_messages(request.body, "broker-a")
    assert request.fields["offsetMsgId"] == message.offset_message_id
    assert LogOffset(half.log_offset) == message.log_offset
    return half, message


def forgotten_offsets(root: Path) -> Callable[[], None]:
    """Between two starts: nothing is known of what was settled."""

    def forget() -> None:
        for path in (root / "config").glob("consumerOffset.json*"):
            path.unlink()

    return forget
