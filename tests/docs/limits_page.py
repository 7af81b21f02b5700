"""docs/limits.md, written from the table in bolide/model/limits: `python -m tests.docs.limits_page` writes it."""

from pathlib import Path

from bolide.model import limits
from bolide.model.limit import KIB, MIB, Limit, Where

PAGE = Path(__file__).resolve().parents[2] / "docs" / "limits.md"

HEAD = """# Limits

Whatever others send is bounded before it costs anything: bytes, entries, waiting requests, time. This page is
written from the table in [`model/limits`](../src/bolide/model/limits) by `make fix`; a test holds the two
together. [SECURITY.md](../SECURITY.md) says what is promised with them.

No setting moves a limit. Some settings choose less, and go up to the limit that names them.
"""


def rendered() -> str:
    sections = [HEAD]
    for where in Where:
        rows = [(name, limit) for name, limit in limits.table().items() if limit.where is where]
        if rows:
            sections.append(
                f"## {where.value}\n\n"
                "| at most | of | more than that | bounds the setting |\n| ---: | --- | --- | --- |\n"
            )
            sections[-1] += "".join(
                f"| {amount(name, limit)} | {limit.of} | {limit.beyond} | {_settings(limit)} |\n"
                for name, limit in rows
            )
    return "\n".join(sections)


def amount(name: str, limit: Limit) -> str:
    if "_BYTES" in name and limit >= MIB and limit % MIB == 0:
        return f"{limit // MIB:,} MiB"
    if "_BYTES" in name and limit >= KIB and limit % KIB == 0:
        return f"{limit // KIB:,} KiB"
    return f"{int(limit):,}" + (" ms" if "_MS" in name else "")


def _settings(limit: Limit) -> str:
    return ", ".join(f"`{setting}`" for setting in limit.bounds)


if __name__ == "__main__":
    PAGE.write_text(rendered())
