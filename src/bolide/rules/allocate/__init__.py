"""Which queues belong to which member of a group: the original's six ways, and any of an application's own.

Every member computes this by itself, so all must come to the same answer from the same lists: clients of other
languages too.  `strategy` finds a way by its name, or takes a function, and holds it to its promise: what comes in is
put in the order that every client sorts by, Java's; what comes out is believed only as far as it is made of what came
in.  The ways are in the modules beside this one.
"""

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence

from bolide.model.errors import BolideError, ConfigError, StrategyFailed
from bolide.model.functions import is_coroutine_function
from bolide.model.offsets import MessageQueue
from bolide.rules.allocate.hash_ring import ConsistentHashStrategy
from bolide.rules.allocate.plain import averagely, circle

Strategy = Callable[[Sequence[MessageQueue], Sequence[str], str], Sequence[MessageQueue]]
"""Takes all queues of a topic, the client ids of all members and the own one, both lists in order; gives the queues
of this member."""

AVERAGELY = "averagely"
CLOSE = 0.4

_BY_NAME: Mapping[str, Strategy] = {
    AVERAGELY: averagely,
    "circle": circle,
    "consistent_hash": ConsistentHashStrategy(),
}
_TO_BE_MADE = {
    "config": "ConfigStrategy(queues)",
    "machine_room": "MachineRoomStrategy(rooms)",
    "machine_room_nearby": "MachineRoomNearbyStrategy(broker_room, member_room)",
}
_NAMES = (*_BY_NAME, *_TO_BE_MADE)


def strategy(chosen: str | Strategy) -> "Shares":
    """The strategy of this name, or this one, ready to be asked.

    Raises:
        ConfigError: there is none of this name, or this is no function.
    """
    if isinstance(chosen, Shares):
        return chosen
    if isinstance(chosen, str):
        return Shares(chosen, _named(chosen))
    _check_function(chosen)
    return Shares(getattr(chosen, "__name__", repr(chosen)), chosen)


def _check_function(chosen: object) -> None:
    if not callable(chosen) or is_coroutine_function(chosen):
        raise ConfigError(
            f"strategy is the name of a strategy ({', '.join(_NAMES)}), or a function that takes the queues, the"
            f" members and the own id, not {type(chosen).__name__} {chosen!r:.64}"
        )
    if isinstance(chosen, type):
        raise ConfigError(f"strategy is one that was made, as in {chosen.__name__}(...), and not the class")


class Shares:
    """A strategy with whatever it is asked in order, and its answer looked at."""

    __slots__ = ("_name", "_way")

    def __init__(self, name: str, way: Strategy) -> None:
        self._name = name
        self._way = way

    def __repr__(self) -> str:
        return self._name

    def __call__(
        self, queues: Iterable[MessageQueue], members: Iterable[str], me: str
    ) -> Sequence[MessageQueue]:
        """My queues; none when I am not a member.

        Raises:
            StrategyFailed: an application's own strategy raised, or gave something else than a list of the queues.
        """
        ordered = sorted(set(queues), key=_queue_order)
        ranked = sorted(set(members), key=java_order)
        if me not in ranked or not ordered:
            return []
        try:
            mine = self._way(ordered, ranked, me)
        except BolideError:
            raise
        except BaseException as error:  # sys.exit() is no way out of the event loop that shares them
            raise StrategyFailed(
                f"the strategy {self._name} raised {type(error).__name__}: {error}"
            ) from error
        return self._checked(mine, frozenset(ordered))

    def _checked(self, mine: object, known: frozenset[MessageQueue]) -> Sequence[MessageQueue]:
        if not isinstance(mine, list | tuple):
            raise StrategyFailed(
                f"the strategy {self._name} gives a list of some of the queues that it is given, and gave"
                f" {type(mine).__name__} {mine!r:.64}"
            )
        seen: set[MessageQueue] = set()
        for queue in mine:
            if not isinstance(queue, MessageQueue) or queue not in known:
                raise StrategyFailed(
                    f"the strategy {self._name} gave {queue!r:.128}, which is none of the {len(known)} queues that"
                    " it was given"
                )
            if queue in seen:
                raise StrategyFailed(f"the strategy {self._name} gave {queue} more than once")
            seen.add(queue)
        return mine


def java_order(text: str) -> bytes:
    """What to sort texts by as Java does: by units of UTF-16, and not by characters."""
    return text.encode("utf-16-be", "surrogatepass")


def _queue_order(queue: MessageQueue) -> tuple[bytes, bytes, int]:
    return java_order(queue.topic), java_order(queue.broker_name), queue.queue_id


def _named(name: str) -> Strategy:
    found = _BY_NAME.get(name)
    if found is not None:
        return found
    if name in _TO_BE_MADE:
        raise ConfigError(
            f"the strategy {name!r} must be told something: give strategy={_TO_BE_MADE[name]}, from bolide"
        )
    near = difflib.get_close_matches(name[:64].lower(), _NAMES, n=1, cutoff=CLOSE)
    meant = f": is {near[0]!r} meant?" if near else "."
    raise ConfigError(
        f"there is no strategy {name!r:.64}{meant} There are {', '.join(_NAMES)}, and functions of your own"
    )
