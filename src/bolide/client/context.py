"""ConsumeContext: what a listener may know of its messages, and say about them, beside returning or raising."""

from bolide.model.errors import ConfigError, InvalidRequest
from bolide.model.numbers import is_int32
from bolide.model.offsets import MessageQueue


class ConsumeContext:
    """The second argument of a listener that wants one.

    Example::

        def handle(messages: list[StoredMessage], context: ConsumeContext) -> None:
            for index, message in enumerate(messages):
                if not store(message):
                    context.ack_index = index - 1  # this one and those behind it come again
                    context.delay_level_next = 3  # in ten seconds
                    return

    `queue` is where all the messages of the call come from.
    """

    __slots__ = ("_ack_index", "_by_hand", "_delay_level_next", "_verdict", "queue")

    def __init__(self, queue: MessageQueue, *, by_hand: bool = False) -> None:
        self.queue = queue
        self._ack_index: int | None = None
        self._delay_level_next = 0
        self._by_hand = by_hand
        self._verdict: bool | None = None

    @property
    def ack_index(self) -> int | None:
        """The index of the last message that is done: those behind it have failed.  -1: none is done; None: all are.

        It counts when the listener returns; one that raises, or returns `Later`, has done none.  Orderly consumers
        do not look at it.
        """
        return self._ack_index

    @ack_index.setter
    def ack_index(self, value: int | None) -> None:
        if value is not None and (not is_int32(value) or value < -1):
            raise ConfigError(f"ack_index is the index of a message, -1 or None, not {value!r}")
        self._ack_index = value

    @property
    def delay_level_next(self) -> int:
        """The delay level with which failed messages wait: 0 waits longer from time to time, -1 makes dead letters."""
        return self._delay_level_next

    @delay_level_next.setter
    def delay_level_next(self, value: int) -> None:
        if not is_int32(value):
            raise ConfigError(f"delay_level_next is a whole number, not {value!r}")
        self._delay_level_next = value

    def commit(self) -> None:
        """Once the listener has returned, everything up to here is done.  For `orderly` with `auto_commit=False`."""
        self._check_by_hand("commit")
        self._verdict = True

    def rollback(self) -> None:
        """Once the listener has returned, everything since the last commit comes again, in order, after a second."""
        self._check_by_hand("rollback")
        self._verdict = False

    @property
    def verdict(self) -> bool | None:
        """True for a commit, False for a rollback, None while the listener has asked for neither."""
        return self._verdict

    def _check_by_hand(self, what: str) -> None:
        if not self._by_hand:
            raise InvalidRequest(
                f"{what}() is for a consumer with orderly=True and auto_commit=False; this one commits by itself"
            )
