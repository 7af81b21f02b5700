"""What can go wrong with a read of a topic, besides what any client meets."""

from bolide.model.errors import ClientError


class DataLost(ClientError):
    """Messages that were asked for are not there.  With `failOnDataLoss=false` a read goes on without them."""


class OffsetsExpired(DataLost):
    """The queue begins later by now: its oldest messages were deleted by retention."""


class QueueRecreated(DataLost):
    """The queue ends before the offsets asked for: it was deleted and made again, or they belong to another one."""
