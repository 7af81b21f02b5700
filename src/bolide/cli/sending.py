"""Sending: the work of `bolide send`, from numbered items to what is known of each.

Messages are given to `send_soon`, which collects them and holds back a source that is faster than the brokers; their
outcomes come on the client's thread, and everything is said on ours.  The first failure ends the reading, and so does
Ctrl-C; what is under way is waited for then, so that the last word names what is stored, what is not, and what may be.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

from bolide.cli.doorbell import Doorbell
from bolide.cli.outcome import Partly, explain
from bolide.cli.output import counted, say
from bolide.model.errors import (
    BolideError,
    CallTimeout,
    ClientNotRunning,
    ConnectionLost,
    InvalidRequest,
    MessageIllegal,
    NoNameServer,
    ProtocolError,
    RemoteError,
)
from bolide.model.response_code import ResponseCode

if TYPE_CHECKING:
    from bolide import Message, Producer, SendReceipt

UNANSWERED = (CallTimeout, ConnectionLost, ProtocolError, ClientNotRunning)
"""After these nobody knows whether the broker has stored it."""

SPANS_SHOWN = 10

Trouble = BolideError | OSError


class NotWaited(KeyboardInterrupt):
    """The second Ctrl-C: what is under way is left to itself."""


class Sending:
    """One command's messages.

    Args:
        read: makes a message of an item, or says with `MessageIllegal` why it is none.
        unit: what an item is called: line, row, message.
        on_receipt: is given every receipt, in this thread.
        on_receipts_told: called when all that have come were given.
        skips: whether an item that is no message is named and passed over, instead of ending it all.
        rate: how many messages per second at most.
        can_be_cut: whether the rest of the input makes sense without its beginning; rows of CSV need their names.
    """

    def __init__(
        self,
        read: "Callable[[Any], Message]",
        unit: str,
        *,
        on_receipt: "Callable[[SendReceipt], None] | None" = None,
        on_receipts_told: Callable[[], None] = lambda: None,
        skips: bool = False,
        rate: float | None = None,
        can_be_cut: bool = False,
    ) -> None:
        self._read = read
        self._unit = unit
        self._on_receipt = on_receipt
        self._on_receipts_told = on_receipts_told
        self._skips = skips
        self._rate = rate
        self._can_be_cut = can_be_cut
        self._bell = Doorbell()
        self._receipts: deque[SendReceipt] = deque()
        self._failures: deque[tuple[int, Exception]] = deque()
        self._failed: tuple[float, str, Trouble] | None = None
        self._unanswered: list[int] = []
        self._refused: list[int] = []
        self._given = 0
        self._last = 0
        self._began = time.monotonic()
        self.sent = 0
        """Acknowledged; changed on the client's thread alone."""
        self.skipped = 0

    def wait(self, descriptor: int) -> bool:
        """Until there is something to read; False when nothing more is wanted."""
        while not self._is_over and not self._bell.wait(descriptor):
            self._look()
        return not self._is_over

    def run(self, producer: "Producer", runs: Iterable[list[tuple[int, Any]]]) -> None:
        """Send it all.  `Partly` when something went wrong, `KeyboardInterrupt` after Ctrl-C; how it stands is said."""
        with self._bell.on_interrupt():
            try:
                for run in runs:
                    self._give(producer, run)
                    self._look()
                    if self._is_over:
                        break
            except (BolideError, OSError) as error:
                self._fail("reading stopped", error)
            if self._bell.is_interrupted:
                self._flush_after_interrupt(producer)
            else:
                producer.flush()
        self._look()
        self._bell.close()
        self._end()

    @property
    def _is_over(self) -> bool:
        return self._failed is not None or self._bell.is_interrupted

    # ---- giving --------------------------------------------------------------------------------------------

    def _give(self, producer: "Producer", run: list[tuple[int, Any]]) -> None:
        read, send_soon, answered = self._read, producer.send_soon, self._answered
        for number, item in run:
            if self._failures:
                self._look()
            if self._rate is not None:
                self._pace(self._rate)
            if self._is_over:
                return
            try:
                message = read(item)
                send_soon(message, callback=partial(answered, number))
                self._given += 1
            except (MessageIllegal, InvalidRequest) as error:
                self._bad(number, error)
            except BolideError as error:
                self._refused.append(number)
                self._fail(f"{self._unit} {number} failed", error, number)
            self._last = number

    def _pace(self, rate: float) -> None:
        due = self._began + self._given / rate
        while not self._is_over and (left := due - time.monotonic()) > 0:
            self._bell.wait(timeout_s=left)
            self._look()

    def _answered(self, number: int, receipt: "SendReceipt | None", error: Exception | None) -> None:
        """On the client's thread."""
        if receipt is None:
            assert error is not None
            self._failures.append((number, error))
        else:
            self.sent += 1
            if self._on_receipt is None:
                return
            self._receipts.append(receipt)
        self._bell.ring()

    # ---- outcomes ------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """What has come meanwhile."""
        try:
            while self._receipts and self._on_receipt is not None:
                self._on_receipt(self._receipts.popleft())
                if not self._receipts:
                    self._on_receipts_told()
        except OSError as error:
            self._fail("a receipt could not be written", error)
        while self._failures:
            self._lost(*self._failures.popleft())

    def _lost(self, number: int, error: Exception) -> None:
        if not isinstance(error, BolideError):
            raise error
        if _is_about_the_message(error):
            self._bad(number, error)
            return
        may_be_stored = isinstance(error, UNANSWERED) and not isinstance(error, NoNameServer)
        (self._unanswered if may_be_stored else self._refused).append(number)
        self._fail(f"{self._unit} {number} failed", error, number)

    def _bad(self, number: int, error: BolideError) -> None:
        if self._skips:
            self.skipped += 1
            say(f"{self._unit} {number} is skipped: {explain(error)}")
        else:
            self._refused.append(number)
            self._fail(f"{self._unit} {number} failed", error, number)

    def _fail(self, what: str, error: Trouble, number: float = inf) -> None:
        """The first one of the input is told of: outcomes come later than what cannot be read, and who goes on goes on
        there."""
        if self._failed is None or number < self._failed[0]:
            self._failed = (number, what, error)

    # ---- the last word -------------------------------------------------------------------------------------

    def _flush_after_interrupt(self, producer: "Producer") -> None:
        under_way = self._given - self.sent - len(self._unanswered) - len(self._refused)
        if under_way > 0:
            say("interrupted: waiting for what is under way; Ctrl-C again does not wait")
        try:
            producer.flush()
        except KeyboardInterrupt:
            say(
                f"interrupted; {counted(self.sent, 'message')} acknowledged by then, perhaps some more under way"
            )
            raise NotWaited from None

    def _end(self) -> None:
        if self._failed is not None:
            _, what, trouble = self._failed
            said = f"{what}, {self._stored()}: {explain(trouble)}"
            raise Partly(said + self._way_on(said)) from trouble
        if self._bell.is_interrupted:
            say(f"interrupted; {self._stored()}, and nothing is under way")
            raise KeyboardInterrupt
        if self.skipped:
            no_message = "was no message" if self.skipped == 1 else "were no messages"
            raise Partly(f"{counted(self.skipped, self._unit)} {no_message}, {self._stored()}")

    def _stored(self) -> str:
        """What is known of the messages when all answers that come have come."""
        is_or_are = "is" if self.sent == 1 else "are"
        known = "acknowledged" if self._unanswered else "stored"
        words = [f"{counted(self.sent, 'message')} {is_or_are} {known}"]
        if self._unanswered:
            words.append(f"{self._named(self._unanswered)} may be stored or not")
        if len(self._refused) > 1:
            words.append(f"{self._named(self._refused)} are not")
        is_clear = len(self._refused) + len(self._unanswered) <= 1 and not self._bell.is_interrupted
        if self._last and self._unit != "message" and not is_clear and self._is_over:
            words.append(f"nothing behind {self._unit} {self._last} was sent")
        return ", ".join(words)

    def _way_on(self, said: str) -> str:
        """For who would not send again what is stored."""
        first = min(self._refused + self._unanswered, default=1)
        if first == 1 or not self._can_be_cut:
            return ""
        end = "" if said.endswith((".", "?", "!")) else "."
        return (
            f"{end} `tail -n +{first}` of the same input goes on there; what is stored behind it comes twice"
        )

    def _named(self, numbers: list[int]) -> str:
        return f"{self._unit}{'' if len(numbers) == 1 else 's'} {format_spans(numbers)}"


def format_spans(numbers: Iterable[int]) -> str:
    """
    >>> format_spans([7, 1, 2, 3, 9])
    '1-3, 7 and 9'
    """
    spans = [f"{first}" if first == last else f"{first}-{last}" for first, last in _spans(sorted(numbers))]
    shown, more = spans[:SPANS_SHOWN], len(spans) - SPANS_SHOWN
    if more > 0:
        return f"{', '.join(shown)} and {more} more spans up to {spans[-1]}"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def _spans(numbers: list[int]) -> Iterator[tuple[int, int]]:
    first = last = numbers[0]
    for number in numbers[1:]:
        if number > last + 1:
            yield first, last
            first = number
        last = number
    yield first, last


def _is_about_the_message(error: BolideError) -> bool:
    """Whether another message could fare better."""
    refused = isinstance(error, RemoteError) and error.response_code == ResponseCode.MESSAGE_ILLEGAL
    return refused or isinstance(error, MessageIllegal | InvalidRequest)
