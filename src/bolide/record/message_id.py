"""Message ids, in both forms.

    offset id    store host (address, port in 4 bytes) and log offset in 8: where the message lies
    unique id    address, pid (2), a random number (4), milliseconds of the month (4), a counter (2)

Both are upper-case hexadecimal.  The broker gives a message its offset id, the producer its unique id; what
applications see as the message id is the unique one, because it exists before the message is sent.  Everything that
makes a unique id unique comes in through the constructor.
"""

import ipaddress
from datetime import UTC, datetime, tzinfo

from bolide.model.clock import Clock
from bolide.model.errors import InvalidRequest
from bolide.model.offsets import LogOffset
from bolide.record.layout import HOST_V4_BYTES, HOST_V6_BYTES

_OFFSET_BYTES = 8
_PORT_BYTES = 4
_ID_BYTES = (HOST_V4_BYTES + _OFFSET_BYTES, HOST_V6_BYTES + _OFFSET_BYTES)
_COUNTER_MASK = 0xFFFF


def format_host(host: bytes) -> str:
    """`ip:port` or `[ip]:port` from a record's host bytes."""
    address = ipaddress.ip_address(host[:-_PORT_BYTES])
    port = int.from_bytes(host[-_PORT_BYTES:], "big")
    return f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"


def format_offset_id(store_host: bytes, log_offset: LogOffset) -> str:
    """The id of the record at `log_offset` of the broker at `store_host` (record bytes: address, port)."""
    return (store_host + log_offset.to_bytes(_OFFSET_BYTES, "big", signed=True)).hex().upper()


def parse_offset_id(message_id: str) -> tuple[str, LogOffset]:
    """The broker's address and the record's log offset; `InvalidRequest` when the text is no offset id."""
    try:
        raw = bytes.fromhex(message_id)
    except ValueError:
        raw = b""
    if len(raw) not in _ID_BYTES:
        raise InvalidRequest(f"{message_id[:64]!r} is not an offset message id (32 or 56 hexadecimal digits)")
    log_offset = LogOffset(int.from_bytes(raw[-_OFFSET_BYTES:], "big", signed=True))
    return format_host(raw[:-_OFFSET_BYTES]), log_offset


class UniqueIds:
    """Gives out unique ids.  `address` is 4 or 16 bytes, `chance` any 32-bit number of this client's own.

    The month begins by the local calendar, as Java's clients count it: admin tools read the time back from an id.
    """

    def __init__(
        self, address: bytes, pid: int, chance: int, clock: Clock, zone: tzinfo | None = None
    ) -> None:
        head = address + (pid & 0xFFFF).to_bytes(2, "big") + (chance & 0xFFFFFFFF).to_bytes(4, "big")
        self._prefix = head.hex().upper()
        self._clock = clock
        self._zone = zone
        self._month_start_ms = 0
        self._month_end_ms = 0
        self._counter = 0

    def next(self) -> str:
        self._counter = (self._counter + 1) & _COUNTER_MASK
        return f"{self.head()}{self._counter:04X}"

    def head(self) -> str:
        """All but the counter, for who counts by himself: from ids of this one no other ids may be taken then."""
        now_ms = self._clock.now_ms()
        if not self._month_start_ms <= now_ms < self._month_end_ms:
            self._turn_month(now_ms)
        return f"{self._prefix}{now_ms - self._month_start_ms:08X}"

    def _turn_month(self, now_ms: int) -> None:
        now = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone(self._zone)
        start = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        end = start.replace(year=start.year + start.month // 12, month=start.month % 12 + 1)
        self._month_start_ms = round(start.timestamp() * 1000)
        self._month_end_ms = round(end.timestamp() * 1000)
