"""DedupWindow: lets a listener see each message once, as far as a window of bounded size can tell.

Brokers deliver at least once.  The window remembers the keys of messages whose listener has succeeded, and leaves out
what comes again.  It is asked before the listener and told after it, so a crash between the listener's end and the
window's note repeats a message nevertheless: what must never happen twice belongs into one transaction with its key.

The parts: `dedup_calls.py` (what becomes of a call), `machines/seen_keys.py` and `dedup_file.py` (what is remembered).
"""

import functools
import threading
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from bolide.client import checks
from bolide.client.dedup_calls import DedupCalls, SeenStore
from bolide.client.dedup_file import SeenFile
from bolide.machines.seen_keys import SeenKeys
from bolide.model.clock import Clock
from bolide.model.errors import ConfigError, InvalidRequest
from bolide.model.functions import is_coroutine_function
from bolide.model.limits import DEDUP_MESSAGES_MAX
from bolide.net.surroundings import Surroundings
from bolide.record.stored import StoredMessage

MESSAGE_ID = "message_id"
KEYS = "keys"
MESSAGES_MAX = 100_000
DIGEST_BYTES = 16
"""Keys are kept as digests of this size, so that long ones cost no more than short ones."""

KeyOf = Callable[[StoredMessage], str | None]
L = TypeVar("L", bound=Callable[..., Any])


class DedupWindow:
    """Remembers which messages are done, and keeps them from a listener when they come again.

    Example::

        window = DedupWindow(key="keys", path="billing.seen")
        consumer = PushConsumer("127.0.0.1:9876", group="billing", listener=window.wrap(handle))
        consumer.subscribe("orders")
        with window, consumer:
            ...
        print(window.left_out, "messages came again")

    One window serves all threads and consumers of a process that share the work of one group; each group needs its own.
    Members in other processes know of each other's messages only if they are given the same `path`, on the same
    machine; and even then two of them that get copies of one message at the same moment both work on it.

    Args:
        key: what copies of a message have in common.  "message_id": the id that its producer gave it, which it keeps
            when a send is tried again and when it is delivered again.  "keys": its topic and keys, so that an order
            that a producer sends twice is noticed too; a message without keys always passes.  Or a function of a
            message that gives a text; None or an empty one lets the message pass.
        messages_max: how many are remembered; the oldest are forgotten first.
        age_max_ms: how long each is remembered.
        path: an SQLite file, which is made if it is not there, and outlives the process.  None: in memory.
    """

    def __init__(
        self,
        *,
        key: str | KeyOf = MESSAGE_ID,
        messages_max: int = MESSAGES_MAX,
        age_max_ms: int = checks.DAY_MS,
        path: str | Path | None = None,
        surroundings: Surroundings | None = None,
    ) -> None:
        self._key_function = _key_function(key)
        around = surroundings or Surroundings()
        keys_max = checks.number("messages_max", messages_max, 1, DEDUP_MESSAGES_MAX)
        age_max_ms = checks.number("age_max_ms", age_max_ms, 1, checks.SPAN_S_MAX * 1000)
        file = _file(path)
        self._store: SeenStore
        if file is None:
            self._store = _SeenHere(around.clock, keys_max, age_max_ms)
        else:
            self._store = SeenFile(file, around.clock, keys_max=keys_max, age_max_ms=age_max_ms)
        self._calls = DedupCalls(self._store, self._digest_of, around)

    # ---- life ----------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the file, if there is one.  Called by `with`; close the consumers first."""
        self._calls.close()
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        """How many messages are remembered."""
        return len(self._store)

    def __bool__(self) -> bool:
        """It is there, also when it remembers nothing."""
        return True

    @property
    def left_out(self) -> int:
        """How many messages no listener has seen because they had been done before."""
        return self._calls.left_out

    # ---- by hand -------------------------------------------------------------------------------------------

    def key_of(self, message: StoredMessage) -> str | None:
        """What a message is remembered by; None if it is not.

        Raises:
            InvalidRequest: the function that was given as `key` gives something else than a text.
        """
        key: object = self._key_function(message)
        if key is not None and not isinstance(key, str):
            raise InvalidRequest(
                f"key is a function that gives a text or None, and gave {checks.described(key)}"
            )
        return key or None

    def seen(self, key: str) -> bool:
        """Whether it was done, as far as that is remembered.

        Args:
            key: a text, such as `key_of(message)`.

        Raises:
            DedupFailed: the file cannot be read.
        """
        return bool(self._store.known([_digest(key)]))

    def done(self, key: str) -> None:
        """Remember it from now on.

        Args:
            key: a text, such as `key_of(message)`.

        Raises:
            DedupFailed: the file cannot be written to.
        """
        self._store.add([_digest(key)])

    # ---- listeners -----------------------------------------------------------------------------------------

    def wrap(self, listener: L) -> L:
        """A listener that hands on what was not done before, and remembers it when `listener` has succeeded.

        What `listener` raises goes on to the consumer, and its messages come again.  When all messages of a call were
        done before, it is not called at all.  Not for orderly consumers that commit by hand: what is rolled back
        there would be left out.

        Args:
            listener: a function or a coroutine function, as for a consumer.
        """
        checks.function("listener", listener, "a list of messages")
        if is_coroutine_function(listener):

            @functools.wraps(listener)
            async def on_loop(messages: list[StoredMessage], *rest: Any) -> object:
                return await self._calls.call_on_loop(listener, messages, rest)

            return on_loop  # type: ignore[return-value]

        @functools.wraps(listener)
        def in_thread(messages: list[StoredMessage], *rest: Any) -> object:
            return self._calls.call(listener, messages, rest)

        return in_thread  # type: ignore[return-value]

    def _digest_of(self, message: StoredMessage) -> bytes | None:
        key = self.key_of(message)
        return None if key is None else _digest(key)


class _SeenHere:
    """Keys in memory.  Their time goes on evenly, whatever is done to the wall clock."""

    waits_for_disk = False

    def __init__(self, clock: Clock, keys_max: int, age_max_ms: int) -> None:
        self._clock = clock
        self._keys = SeenKeys(keys_max, age_max_ms)
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._keys)

    def known(self, keys: Sequence[bytes]) -> set[bytes]:
        with self._lock:
            return self._keys.known(keys, self._clock.monotonic_ms())

    def add(self, keys: Sequence[bytes]) -> None:
        with self._lock:
            self._keys.add(keys, self._clock.monotonic_ms())

    def close(self) -> None:
        """There is nothing to close."""


def _key_function(key: object) -> Callable[[StoredMessage], object]:
    if key == MESSAGE_ID:
        return lambda message: message.message_id
    if key == KEYS:
        return _topic_and_keys
    if isinstance(key, str) or not callable(key):
        raise ConfigError(
            f'key is "{MESSAGE_ID}", "{KEYS}" or a function of a message, not {checks.described(key)}'
        )
    checks.can_take("key", key, 1, "a message")
    return key


def _topic_and_keys(message: StoredMessage) -> str | None:
    """Orders and payments may have the same numbers."""
    return f"{message.topic} {' '.join(message.keys)}" if message.keys else None


def _digest(key: object) -> bytes:
    if not isinstance(key, str) or not key:
        raise InvalidRequest(f"key is a text that is not empty, not {checks.described(key)}")
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).digest()


def _file(path: object) -> Path | None:
    if path is None:
        return None
    instead = "; leave it out for a window in memory"
    if path == ":memory:":
        raise ConfigError(f"path is the name of a file, not {checks.described(path)}{instead}")
    return Path(checks.path("path", path, "name of a file", instead))
