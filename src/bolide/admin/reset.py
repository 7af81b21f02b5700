"""Moving a group's offsets: to an end, to a moment, to an offset, or to where another group is.

First a plan, queue by queue, which shows what would be skipped and what would be read again; then the change.  Members
that are connected go on from what they have in memory and would overwrite the change, so their brokers tell them.
"""

from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bolide.admin.cluster import broker_settings
from bolide.admin.connection import AdminConnection
from bolide.admin.groups import group_members
from bolide.admin.many import of_each
from bolide.admin.progress import group_progress
from bolide.admin.queues import Place, PlacedQueue, group_offset, offset_at, queues_of
from bolide.model.errors import MembersConnected, NothingFound
from bolide.model.names import RETRY_PREFIX
from bolide.wire.codes import RequestCode
from bolide.wire.headers.admin import ResetOffset
from bolide.wire.headers.offset import UpdateGroupOffset

SERVER_SIDE = "useServerSideResetOffset"
"""The setting of brokers that move a group themselves, queue by queue."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where to: exactly one of these."""

    offset: int | None = None
    moment_ms: int | None = None
    is_end: bool = False


BEGINNING = Target(offset=0)
END = Target(is_end=True)


@dataclass(frozen=True, slots=True)
class Move:
    """What happens to a group's offset in one queue."""

    place: Place
    old: int | None
    """None: the group has not begun there."""
    new: int
    first: int
    end: int

    @property
    def again(self) -> int:
        """Messages that the group has consumed and will get once more."""
        return 0 if self.old is None else max(0, self.old - self.new)

    @property
    def skipped(self) -> int:
        """Messages that are there and that the group will not get."""
        return max(0, self.new - max(self.first, self.old or 0))


async def topics_of_group(servers: AdminConnection, group: str) -> list[str]:
    """Where the group has come somewhere, without its own topic of retries."""
    places = await group_progress(servers, group)
    topics = {place.queue.topic for place in places}
    return sorted(topic for topic in topics if not topic.startswith(RETRY_PREFIX))


async def plan_reset(
    servers: AdminConnection,
    group: str,
    target: Target,
    topics: Sequence[str],
    *,
    broker: str | None = None,
    queue_id: int | None = None,
) -> list[Move]:
    """What a reset would do; an offset outside a queue becomes the end that is nearer."""

    async def new_offset(queue: PlacedQueue) -> int:
        if target.is_end:
            return queue.bounds.offset_max
        if target.moment_ms is not None:
            return await offset_at(servers, queue.place, target.moment_ms)
        return target.offset or 0

    queues = [
        queue
        for topic in topics
        for queue in await queues_of(servers, topic, broker=broker, queue_id=queue_id)
    ]
    return await _plan(servers, group, queues, new_offset)


async def plan_clone(servers: AdminConnection, source: str, group: str, topics: Sequence[str]) -> list[Move]:
    """What it would do to take over the offsets of another group; where that has not begun, nothing."""

    async def begun(queue: PlacedQueue) -> int | None:
        return await group_offset(servers, queue.place, source)

    queues = [queue for topic in topics for queue in await queues_of(servers, topic)]
    offsets = dict(zip(queues, await of_each(queues, begun), strict=True))

    async def new_offset(queue: PlacedQueue) -> int:
        return offsets[queue] or 0

    return await _plan(servers, group, [queue for queue in queues if offsets[queue] is not None], new_offset)


async def move_offsets(servers: AdminConnection, group: str, moves: Iterable[Move]) -> None:
    """Let the group go on at the new offsets.

    Connected members pull from where they are and would overwrite what is only stored: their brokers send them there.
    A broker that leaves that to its members (4.x) moves all queues of a topic to one time, which may be something else:
    `MembersConnected`, and nothing is changed.
    """
    members = await group_members(servers, group)
    # Members may have come further than they have committed, so they are told of every queue.
    real = [move for move in moves if members.is_online or move.old != move.new]
    if members.is_online:
        await _check_brokers_reset(servers, group, {move.place.address for move in real})

    async def one(move: Move) -> None:
        queue = move.place.queue
        if members.is_online:
            header = ResetOffset(queue.topic, group, 0, queue_id=queue.queue_id, offset=move.new).encode()
            await servers.ask(move.place.address, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)
        else:
            header = UpdateGroupOffset(group, queue.topic, queue.queue_id, move.new).encode()
            await servers.ask(move.place.address, RequestCode.UPDATE_CONSUMER_OFFSET, header)

    await of_each(real, one)


async def _check_brokers_reset(servers: AdminConnection, group: str, addresses: Iterable[str]) -> None:
    for address in addresses:
        if (await broker_settings(servers, address)).get(SERVER_SIDE) != "true":
            raise MembersConnected(
                f"members of {group} are connected, and the broker at {address} does not move them by itself"
                f" ({SERVER_SIDE}): stop them first"
            )


async def _plan(
    servers: AdminConnection,
    group: str,
    queues: Sequence[PlacedQueue],
    new_offset: Callable[[PlacedQueue], Coroutine[Any, Any, int]],
) -> list[Move]:
    async def one(queue: PlacedQueue) -> Move:
        old = await group_offset(servers, queue.place, group)
        first, end = queue.bounds.offset_min, queue.bounds.offset_max
        new = min(max(first, await new_offset(queue)), end)
        return Move(queue.place, old, new, first, end)

    moves = await of_each(queues, one)
    if not moves:
        raise NothingFound(f"there is no queue in which the group {group} could be moved: name a --topic")
    return moves
