"""ImmuneHalves: until when open half messages need not be looked at, because each has asked for a time of its own.

A look at all that are open goes over the queue from its first open one on.  What it learns of one stays known, and of
every `BLOCK` numbers the least: until then all of them are passed at once.  Once a look is past a block none that is
open can join it, so the least holds, whichever of them end meanwhile.
"""

from array import array

from bolide.model.limits import IMMUNE_HALVES_MAX

BLOCK = 1024

_NEVER = -1
_ALWAYS = 2**63 - 1


class ImmuneHalves:
    def __init__(self) -> None:
        self._each: dict[int, array[int]] = {}  # by block
        self._least: dict[int, int] = {}
        self._block = -1  # where the look is
        self._least_so_far = _NEVER

    def begin(self, first: int) -> None:
        """A look begins, and all below this one are finished."""
        self._block = -1
        for known in (self._each, self._least):
            for block in [block for block in known if block < first // BLOCK]:
                del known[block]

    def behind(self, offset: int, now_ms: int) -> int:
        """Where the look goes on: behind those that are immune, or here.

        It comes to every open one, in their order; one that it finds here it has to end, `note` or leave by `stays`.
        """
        block, at = divmod(offset, BLOCK)
        if block != self._block:
            self._enter(block)
        least_ms = self._least.get(block, _NEVER)
        if now_ms <= least_ms:
            self._least_so_far = least_ms
            return (block + 1) * BLOCK
        each = self._each.get(block)
        if each is None:
            return offset
        immune = 0
        for until_ms in each[at:]:
            if until_ms < now_ms:
                break
            self._least_so_far = min(self._least_so_far, until_ms)
            immune += 1
        return offset + immune

    def note(self, offset: int, until_ms: int) -> None:
        """Known of until then.  Of too many only the least of their block is known."""
        block, at = divmod(offset, BLOCK)
        self._least_so_far = min(self._least_so_far, until_ms)
        each = self._each.get(block)
        if each is None and len(self._each) < IMMUNE_HALVES_MAX // BLOCK:
            each = self._each[block] = array("q", [_NEVER]) * BLOCK
        if each is not None:
            each[at] = until_ms

    def stays(self) -> None:
        """The one that the look is at stays open, and is to be looked at the next time."""
        self._least_so_far = _NEVER

    def _enter(self, block: int) -> None:
        """Whatever is open in the one before has been seen."""
        if self._block >= 0:
            self._least[self._block] = self._least_so_far
        self._block, self._least_so_far = block, _ALWAYS
