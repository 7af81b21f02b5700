"""Both forms of message id."""

from datetime import UTC, datetime

import pytest

from bolide.model.errors import InvalidRequest
from bolide.model.offsets import LogOffset
from bolide.record.message_id import UniqueIds, format_host, format_offset_id, parse_offset_id

LOCALHOST = bytes([127, 0, 0, 1])
BROKER = LOCALHOST + (10911).to_bytes(4, "big")


class FixedClock:
    def __init__(self, moment: datetime) -> None:
        self.moment_ms = round(moment.timestamp() * 1000)

    def now_ms(self) -> int:
        return self.moment_ms

    def monotonic_ms(self) -> int:
        return self.moment_ms


def test_an_offset_id_is_host_port_and_offset_in_hexadecimal() -> None:
    assert format_offset_id(BROKER, LogOffset(1024)) == "7F00000100002A9F0000000000000400"
    assert parse_offset_id("7F00000100002A9F0000000000000400") == ("127.0.0.1:10911", 1024)


def test_an_offset_id_of_an_ipv6_broker_has_56_digits_and_reads_back() -> None:
    """ST-12."""
    host = bytes(15) + b"\x01" + (10911).to_bytes(4, "big")
    text = format_offset_id(host, LogOffset(5))
    assert len(text) == 56
    assert parse_offset_id(text) == ("[::1]:10911", 5)
    assert format_host(host) == "[::1]:10911"


@pytest.mark.parametrize("text", ["", "zz", "7F0000", "7F00000100002A9F000000000000040", "0" * 40])
def test_text_that_is_no_offset_id_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="not an offset message id"):
        parse_offset_id(text)


def test_a_unique_id_carries_address_process_chance_time_of_month_and_counter() -> None:
    clock = FixedClock(datetime(2026, 3, 1, 0, 0, 1, tzinfo=UTC))
    ids = UniqueIds(LOCALHOST, 0x12345, 0xCAFEBABE, clock, UTC)
    assert ids.next() == "7F000001" + "2345" + "CAFEBABE" + "000003E8" + "0001"
    assert ids.next() == "7F000001" + "2345" + "CAFEBABE" + "000003E8" + "0002"


def test_the_time_in_a_unique_id_starts_again_with_the_month() -> None:
    clock = FixedClock(datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC))
    ids = UniqueIds(LOCALHOST, 1, 2, clock, UTC)
    assert int(ids.next()[20:28], 16) == (31 * 86400 - 1) * 1000
    clock.moment_ms += 1000
    assert int(ids.next()[20:28], 16) == 0
    clock.moment_ms -= 1000  # a clock that steps back over the turn
    assert int(ids.next()[20:28], 16) == (31 * 86400 - 1) * 1000


def test_unique_ids_do_not_repeat_within_one_millisecond() -> None:
    ids = UniqueIds(LOCALHOST, 1, 2, FixedClock(datetime(2026, 3, 4, tzinfo=UTC)), UTC)
    assert len({ids.next() for _ in range(65536)}) == 65536
