"""Ctrl-C around Spark, for commands: it ends them in one line, and leaves no JVM behind.

Until the JVM has said where it listens nobody could end it: it would wait for ever for a Python that has gone.  So
an interrupt waits until then, and looks again now and then.  py4j writes a traceback for each; it says nothing to
whoever pressed the keys.
"""

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Any

from bolide.model.errors import Interrupted

LOOK_S = 0.1
STOPPED = "stopped before Spark was ready; nothing was begun"


@contextmanager
def interrupted_in_one_piece() -> Iterator[None]:
    """While Spark starts: `Interrupted`, as soon as its JVM ends with this process."""
    if (
        current_thread() is not main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield  # whoever has made it otherwise knows why
        return
    is_asked = False

    def heard(number: int, frame: Any) -> None:
        nonlocal is_asked
        is_asked = True
        if _has_jvm():
            raise KeyboardInterrupt
        signal.setitimer(signal.ITIMER_REAL, LOOK_S)

    signal.signal(signal.SIGINT, heard)
    alarm = signal.signal(signal.SIGALRM, heard)
    try:
        yield
    except KeyboardInterrupt:
        is_asked = True
    except Exception:
        if not is_asked:
            raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, alarm)
        # Spark has taken it, to end its jobs by a call in the middle of another one, which py4j cannot
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if is_asked:
        raise Interrupted(STOPPED)


class Interrupts:
    """Whether there was one."""

    def __init__(self) -> None:
        self.came = False

    def heard(self, number: int, frame: Any) -> None:
        self.came = True
        logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
        raise KeyboardInterrupt


@contextmanager
def noted_interrupts() -> Iterator[Interrupts]:
    """While Spark works.  An interrupt ends a call to the JVM in its middle, and the next one on its way out may fail
    for that: what comes out is another error then, and py4j writes its traceback."""
    interrupts, py4j = Interrupts(), logging.getLogger("py4j")
    level = py4j.level
    heard = interrupts.heard
    if current_thread() is main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, heard)
    try:
        yield interrupts
    finally:
        py4j.setLevel(level)
        if signal.getsignal(signal.SIGINT) is heard:
            signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def untold_interrupts() -> Iterator[None]:
    """What py4j logs of them goes nowhere."""
    root = logging.getLogger()  # py4j has no logger of its own for this
    root.addFilter(_is_no_interrupt)
    try:
        yield
    finally:
        root.removeFilter(_is_no_interrupt)


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    return record.exc_info is None or not isinstance(record.exc_info[1], KeyboardInterrupt)


def _has_jvm() -> bool:
    """Whether it is connected: from then on it ends when this process does."""
    from pyspark import SparkContext

    return getattr(SparkContext, "_gateway", None) is not None
