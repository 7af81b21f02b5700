"""What the application has given to be called: plain functions in threads, coroutine functions on the event loop.

Whatever such a function raises is an outcome of its call.  What is no `Exception` (`sys.exit()`, `pytest.fail`, a time
limit of some library) would end the task that waits for it, and some of it the event loop: it becomes a `ClientError`.
"""

import asyncio
import concurrent.futures
import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from typing import Any, TypeVar

from bolide.model.errors import ClientError
from bolide.model.functions import is_coroutine_function
from bolide.net.surroundings import Surroundings

T = TypeVar("T")


class Calls:
    """Calls functions of the application; plain ones in `threads` threads of its own, which it makes when needed."""

    def __init__(self, surroundings: Surroundings, name: str, threads: int) -> None:
        self._surroundings = surroundings
        self._name = name
        self._count = threads
        self._threads: Executor | None = None

    async def call(self, function: Callable[..., Any], *values: object) -> Any:
        """What it returns, at last."""
        if is_coroutine_function(function):
            return await awaited(function(*values))
        if self._threads is None:
            self._threads = self._surroundings.threads(self._name, self._count, for_application=True)
        found = await asyncio.get_running_loop().run_in_executor(self._threads, called, function, *values)
        return await awaited(found) if inspect.isawaitable(found) else found

    def close(self) -> None:
        """Begin no more; nobody waits for those that run."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)


def called(function: Callable[..., T], *values: Any) -> T:
    """What the function returns, or an `Exception` that an event loop can pass on."""
    try:
        return function(*values)
    except (
        StopIteration,
        concurrent.futures.CancelledError,
    ) as error:  # futures do not take them as they are
        raise ended_by(error) from error
    except Exception:
        raise
    except BaseException as error:
        raise ended_by(error) from error


async def awaited(work: Awaitable[T]) -> T:
    """The same for something that is awaited here.

    The loop may be the application's own, where `sys.exit()` and Ctrl-C end the program: so they do, a moment later.
    """
    try:
        return await work
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():  # the call itself is cancelled
            raise
        raise ended_by(error) from error
    except (SystemExit, KeyboardInterrupt) as error:
        asyncio.get_running_loop().call_soon(_raise, error)
        raise ended_by(error) from error
    except (Exception, GeneratorExit):  # the latter is how Python closes what is awaited here
        raise
    except BaseException as error:
        raise ended_by(error) from error


def ended_by(error: BaseException) -> ClientError:
    return ClientError(f"a function of the application ended with {type(error).__name__}: {error}")


def _raise(error: BaseException) -> None:
    raise error
