"""Runs the scene once: starts the measured process, does every kind of work in turn, and reads the stopwatch."""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path

from tests.bench.callbacks.driver import Driver
from tests.bench.callbacks.kinds import KINDS, PREPARATION
from tests.bench.callbacks.scene import Scene
from tests.bench.callbacks.stopwatch import Longest
from tests.bench.callbacks.work import WORK
from tests.bench.descriptors import allow_descriptors
from tests.bench.sides import Untrustworthy
from tests.peers.built import ROOT
from tests.peers.process import ManagedProcess

SPARE_DESCRIPTORS = 200


def longest_callbacks(scene: Scene, home: Path, say: Callable[[str], None]) -> dict[str, Longest]:
    """By key of the kind, in their order."""
    data = home / "data"
    scene.write(data)
    process = ManagedProcess(
        "measured server",
        [sys.executable, "-m", "tests.bench.callbacks.server", data],
        home / "stderr.log",
        env={"PYTHONPATH": str(ROOT)},
        piped=True,
    )
    try:
        found = asyncio.run(_drive(process, data, scene, say))
        process.stdin.close()
        process.wait_exit()
    finally:
        process.kill()
    if missing := [title for key, title in KINDS.items() if key not in found]:
        raise Untrustworthy(f"no callback was seen of: {', '.join(missing)}")
    return {key: found[key] for key in KINDS}


def table_of(found: dict[str, Longest]) -> list[str]:
    """As Markdown: what each longest callback was, and where its time went."""
    head = [
        "| kind of work | longest, ms | of it at work | of it garbage | beside it without a processor | callback |",
        "|" + " --- |" * 6,
    ]
    return head + [
        f"| {KINDS[key]} | {one.ms:.1f} | {one.processor_ms:.1f} | {one.garbage_ms:.1f} | {one.delayed_ms:.1f}"
        f" | `{one.where}` |"
        for key, one in found.items()
    ]


async def _drive(
    process: ManagedProcess, data: Path, scene: Scene, say: Callable[[str], None]
) -> dict[str, Longest]:
    ready = process.stdout.readline()
    if not ready:
        raise Untrustworthy(process.log_tail())
    allow_descriptors(scene.held_pulls + SPARE_DESCRIPTORS)
    driver = Driver(process, data, scene, **json.loads(ready))
    try:
        driver.command(f"kind {PREPARATION}")
        await driver.gather_crowd()
        for key, work in WORK.items():
            steps = work(driver)
            await anext(steps)
            await driver.quiet()
            driver.command(f"kind {key}")
            await anext(steps, None)
            await driver.quiet()
            driver.command(f"kind {PREPARATION}")
            say(f"  {KINDS[key]}")
        report = driver.command("report")
    finally:
        await driver.close()
    return {key: Longest(**fields) for key, fields in report.items()}
