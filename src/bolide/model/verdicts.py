"""What a listener says of its messages when they are not done: they come again later, or after a pause.

Either is returned or raised, so both are errors of their kind.
"""

from bolide.model.errors import ClientError, ConfigError
from bolide.model.numbers import is_int32

SUSPEND_MS_MIN = 10
SUSPEND_MS_MAX = 30_000
"""The original's bounds of suspendCurrentQueueTimeMillis."""


class Later(ClientError):
    """What a listener returns, or raises, when its messages are to come again later.

    Example::

        def handle(messages: list[StoredMessage]) -> Later | None:
            if not till.is_open():
                return Later("the till is closed", delay_level=5)  # a minute

    Args:
        why: for the log.
        delay_level: how long to wait, as one of the broker's levels (`messageDelayLevel`; by default 1 is a second, 5
            a minute, 18 two hours); 0 waits longer from time to time, -1 makes dead letters of the messages.
    """

    def __init__(self, why: str = "", delay_level: int = 0) -> None:
        given: object = why
        if not isinstance(given, str) or not is_int32(delay_level):
            raise ConfigError(
                f"Later has a reason and a level, as in Later('busy', delay_level=5), not {why!r} and {delay_level!r}"
            )
        super().__init__(why)
        self.delay_level = delay_level


RetryLater = Later
"""The same by its first name."""


class Suspend(ClientError):
    """What the listener of an orderly consumer returns, or raises, to have its messages again after a pause of its own
    choice; the messages behind them wait.

    Example::

        def handle(messages: list[StoredMessage]) -> Suspend | None:
            if not till.is_open():
                return Suspend(5_000)

    Args:
        pause_ms: how long to wait; what is less than 10 ms or more than 30 s counts as that much, as in the original.
        why: for the log.
    """

    def __init__(self, pause_ms: int = 1_000, why: str = "") -> None:
        given: object = why
        if not isinstance(given, str) or not is_int32(pause_ms):
            raise ConfigError(
                f"Suspend has milliseconds and a reason, as in Suspend(500, 'busy'), not {pause_ms!r} and {why!r}"
            )
        super().__init__(why)
        self.pause_ms = min(max(pause_ms, SUSPEND_MS_MIN), SUSPEND_MS_MAX)
