"""Numbers, sizes, spans and moments as people read them, in a page.  All times are in UTC."""

from datetime import UTC, datetime

_THOUSANDS = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (1000, "k"))
_SPANS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000))
_CALENDAR_MS = (-62_135_596_800_000, 253_402_300_799_999)
DAY_MS = 86_400_000


def count(number: float) -> str:
    """
    >>> count(1234567), count(0.5), count(12.34)
    ('1,234,567', '0.5', '12.3')
    """
    return f"{number:,.0f}" if number >= 100 or number == int(number) else f"{number:.3g}"


def short_count(number: float) -> str:
    """For an axis.

    >>> short_count(0), short_count(1500), short_count(20_000_000), short_count(0.5)
    ('0', '1.5k', '20M', '0.5')
    """
    for size, unit in _THOUSANDS:
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"


def size(number: float) -> str:
    """
    >>> size(0), size(1536), size(5 * 1024**3)
    ('0 B', '1.5 KiB', '5 GiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if number < 1024 or unit == "TiB":
            break
        number /= 1024
    return f"{number:,.0f} {unit}" if number >= 100 else f"{number:.3g} {unit}"


def span(span_ms: float) -> str:
    """The two largest units that count; milliseconds where a second is long.

    >>> span(0), span(2.5), span(1500), span(61_000), span(90_061_000), span(-20)
    ('0 ms', '2.5 ms', '1.5 s', '1 min 1 s', '1 d 1 h', '−20 ms')
    """
    if span_ms < 0:
        return f"−{span(-span_ms)}"
    if span_ms < 1000:
        return f"{span_ms:.3g} ms"
    if span_ms < 10_000:
        return f"{span_ms / 1000:.3g} s"
    left, parts = int(span_ms), list[str]()
    for name, unit_ms in _SPANS:
        number, left = divmod(left, unit_ms)
        if number:
            parts.append(f"{number} {name}")
        elif parts:
            break
    return " ".join(parts[:2])


def share(part: float) -> str:
    """
    >>> share(0), share(0.0004), share(0.5), share(1)
    ('0 %', '< 0.1 %', '50.0 %', '100 %')
    """
    if 0 < part < 0.001:
        return "< 0.1 %"
    return short_share(part) if part in (0, 1) else f"{part * 100:.1f} %"


def short_share(part: float) -> str:
    """For an axis.

    >>> short_share(0.4)
    '40 %'
    """
    return f"{part * 100:.3g} %"


def moment(moment_ms: int) -> str:
    """
    >>> moment(1_700_000_000_000)
    '2023-11-14 22:13:20'
    """
    found = _utc(moment_ms)
    return f"{moment_ms} ms" if found is None else found.strftime("%Y-%m-%d %H:%M:%S")


def tick(moment_ms: int, step_ms: int) -> str:
    """A moment on an axis whose marks are so far apart: a day where it begins, else the time.

    >>> tick(1_700_006_400_000, 3_600_000), tick(1_700_000_000_000, 60_000), tick(1_700_000_001_000, 1000)
    ('15 Nov', '22:13', '22:13:21')
    """
    found = _utc(moment_ms)
    if found is None:
        return ""
    if moment_ms % DAY_MS == 0:
        return f"{found.day} {found:%b %Y}" if step_ms > 300 * DAY_MS else f"{found.day} {found:%b}"
    return found.strftime("%H:%M:%S" if step_ms < 60_000 else "%H:%M")


def _utc(moment_ms: int) -> datetime | None:
    if not _CALENDAR_MS[0] <= moment_ms <= _CALENDAR_MS[1]:
        return None
    return datetime.fromtimestamp(moment_ms / 1000, UTC)
