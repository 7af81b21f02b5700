"""Many inputs for many targets, on one or several processes.

Input number n of a target is the same for the same seed, whoever makes it.  Inputs are made in blocks, and a worker
notes each one in shared memory before it is tried: when a sanitizer or a signal ends the worker, the input is there.
An input that takes more than a second of processor time, or tens of megabytes, is a finding too.
"""

import logging
import mmap
import multiprocessing
import os
import random
import resource
import signal
import struct
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from types import FrameType
from typing import Any

from tests.fuzz.mutate import SIZE_BYTES_MAX, Mutator
from tests.fuzz.scratch import remove_scratch
from tests.fuzz.target import Target, was_taken
from tests.fuzz.targets import TARGETS, grown_inputs, valid_inputs

BLOCK_INPUTS = 1000
SECONDS_MAX = 1.0
GROWTH_KIB_MAX = 64 * 1024
STUCK_SECONDS = 60
"""A worker that is at the same input for so long hangs in code that no alarm ends."""

PARENT_SECONDS = 5
"""So often an idle worker looks whether somebody is left to work for."""

FINDINGS_MAX = 20
MENDED = 0.5
"""So many inputs have their lengths and checksums made right again."""

_LENGTH = struct.Struct(">I")


class TooMuch(BaseException):
    """No error that a parser could catch: this input takes too long, or too much memory."""


@dataclass(frozen=True)
class Finding:
    target: str
    data: bytes
    why: str

    @property
    def kind(self) -> tuple[str, str]:
        """Findings of one kind have one cause, as far as can be told."""
        return self.target, self.why.partition(": ")[0]

    def __str__(self) -> str:
        replay = f"python -m tests.fuzz --target {self.target} --replay {self.data.hex()}"
        return f"{self.target}: {self.why}\n  {replay}"


@dataclass
class Tally:
    inputs: dict[str, int] = field(default_factory=dict)
    taken: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def total(self) -> int:
        return sum(self.inputs.values())

    def add(self, target: str, inputs: int, taken: int, findings: Sequence[Finding]) -> None:
        self.inputs[target] = self.inputs.get(target, 0) + inputs
        self.taken[target] = self.taken.get(target, 0) + taken
        for finding in findings:
            if finding.kind not in {known.kind for known in self.findings}:
                self.findings.append(finding)

    def __str__(self) -> str:
        rate = self.total / max(self.seconds, 0.001)
        return (
            f"{self.total} inputs for {len(self.inputs)} targets in {self.seconds:.0f} s ({rate:.0f} a second):"
            f" {sum(self.taken.values())} taken, {len(self.findings)} findings"
        )


@dataclass(frozen=True)
class Block:
    target: str
    number: int
    inputs: int
    skip: int = 0
    """Inputs that were tried before a worker ended."""


def inputs_of(target: Target, seed: int, block: Block) -> Iterator[bytes]:
    """The inputs of one block; those that others are made from come first."""
    valid, grown = valid_inputs(target.name), grown_inputs(target.name)
    given = (*valid, *grown)
    chance = random.Random(f"{seed}:{target.name}:{block.number}")
    mutator = Mutator(chance, valid, grown, target.tokens)
    first = block.number * BLOCK_INPUTS
    for number in range(first, first + block.inputs):
        if number < len(given):
            yield given[number]
            continue
        data = mutator.next()
        yield target.mend(data)[:SIZE_BYTES_MAX] if chance.random() < MENDED else data


