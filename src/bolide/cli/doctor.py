"""`bolide doctor`: why something does not work, in words.  One check after the other, with what to do about each."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bolide.cli.options import DEFAULT_DATA, DEFAULT_NAMESERVER, AsJson, Data, Nameserver
from bolide.cli.outcome import ExitCode
from bolide.cli.output import counted, show, takes_color, write_json
from bolide.model.printable import printable

if TYPE_CHECKING:
    from bolide.cli.findings import Finding

MARKS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "problem": ("✗", "red")}
BROKER_PORT = 10911


def doctor(
    probe: Annotated[
        bool, typer.Option("--probe", help="Also send a message to the topic bolide-doctor and read it back.")
    ] = False,
    data: Data = Path(DEFAULT_DATA),
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Find out why something does not work: this machine, the name servers, the brokers.

    Run it where the client runs: an address that is fine there may be useless here.
    Exit code 1 when there is a problem, 0 when there are at most warnings.

    [bold]Examples[/bold]

        bolide doctor
        bolide doctor -n 10.0.0.5:9876 --probe
    """
    findings = asyncio.run(_examine(nameserver, data, probe, quiet=as_json))
    problems = sum(finding.verdict.value == "problem" for finding in findings)
    if as_json:
        write_json({"problems": problems, "findings": [finding.as_json() for finding in findings]})
    else:
        show(f"\n{_conclusion(problems, findings, probe)}")
    if problems:
        raise typer.Exit(ExitCode.FAILED)


async def _examine(nameserver: str, data: Path, probe: bool, *, quiet: bool) -> "list[Finding]":
    findings: list[Finding] = []
    async for finding in _checks(nameserver, data, probe):
        findings.append(finding)
        if not quiet:
            _print(finding)
    return findings


async def _checks(nameserver: str, data: Path, probe: bool) -> "AsyncIterator[Finding]":
    from bolide.cli import checks_here, checks_there
    from bolide.model.addresses import parse_address, parse_addresses
    from bolide.net.clock import SystemClock

    clock = SystemClock()
    for finding in checks_here.check_python():
        yield finding
    yield checks_here.check_spark()
    yield checks_here.check_disk(data)
    yield checks_here.check_file_limit()
    yield checks_here.check_clock(clock.now_ms())
    addresses = parse_addresses(nameserver)
    known = None
    silent = []
    for (
        address
    ) in addresses:  # each by itself: clients work with any that is up, so one that is down is easily missed
        found = await checks_there.check_nameserver(address)
        yield found.finding
        known = known or found.info
        if not found.is_taken:
            silent.append(address)
    if known is None:
        for host, port in map(parse_address, silent):
            if host in ("127.0.0.1", "localhost", "::1"):
                yield checks_here.check_port("name server", port)
                yield checks_here.check_port("broker", BROKER_PORT)
        return
    async for finding in checks_there.check_brokers(known, clock):
        yield finding
    if probe:
        yield await checks_there.check_probe(nameserver, clock)


def _conclusion(problems: int, findings: "list[Finding]", probe: bool) -> str:
    """What to do next."""
    if problems:
        return f"{counted(problems, 'problem')}: do what stands behind each arrow, then run this again"
    found = counted(sum(finding.verdict.value == "warning" for finding in findings), "warning")
    rest = "" if probe else "; --probe sends a message and reads it back"
    return f"no problems, {found}{rest}"


def _print(finding: "Finding") -> None:
    mark, color = MARKS[finding.verdict.value]
    if not (sys.stdout.encoding or "").lower().startswith("utf"):
        mark = f"[{finding.verdict.value}]"
    if takes_color(sys.stdout):
        mark = typer.style(mark, fg=color)
    show(f"{mark} {printable(f'{finding.check}: {finding.text}')}")
    if finding.advice:
        show(f"    -> {printable(finding.advice)}")
