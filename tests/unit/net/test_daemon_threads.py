"""Threads for functions that may never return."""

import gc
import subprocess
import sys
import threading
import weakref
from concurrent.futures import CancelledError

import pytest

from bolide.net.daemon_threads import DaemonThreads
from tests.peers.waiting import wait_until


def test_so_many_calls_run_at_once_and_the_others_wait_their_turn() -> None:
    threads = DaemonThreads("test", 2)
    may_end, running = threading.Event(), list[int]()

    def work(number: int) -> int:
        running.append(number)
        assert may_end.wait(10)
        return number

    futures = [threads.submit(work, number) for number in range(5)]
    wait_until(lambda: len(running) == 2, 10, lambda: f"{running}")
    may_end.set()
    assert [future.result(10) for future in futures] == [0, 1, 2, 3, 4]
    threads.shutdown()
    assert not any(thread.name.startswith("test_") for thread in threading.enumerate())


def test_one_thread_does_for_calls_that_follow_each_other() -> None:
    threads = DaemonThreads("test", 8)
    names = set()
    for _ in range(20):
        names.add(threads.submit(lambda: threading.current_thread().name).result(10))
        wait_until(lambda: threads._waiting > 0, 10, lambda: "the thread waits for work")
    assert names == {"test_0"}
    threads.shutdown()


@pytest.mark.parametrize("kind", [ValueError, SystemExit, KeyboardInterrupt])
def test_what_a_call_raises_ends_that_call_alone(kind: type[BaseException]) -> None:
    threads = DaemonThreads("test", 1)

    def fail() -> None:
        raise kind("as the test wants it")

    assert isinstance(threads.submit(fail).exception(10), kind)
    assert threads.submit(lambda: 42).result(10) == 42
    threads.shutdown()


def test_a_shutdown_cancels_what_waits_if_told_so_and_takes_no_more() -> None:
    threads = DaemonThreads("test", 1)
    begun, may_end = threading.Event(), threading.Event()

    def work() -> bool:
        begun.set()
        return may_end.wait(10)

    running, waiting = threads.submit(work), threads.submit(work)
    assert begun.wait(10)
    threads.shutdown(wait=False, cancel_futures=True)
    with pytest.raises(CancelledError):
        waiting.result(10)
    may_end.set()
    assert running.result(10) is True
    with pytest.raises(RuntimeError, match="shut down"):
        threads.submit(work)


def test_what_waits_at_a_shutdown_is_done_unless_it_is_cancelled() -> None:
    threads = DaemonThreads("test", 1)
    futures = [threads.submit(lambda number=number: number) for number in range(100)]
    threads.shutdown(wait=False)
    assert [future.result(10) for future in futures] == list(range(100))


def test_what_a_call_was_given_is_not_kept_behind_it() -> None:
    class Thing:
        pass

    threads, thing = DaemonThreads("test", 1), Thing()
    alive = weakref.ref(thing)
    threads.submit(lambda _: None, thing).result(10)
    del thing
    wait_until(lambda: gc.collect() >= 0 and alive() is None, 10, lambda: "it is still there")
    threads.shutdown()


def test_a_process_ends_without_them() -> None:
    code = """
import threading
from bolide.net.surroundings import Surroundings
begun = threading.Event()
def for_ever():
    begun.set()
    threading.Event().wait()
Surroundings().threads("test", for_application=True).submit(for_ever)
assert begun.wait(10)
"""
    subprocess.run([sys.executable, "-c", code], timeout=60, check=True)
