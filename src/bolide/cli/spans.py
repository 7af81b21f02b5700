"""How long and how large, in words: for people who look at lags, uptimes and disks."""

_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000))


def format_span(span_ms: int) -> str:
    """The two largest units that count.

    >>> format_span(0), format_span(900), format_span(61_000), format_span(7_200_000), format_span(90_061_000)
    ('0 s', '0.9 s', '1 min 1 s', '2 h', '1 d 1 h')
    """
    if span_ms < 1000:
        return f"{span_ms / 1000:.1f} s" if span_ms >= 50 else "0 s"
    parts: list[str] = []
    for name, size_ms in _UNITS:
        count, span_ms = divmod(span_ms, size_ms)
        if count:
            parts.append(f"{count} {name}")
        elif parts:
            break
    return " ".join(parts[:2])


def format_bytes(size: int) -> str:
    """
    >>> format_bytes(0), format_bytes(1500), format_bytes(5 * 1024**3)
    ('0 B', '1.5 KiB', '5.0 GiB')
    """
    number = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024:
            return f"{size} B" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} TiB"
