"""Which queues belong to which member of a group.

Every member computes this by itself, so all must come to the same answer from the same lists: clients of other
languages too.  The rule is RocketMQ's default (AllocateMessageQueueAveragely): queues and members are put in order
and each member takes one run of neighbours.
"""

from collections.abc import Iterable, Sequence

from bolide.model.offsets import MessageQueue


def allocate_average(
    queues: Iterable[MessageQueue], members: Iterable[str], me: str
) -> Sequence[MessageQueue]:
    """My queues; none when I am not a member.  The first members take one more when it does not divide."""
    ordered = sorted(queues)
    ranked = sorted(set(members))
    if me not in ranked:
        return []
    rank = ranked.index(me)
    share, extra = divmod(len(ordered), len(ranked))
    start = rank * share + min(rank, extra)
    return ordered[start : start + share + (rank < extra)]
