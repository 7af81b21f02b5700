"""Running in the foreground: how a server's end becomes the end of the command."""

import asyncio
import os
import signal
from collections.abc import Callable

import pytest

from bolide.cli import serve
from bolide.cli.outcome import CannotStart, ExitCode, StoreFailed, exit_code_of, explain
from bolide.model.errors import ConfigError, StoreError


class FakeService:
    """Says what was done to it; `start_error` and `failure` are what goes wrong."""

    def __init__(
        self,
        start_error: Exception | None = None,
        failure: OSError | None = None,
        stop_error: Exception | None = None,
    ) -> None:
        self.start_error = start_error
        self.failure = failure
        self.stop_error = stop_error
        self.done: list[str] = []

    async def start(self) -> None:
        if self.start_error is not None:
            raise self.start_error
        self.done.append("start")

    async def stop(self) -> None:
        self.done.append("stop")
        if self.stop_error is not None:
            raise self.stop_error

    async def failed(self) -> BaseException:
        if self.failure is not None:
            return self.failure
        error: BaseException = await asyncio.get_running_loop().create_future()
        return error


def run(service: FakeService, announce: Callable[[], None]) -> None:
    asyncio.run(serve._serve(service, announce))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_in_order(number: signal.Signals) -> None:
    service = FakeService()
    run(service, lambda: os.kill(os.getpid(), number))
    assert service.done == ["start", "stop"]


def test_a_second_signal_ends_the_process_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr("os._exit", ended.append)
    stop = asyncio.Event()
    serve._on_signal(stop, lambda: None)
    assert (stop.is_set(), ended) == (True, [])
    serve._on_signal(stop, lambda: None)
    assert ended == [ExitCode.INTERRUPTED]


@pytest.mark.parametrize("error", [ConfigError("port 1 is in use"), OSError(28, "No space left on device")])
def test_what_does_not_start_is_never_announced(error: Exception) -> None:
    service = FakeService(start_error=error)
    with pytest.raises(CannotStart, match=r"in use|No space"):
        run(service, lambda: pytest.fail("announced"))


def test_a_directory_that_cannot_be_made_is_named_with_what_to_do() -> None:
    error = FileNotFoundError(2, "No such file or directory", "/proc/x")
    with pytest.raises(CannotStart) as refused:
        run(FakeService(start_error=error), lambda: None)
    assert explain(refused.value) == (
        "/proc/x: No such file or directory. Mend that, or choose another place (--data, storePathRootDir)."
    )


def test_a_store_that_cannot_be_trusted_ends_the_process_with_words() -> None:
    service = FakeService(failure=OSError(5, "Input/output error"))
    with pytest.raises(StoreFailed, match=r"Input/output error.*check the disk"):
        run(service, lambda: None)
    assert service.done == ["start", "stop"]


def test_a_stop_that_could_not_write_everything_down_is_no_success() -> None:
    service = FakeService(stop_error=StoreError("the store could not be closed"))
    with pytest.raises(StoreFailed, match="the store could not be closed") as caught:
        run(service, lambda: os.kill(os.getpid(), signal.SIGTERM))
    assert exit_code_of(caught.value) == ExitCode.STORE_FAILED


def test_what_ended_the_server_is_said_rather_than_what_followed_from_it() -> None:
    service = FakeService(failure=OSError(5, "Input/output error"), stop_error=StoreError("not closed"))
    with pytest.raises(StoreFailed, match="Input/output error"):
        run(service, lambda: None)
