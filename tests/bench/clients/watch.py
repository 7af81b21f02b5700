"""What every load program has: the body, a watch, a tally of callbacks, and how it is started.

Runs on either side, with either side's interpreter: it knows neither bolide nor a peer.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

BODY = b"x" * 128
READ_AT_ONCE = 2_000
"""Messages that a consumer asks for at a time."""
IDLE_SECONDS = 60
"""Nothing for so long: then nothing more comes."""

Answer = dict[str, float]
Verb = Callable[[str, str, int, int], Answer]


class Tally:
    """What callbacks have heard, each with the error first or last."""

    def __init__(self) -> None:
        self.stored = self.failed = 0

    def receipt(self, _: object, error: object) -> None:
        if error is None:
            self.stored += 1
        else:
            self.failed += 1

    def delivery(self, error: object, _: object) -> None:
        if error is None:
            self.stored += 1
        else:
            self.failed += 1


class Watch:
    """Time by the clock and of the processor, of this process, from now on."""

    def __init__(self) -> None:
        self._began, self._cpu = time.perf_counter(), time.process_time()

    def answer(self, done: int) -> Answer:
        seconds, cpu = time.perf_counter() - self._began, time.process_time() - self._cpu
        return {"done": done, "seconds": seconds, "cpu_seconds": cpu}


def resident_bytes() -> int:
    """What this process has in memory now."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))


def main(verbs: Mapping[str, Verb]) -> None:
    """`program VERB ADDRESS TOPIC COUNT WARM`; the last line that it prints is its answer."""
    verb, address, topic, count, warm = sys.argv[1:]
    print(json.dumps(verbs[verb](address, topic, int(count), int(warm))))
