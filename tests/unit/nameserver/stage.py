"""A real name server on a free port, a caller, and a clock that only moves when told."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from bolide.model.data_version import DataVersion
from bolide.model.topic import TopicConfig
from bolide.nameserver.app import NameServer
from bolide.nameserver.config import NameServerConfig
from bolide.net.caller import Caller
from bolide.net.clock import SystemClock
from bolide.net.surroundings import Surroundings
from bolide.wire.bodies.registration import RegistrationBody, checksum
from bolide.wire.bodies.route import ClusterInfo, TopicRoute
from bolide.wire.codes import RequestCode
from bolide.wire.command import VERSION, Command
from bolide.wire.headers.route import RegisterBroker
from bolide.wire.schema import Header
from tests.peers.waiting import PATIENCE_SECONDS

TIMEOUT_MS = 5_000
BUILT_IN = (TopicConfig("SELF_TEST_TOPIC", 1, 1), TopicConfig("TBW102", 8, 8, perm=7))


class HeldClock:
    """Stands still until a test moves it."""

    def __init__(self) -> None:
        self.ms = 1_000_000

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms


@dataclass
class Stage:
    server: NameServer
    caller: Caller

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server.port}"

    async def ask(
        self,
        code: int,
        header: Header | dict[str, str] | None = None,
        body: bytes = b"",
        version: int = VERSION,
        caller: Caller | None = None,
    ) -> Command:
        fields = header.encode() if isinstance(header, Header) else header or {}
        request = Command(code, fields, body, version=version)
        return await (caller or self.caller).call(self.address, request, TIMEOUT_MS)

    async def register(
        self,
        name: str = "broker-a",
        *topics: TopicConfig,
        address: str = "127.0.0.1:10911",
        broker_id: int = 0,
        counter: int = 1,
        caller: Caller | None = None,
        compressed: bool = False,
        version: int = VERSION,
        lifetime_ms: int | None = None,
    ) -> Command:
        """As a broker does, with the built-in topics and a checksum."""
        content = RegistrationBody(DataVersion(counter=counter), (*BUILT_IN, *topics))
        body = content.encode(compressed=compressed)
        header = RegisterBroker(
            name,
            address,
            "C",
            ha_server_addr=f"{address}9",
            broker_id=broker_id,
            compressed=compressed,
            body_crc32=checksum(body),
            heartbeat_timeout_millis=lifetime_ms,
        )
        return await self.ask(RequestCode.REGISTER_BROKER, header, body, version, caller)

    async def route(self, topic: str) -> TopicRoute | None:
        answer = await self.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
        assert answer.code in (0, 17)
        return TopicRoute.decode(answer.body) if answer.code == 0 else None

    async def brokers(self) -> set[str]:
        answer = await self.ask(RequestCode.GET_BROKER_CLUSTER_INFO)
        return set(ClusterInfo.decode(answer.body).brokers)


@asynccontextmanager
async def serving(
    config: NameServerConfig | None = None, clock: HeldClock | None = None
) -> AsyncIterator[Stage]:
    config = NameServerConfig() if config is None else config
    config = dataclasses.replace(config, host="127.0.0.1", port=0)
    server = NameServer(config, surroundings=Surroundings(clock or SystemClock()))
    await server.start()
    caller = Caller(SystemClock())
    try:
        yield Stage(server, caller)
    finally:
        await caller.close()
        await server.stop()


@asynccontextmanager
async def callers(count: int) -> AsyncIterator[Sequence[Caller]]:
    """Connections of their own, apart from the stage's."""
    made = [Caller(SystemClock()) for _ in range(count)]
    try:
        yield made
    finally:
        for caller in made:
            await caller.close()


async def eventually(check: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> None:
    """Wait until an async or plain condition is true."""
    async with asyncio.timeout(seconds):
        while True:
            outcome = check()
            if asyncio.iscoroutine(outcome):
                outcome = await outcome
            if outcome:
                return
            await pause()


async def pause() -> None:
    """Give the loop and the kernel a moment."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(0.005, done.set_result, None)
    await done
