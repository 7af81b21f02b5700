"""How a benchmark is shown: live on a terminal, a line now and then in a log, and at the end in full."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bolide.cli.bench_figures import Latencies, Report
from bolide.cli.bench_verdict import Bottleneck
from bolide.cli.output import can_be_steered, say, write_line
from bolide.cli.progress import status_line

MIB = 1024 * 1024

Look = Callable[[Report, float, Bottleneck], None]
"""What is known now, the rate of the last moment, and what holds it back."""


@contextmanager
def live(what: str, unit: str, *, quiet: bool) -> Iterator[Look]:
    """A function to call again and again."""
    if quiet:
        yield lambda report, rate, held: None
        return
    if not can_be_steered(sys.stderr):
        with status_line() as write:
            yield lambda report, rate, held: write(_line(what, unit, report, rate, held))
        return
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table

    def table(report: Report, rate: float, held: Bottleneck) -> Table:
        shown = Table(
            show_header=False, box=None, pad_edge=False, title=f"bolide bench {what}", title_justify="left"
        )
        for name, value in rows(report, unit, rate):
            shown.add_row(name, value)
        shown.add_row("held back by", held.text)
        return shown

    with Live(console=Console(stderr=True), transient=True, auto_refresh=False) as display:
        yield lambda report, rate, held: display.update(table(report, rate, held), refresh=True)


def _line(what: str, unit: str, report: Report, rate: float, held: Bottleneck) -> str:
    figures = ", ".join(f"{name} {value}" for name, value in rows(report, unit, rate))
    return f"{what}: {figures}; held back by {held.text}"


def rows(report: Report, unit: str, rate: float | None = None) -> list[tuple[str, str]]:
    seconds = max(report.wall_s, 1e-9)
    mean = report.messages / seconds
    now = "" if rate is None else f", now {rate:,.0f}"
    shown = [
        ("messages", f"{report.messages:,} in {report.wall_s:.1f} s"),
        ("rate", f"{mean:,.0f}/s{now}"),
        ("bytes", f"{report.size_bytes / seconds / MIB:,.1f} MiB/s"),
        (unit, format_latencies(report.latencies)),
    ]
    if report.failed:
        shown.append(("failed", f"{report.failed:,}"))
    return shown


def format_latencies(latencies: Latencies) -> str:
    return " ".join(
        f"{name.removesuffix('_ms').replace('p999', 'p99.9')} {value:,.2f} ms"
        for name, value in latencies.told().items()
    )


def write_result(result: dict[str, Any], report: Report, unit: str, held: Bottleneck) -> None:
    for name, value in rows(report, unit):
        write_line(f"{name:<17}{value}")
    client, machine = result["client_processor"], result["machine_processors"]
    write_line(f"{'processor':<17}{client:.0%} of one core for this client, {machine:.0%} of the machine")
    if result.get("not_received"):
        write_line(f"{'not received':<17}{result['not_received']:,}")
    for text, count in list(report.errors.items())[:5]:
        say(f"failed {count:,} times: {text}")
    write_line(f"{'held back by':<17}{held.text}")
