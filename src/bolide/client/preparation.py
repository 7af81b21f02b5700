"""Preparation: a message of the application made ready to be sent: checked, with an id, compressed if it is large.

How a message becomes what a request carries is in `client/outgoing.py`; here is what differs between producers.
"""

import asyncio
from collections.abc import Mapping
from concurrent.futures import Executor
from functools import partial

from bolide.client import checks
from bolide.client.instance import ClientInstance
from bolide.client.outgoing import NO_PAIRS, Outgoing, packed, prepare
from bolide.model.errors import ConfigError
from bolide.model.message import BODY_BYTES_MAX, Message, SysFlag

PACK_FROM_BYTES = 4096
"""The original's compressMsgBodyOverHowmuch."""

ZLIB = "zlib"
COMPRESSIONS: Mapping[str, SysFlag] = {
    ZLIB: SysFlag.COMPRESSION_ZLIB,
    "lz4": SysFlag.COMPRESSION_LZ4,
    "zstd": SysFlag.COMPRESSION_ZSTD,
}

PACK_ASIDE_BYTES = 64 * 1024
"""Bodies from this size on are packed in a thread: the event loop must not wait for them."""

PACKERS = 4


class Preparation:
    """Makes messages of one producer ready.  Bodies from `pack_from_bytes` on are compressed."""

    def __init__(self, instance: ClientInstance, compression: object, pack_from_bytes: object) -> None:
        self._instance = instance
        self._kind = _kind(compression)
        self.pack_from_bytes = checks.number("pack_from_bytes", pack_from_bytes, 0, BODY_BYTES_MAX + 1)
        self._packers: Executor | None = None

    def prepared(self, message: Message, own: Mapping[str, str] = NO_PAIRS) -> Outgoing:
        """One message, not compressed; with properties of the client's own."""
        self._instance.check_running()
        return prepare(message, self._instance.ids.next(), own)

    async def packed(self, outgoing: Outgoing) -> Outgoing:
        """The same compressed, if it is large enough."""
        size = len(outgoing.body)
        if size < self.pack_from_bytes:
            return outgoing
        if size < PACK_ASIDE_BYTES:
            return packed(outgoing, self._kind)
        if self._packers is None:
            self._packers = self._instance.surroundings.threads("bolide-pack", PACKERS)
        work = partial(packed, outgoing, self._kind)
        return await asyncio.get_running_loop().run_in_executor(self._packers, work)

    def close(self) -> None:
        if self._packers is not None:
            self._packers.shutdown(wait=False)


def _kind(compression: object) -> SysFlag:
    found = COMPRESSIONS.get(compression) if isinstance(compression, str) else None
    if found is None:
        raise ConfigError(f'compression is "zlib", "lz4" or "zstd", not {checks.described(compression)}')
    return found