def blocks(targets: Sequence[Target], inputs: int) -> list[Block]:
    """How the inputs are given to targets, by their shares; in turns, so that a short run has something of each."""
    shares = sum(target.share for target in targets)
    found: list[tuple[float, Block]] = []
    for target in targets:
        left = max(1, inputs * target.share // shares)
        count = -(-left // BLOCK_INPUTS)
        for number in range(count):
            block = Block(target.name, number, min(BLOCK_INPUTS, left - number * BLOCK_INPUTS))
            found.append((number / count, block))
    return [block for _, block in sorted(found, key=lambda one: (one[0], one[1].target))]


def try_input(target: Target, data: bytes) -> tuple[bool, str]:
    """Whether it was taken, and what is wrong; empty when nothing is."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    signal.setitimer(signal.ITIMER_PROF, SECONDS_MAX)
    try:
        taken = was_taken(target, data)
    except TooMuch as error:
        return False, str(error)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{os.path.basename(place.filename)}:{place.lineno}"
        return False, f"{type(error).__name__} at {where}: {str(error)[:2000]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return taken, f"it takes {grown} KiB of memory" if grown > GROWTH_KIB_MAX else ""


@contextmanager
def on_guard() -> Iterator[None]:
    """Around all inputs of a process: an alarm for long ones, and nobody hears what parsers log of bad files."""
    before = signal.signal(signal.SIGPROF, _on_alarm)
    level = logging.root.manager.disable
    logging.disable()
    try:
        yield
    finally:
        logging.disable(level)
        signal.signal(signal.SIGPROF, before)


def _on_alarm(number: int, frame: FrameType | None) -> None:
    raise TooMuch(f"it takes more than {SECONDS_MAX} s")


# ---- on this process ----------------------------------------------------------------------------------------


def explore(targets: Sequence[Target], inputs: int, seed: int) -> Tally:
    """Try them here, on guard; for few inputs."""
    began = time.perf_counter()
    tally, by_name = Tally(), {target.name: target for target in targets}
    for block in blocks(targets, inputs):
        target, taken, findings = by_name[block.target], 0, []
        for data in inputs_of(target, seed, block):
            was, why = try_input(target, data)
            taken += was
            if why:
                findings.append(Finding(target.name, data, why))
        tally.add(block.target, block.inputs, taken, findings)
        if len(tally.findings) >= FINDINGS_MAX:
            break
    tally.seconds = time.perf_counter() - began
    return tally


# ---- on others ----------------------------------------------------------------------------------------------


class _Worker:
    """A process that tries blocks, and the memory in which it notes what it is at."""

    def __init__(self, seed: int) -> None:
        self._context = multiprocessing.get_context("fork")
        self._seed = seed
        self._file = tempfile.NamedTemporaryFile(prefix="fuzz-input-")  # noqa: SIM115 - as long as the worker
        self._file.truncate(2 * _LENGTH.size + SIZE_BYTES_MAX)
        self._noted = mmap.mmap(self._file.fileno(), 0)
        self.block: Block | None = None
        self._at = (0.0, -1)  # when it was last seen at another input, and at which
        self._start()

    def _start(self) -> None:
        self.pipe, theirs = self._context.Pipe()
        self._process = self._context.Process(
            target=_work, args=(theirs, self._file.name, self._seed, os.getpid()), daemon=True
        )
        self._process.start()
        theirs.close()

    def give(self, block: Block) -> None:
        self.block, self._at = block, (time.monotonic(), -1)
        self.pipe.send(block)

    def result(self) -> tuple[int, int, list[Finding]]:
        """Inputs tried, how many were taken, and findings.  A worker that is gone is a finding, and is replaced."""
        block = self.block
        assert block is not None
        try:
            taken, findings = self.pipe.recv()
            self.block = None
            return block.inputs - block.skip, taken, findings
        except EOFError:
            self._join()
            done = _LENGTH.unpack_from(self._noted)[0]
            finding = Finding(block.target, self._input(), f"the process ended: {self._process.exitcode}")
            self._start()
            rest = Block(block.target, block.number, block.inputs, skip=done + 1)
            self.block = None
            if rest.skip < rest.inputs:
                self.give(rest)
            return done + 1 - block.skip, 0, [finding]

    def end_if_stuck(self) -> None:
        number = _LENGTH.unpack_from(self._noted)[0]
        if number != self._at[1]:
            self._at = (time.monotonic(), number)
        elif time.monotonic() - self._at[0] > STUCK_SECONDS:
            self._process.kill()

    def _input(self) -> bytes:
        size = _LENGTH.unpack_from(self._noted, _LENGTH.size)[0]
        return self._noted[2 * _LENGTH.size : 2 * _LENGTH.size + size]

    def close(self) -> None:
        self._process.kill()
        self._join()
        self._noted.close()
        self._file.close()

    def _join(self) -> None:
        self._process.join()
        remove_scratch(self._process.pid or 0)


def explore_with_workers(
    targets: Sequence[Target],
    inputs: int,
    seed: int,
    workers: int,
    on_progress: Callable[[Tally], None] = lambda tally: None,
) -> Tally:
    """Try them on so many processes, in any order."""
    began = time.perf_counter()
    tally = Tally()
    waiting = iter(blocks(targets, inputs))
    crew = [_Worker(seed) for _ in range(workers)]
    try:
        for worker in crew:
            _give_next(worker, waiting)
        while busy := [worker for worker in crew if worker.block is not None]:
            ready: list[Any] = wait([worker.pipe for worker in busy], timeout=STUCK_SECONDS)
            for worker in busy:
                if worker.pipe not in ready:
                    worker.end_if_stuck()
                    continue
                target = worker.block.target if worker.block is not None else ""
                tried, taken, findings = worker.result()
                tally.add(target, tried, taken, findings)
                tally.seconds = time.perf_counter() - began
                on_progress(tally)
                if worker.block is None and len(tally.findings) < FINDINGS_MAX:
                    _give_next(worker, waiting)
    finally:
        for worker in crew:
            worker.close()
    return tally


def _give_next(worker: _Worker, waiting: Iterator[Block]) -> None:
    block = next(waiting, None)
    if block is not None:
        worker.give(block)


def _work(pipe: Connection, noted_path: str, seed: int, parent: int) -> None:
    """What a worker does until nobody gives it more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with on_guard(), open(noted_path, "r+b") as file, mmap.mmap(file.fileno(), 0) as noted:
            while os.getppid() == parent:  # other workers may hold the other end of the pipe, too
                if pipe.poll(PARENT_SECONDS):
                    pipe.send(_try_block(pipe.recv(), seed, noted))
    except (EOFError, BrokenPipeError):
        pass
    remove_scratch(os.getpid())


def _try_block(block: Block, seed: int, noted: mmap.mmap) -> tuple[int, list[Finding]]:
    target, taken, findings = TARGETS[block.target], 0, []
    for number, data in enumerate(inputs_of(target, seed, block)):
        if number < block.skip:
            continue
        noted[: 2 * _LENGTH.size] = _LENGTH.pack(number) + _LENGTH.pack(len(data))
        noted[2 * _LENGTH.size : 2 * _LENGTH.size + len(data)] = data
        was, why = try_input(target, data)
        taken += was
        if why:
            findings.append(Finding(target.name, data, why))
    return taken, findings
