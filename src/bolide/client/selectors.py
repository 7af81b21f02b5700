"""Selectors: ready-made functions that choose the queue of a message, for `selector` of `Producer.send`.

An application's own is a function of the queues and the message that returns one of the queues.
"""

from collections.abc import Callable, Sequence
from random import Random, SystemRandom

from bolide.client import checks
from bolide.model.errors import InvalidRequest
from bolide.model.message import Message
from bolide.model.offsets import MessageQueue
from bolide.rules.choose import QueueTurn, hashed

SELECTOR_TAKES = "the queues and the message"

Selector = Callable[[Sequence[MessageQueue], Message], MessageQueue]

ROOM_END = "@"
"""Between a machine room and the rest of a broker's name (RocketMQ: AllocateMessageQueueByMachineRoom)."""


def by_hash(key: str) -> Selector:
    """The same queue for the same key, the one that Java's SelectMessageQueueByHash chooses.

    Example::

        producer.send(Message("orders", b"paid"), selector=by_hash("customer-7"))

    Args:
        key: a text; of a number, `str(number)`.
    """
    text = checks.text("key", key, InvalidRequest, example="customer-7")
    return lambda queues, _: hashed(text, queues)


def by_random(chance: Random | None = None) -> Selector:
    """Any queue.

    Example::

        producer.send(Message("orders", b"paid"), selector=by_random())

    Args:
        chance: where chance comes from, for whoever wants the same again; the system's unless given.
    """
    if chance is None:
        chance = SystemRandom()
    if not isinstance(chance, Random):
        raise InvalidRequest(f"chance is a random.Random, or None, not {checks.described(chance)}")
    return lambda queues, _: chance.choice(queues)


def by_machine_room(*rooms: str) -> Selector:
    """The queues of some machine rooms in turn; all queues where no broker is in one of them.

    A broker's room is what its name has before an `@`, as in `hamburg@broker-a`.

    Example::

        nearby = by_machine_room("hamburg", "bremen")  # once: it remembers whose turn it is
        producer.send(Message("orders", b"paid"), selector=nearby)

    Args:
        rooms: their names.
    """
    wanted = frozenset(
        checks.text("each of rooms", room, InvalidRequest, example="hamburg") for room in rooms
    )
    if not wanted:
        raise InvalidRequest("by_machine_room takes the names of rooms, as in by_machine_room('hamburg')")
    turn = QueueTurn()

    def is_near(broker_name: str) -> bool:
        room, end, _ = broker_name.partition(ROOM_END)
        return bool(end) and room in wanted

    return lambda queues, _: turn.next(queues, None, (is_near,))


def selected(selector: Selector, message: Message, queues: Sequence[MessageQueue]) -> MessageQueue:
    try:
        chosen: object = selector(queues, message)
    except TypeError:  # looked at only now, and not with every send
        checks.can_take("selector", selector, 2, SELECTOR_TAKES, InvalidRequest)
        raise
    if not isinstance(chosen, MessageQueue) or chosen.topic != message.topic:
        raise InvalidRequest(
            "the selector returns one of the queues that it is given, as in queues[0],"
            f" not {checks.described(chosen)}"
        )
    return chosen
