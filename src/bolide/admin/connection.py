"""AdminConnection: the name servers and brokers that an operation talks to, and nothing about what it says.

Any name server may answer a question about routes; a change of their tables goes to all of them.  An answer that is
no success becomes an error that names the server.
"""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self, Unpack

from bolide.client.terms import Access, Terms
from bolide.model.clock import Clock
from bolide.model.errors import BolideError, NoNameServer, NotANameServer, RemoteError, is_of_a_broker
from bolide.net.caller import Caller
from bolide.net.caller_link import signing
from bolide.net.clock import SystemClock
from bolide.wire.codes import RequestCode, ResponseCode
from bolide.wire.command import Command

TIMEOUT_MS = 5_000


class AdminConnection:
    """An asynchronous context manager; connections are made when they are first needed."""

    def __init__(
        self,
        nameservers: str,
        *,
        clock: Clock | None = None,
        timeout_ms: int = TIMEOUT_MS,
        **access: Unpack[Access],
    ) -> None:
        terms = Terms.of(nameservers, {"credentials": access.get("credentials"), "tls": access.get("tls")})
        self.nameservers: Sequence[str] = terms.nameservers
        self.access = access
        """For clients that have to be let in as it was."""

        self.timeout_ms = timeout_ms
        self.clock: Clock = clock or SystemClock()
        self._caller = Caller(self.clock, tls=terms.security)
        self._caller.escort = signing(terms.credentials)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._caller.close()

    async def ask(
        self,
        address: str,
        code: RequestCode,
        fields: Mapping[str, str] | None = None,
        body: bytes = b"",
        *,
        timeout_ms: int | None = None,
    ) -> Command:
        """The successful answer of one server; `RemoteError` with the server's own words otherwise."""
        answer = await self.exchange(address, code, fields, body, timeout_ms=timeout_ms)
        if answer.code != ResponseCode.SUCCESS:
            raise RemoteError(answer.code, f"{answer.remark or 'no reason given'} (said {address})")
        return answer

    async def exchange(
        self,
        address: str,
        code: RequestCode,
        fields: Mapping[str, str] | None = None,
        body: bytes = b"",
        *,
        timeout_ms: int | None = None,
    ) -> Command:
        """The answer of one server, whatever its code."""
        request = Command(code, dict(fields or {}), body)
        return await self._caller.call(address, request, timeout_ms or self.timeout_ms)

    async def ask_nameserver(self, code: RequestCode, fields: Mapping[str, str] | None = None) -> Command:
        """The answer of the first name server that gives one."""
        failures: list[BolideError] = []
        for address in self.nameservers:
            try:
                return await self._ask_nameserver(address, code, fields)
            except RemoteError:
                raise
            except BolideError as error:
                failures.append(error)
        raise _none_answers(failures)

    async def tell_nameservers(self, code: RequestCode, fields: Mapping[str, str]) -> None:
        """Every name server that is up; an error when none is."""
        failures: list[BolideError] = []
        for address in self.nameservers:
            try:
                await self._ask_nameserver(address, code, fields)
            except RemoteError:
                raise
            except BolideError as error:
                failures.append(error)
        if len(failures) == len(self.nameservers):
            raise _none_answers(failures)

    async def _ask_nameserver(
        self, address: str, code: RequestCode, fields: Mapping[str, str] | None
    ) -> Command:
        try:
            return await self.ask(address, code, fields)
        except RemoteError as error:
            if is_of_a_broker(error):
                raise NotANameServer.at(address) from error
            raise


def _none_answers(failures: Sequence[BolideError]) -> NoNameServer:
    kind = NotANameServer if any(isinstance(one, NotANameServer) for one in failures) else NoNameServer
    return kind(f"no name server answers: {'; '.join(map(str, failures))}")
