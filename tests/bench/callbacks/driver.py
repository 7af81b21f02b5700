"""Driver: the clients of the scene, and the line to the measured process."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bolide.model.clock import Clock
from bolide.model.topic import Subscription
from bolide.net.caller import Caller
from bolide.net.clock import SystemClock
from bolide.net.ticks import ticks
from bolide.wire.bodies.group import ConsumerData, HeartbeatData
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from bolide.wire.headers.offset import QueueRequest
from bolide.wire.headers.pull import PullFlag, PullRequest
from bolide.wire.headers.send import SendRequest
from bolide.wire.schema import Header
from tests.bench.callbacks.scene import QUIET, Scene
from tests.bench.sides import Untrustworthy
from tests.peers.process import ManagedProcess
from tests.peers.waiting import PATIENCE_MS, PATIENCE_SECONDS

CROWD_GROUP = "crowd"
IN_FLIGHT = 256
POLL_S = 0.05
BODY = b"x" * 128
PLAIN = f"UNIQ_KEY\x01{'7F' * 16}\x02WAIT\x01true\x02"
"""Properties as Java clients send them."""


@dataclass
class Driver:
    """`admin` asks for everything; the `crowd` are members of one group, each with a connection of its own."""

    process: ManagedProcess
    data: Path
    scene: Scene
    nameserver: str
    broker: str
    clock: Clock = field(default_factory=SystemClock)
    crowd: list[Caller] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.admin = Caller(self.clock)

    async def close(self) -> None:
        for caller in (self.admin, *self.crowd):
            await caller.close()

    # ---- the measured process ------------------------------------------------------------------------------

    def command(self, line: str) -> Any:
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise Untrustworthy(f"the measured server has ended\n{self.process.log_tail()}")
        return json.loads(answer)

    async def quiet(self) -> None:
        """Wait until nothing long goes on there; notices that the crowd gets are read meanwhile."""
        await asyncio.to_thread(self.command, "quiet")

    # ---- requests ------------------------------------------------------------------------------------------

    async def ask(
        self,
        code: RequestCode,
        header: Header | None = None,
        body: bytes = b"",
        *,
        by: Caller | None = None,
        at: str | None = None,
    ) -> Command:
        request = Command(code, {} if header is None else header.encode(), body)
        answer = await (by or self.admin).call(at or self.broker, request, PATIENCE_MS)
        if answer.code != 0:
            raise Untrustworthy(f"{code.name}: code {answer.code} {answer.remark}")
        return answer

    async def send(
        self,
        topic: str,
        queues: Sequence[int],
        *,
        by: Caller | None = None,
        body: bytes = BODY,
        properties: str = PLAIN,
    ) -> None:
        """One message to each of the queues, many at a time."""
        for start in range(0, len(queues), IN_FLIGHT):
            headers = [
                SendRequest(topic, "driver", queue_id=queue, born_timestamp_ms=1, properties=properties)
                for queue in queues[start : start + IN_FLIGHT]
            ]
            await asyncio.gather(
                *(self.ask(RequestCode.SEND_MESSAGE_V2, header, body, by=by) for header in headers)
            )

    async def join(self, member: Caller, client_id: str, group: str) -> None:
        consumer = ConsumerData(group, subscriptions=(Subscription(QUIET),))
        body = HeartbeatData(client_id, consumers=(consumer,)).encode()
        await self.ask(RequestCode.HEART_BEAT, body=body, by=member)

    async def gather_crowd(self) -> None:
        for number in range(self.scene.held_pulls):
            member = Caller(self.clock)
            self.crowd.append(member)
            await self.join(member, f"member-{number}", CROWD_GROUP)

    async def pull(
        self, member: Caller, topic: str, offset: int, *, wait_ms: int = 0, count: int = 32
    ) -> Command:
        header = PullRequest(
            *(CROWD_GROUP, topic, 0, offset, count),
            sys_flag=PullFlag.SUBSCRIPTION | (PullFlag.SUSPEND if wait_ms else 0),
            suspend_timeout_millis=wait_ms,
            subscription="*",
        )
        return await member.call(self.broker, Command(RequestCode.PULL_MESSAGE, header.encode()), PATIENCE_MS)

    async def hold(self, wait_ms: int) -> "asyncio.Future[list[Command]]":
        """A pull of every member at the end of the quiet queue; all of them wait there when this returns."""
        end = await self.end_of(QUIET)
        held = [asyncio.ensure_future(self.pull(one, QUIET, end, wait_ms=wait_ms)) for one in self.crowd]
        await asyncio.gather(*(self.end_of(QUIET, by=one) for one in self.crowd))  # served behind the pull
        if any(pull.done() for pull in held):
            raise Untrustworthy("a pull that should be held was answered")
        return asyncio.gather(*held)

    async def end_of(self, topic: str, by: Caller | None = None) -> int:
        answer = await self.ask(RequestCode.GET_MAX_OFFSET, QueueRequest(topic, 0), by=by)
        return int(answer.fields["offset"])

    async def written(self, name: str, change: Callable[[], Awaitable[object]]) -> None:
        """Make a change, and wait until the table's file has been written behind it."""
        file = self.data / "config" / name
        before = file.stat().st_mtime_ns
        await change()
        await until(lambda: file.stat().st_mtime_ns != before)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for _ in ticks(POLL_S):
            if condition():
                return
