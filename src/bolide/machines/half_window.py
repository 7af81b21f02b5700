"""HalfWindow: which half messages are still open.

Half messages lie in one queue, in the order in which they came.  All below `first` are finished: ended, stored again
further up, or gone.  From there on a byte for each says whether it is; those behind the last byte are open.  So a
broker through which many transactions go remembers a byte for each since the oldest open one, and nothing of older
ones.
"""

_OPEN, _FINISHED = 0, 1


class HalfWindow:
    def __init__(self, first: int) -> None:
        self.first = first
        self._marks = bytearray()
        self._finished = 0

    def is_finished(self, offset: int) -> bool:
        at = offset - self.first
        return at < 0 or (at < len(self._marks) and self._marks[at] == _FINISHED)

    def finish(self, *offsets: int) -> None:
        """They are finished; finishing one twice changes nothing."""
        first, marks = self.first, self._marks
        for offset in offsets:
            at = offset - first
            if at < 0:
                continue
            if at >= len(marks):
                marks.extend(bytes(at + 1 - len(marks)))
            if marks[at] == _OPEN:
                marks[at] = _FINISHED
                self._finished += 1
        if marks and marks[0] == _FINISHED:
            self._advance()

    def finish_all_below(self, offset: int) -> None:
        """What was there is gone."""
        if offset > self.first:
            dropped = self._marks[: offset - self.first]
            self._finished -= dropped.count(_FINISHED)
            del self._marks[: offset - self.first]
            self.first = offset
            self._advance()

    def next_open(self, offset: int, end: int) -> int | None:
        """The first open one from `offset` on, of a queue that ends at `end`."""
        at = max(0, offset - self.first)
        if at < len(self._marks):
            found = self._marks.find(_OPEN, at)
            at = found if found >= 0 else len(self._marks)
        return self.first + at if self.first + at < end else None

    def open_count(self, end: int) -> int:
        """How many are open in a queue that ends at `end`."""
        return max(0, end - self.first - self._finished)

    def _advance(self) -> None:
        """Forget the finished ones in front."""
        found = self._marks.find(_OPEN)
        count = found if found >= 0 else len(self._marks)
        del self._marks[:count]
        self.first += count
        self._finished -= count
