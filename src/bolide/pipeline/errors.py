"""What can go wrong with a read of a topic, besides what any client meets, and how Spark's users hear of it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from bolide.model.errors import BolideError, ClientError, MalformedRecord


class DataLost(ClientError):
    """Messages that were asked for are not there.  With `failOnDataLoss=false` a read goes on without them."""


class OffsetsExpired(DataLost):
    """The queue begins later by now: its oldest messages were deleted by retention."""


class QueueRecreated(DataLost):
    """The queue is not the one that the offsets are of: its topic was deleted and made again."""


class LogRolledBack(DataLost):
    """The queue is the one it was, and has lost its end: its broker crashed, or was set back to an older copy."""


class BadRecord(MalformedRecord):
    """Bytes in a broker's answer or log that are no message.  Only with `badBodies=fail` do they end a read."""


class WriteInDoubt(ClientError):
    """A batch cannot go on, because a broker that may have stored messages of it is out of reach."""


@contextmanager
def in_plain_words() -> Iterator[None]:
    """Errors of ours reach Spark's user as their text alone; of any other the whole traceback is wanted.

    Spark's Python workers send an exception with its traceback to the JVM, unless this variable is set.  A worker ends
    after that, so the variable is set for this one error; in a process that is no worker it is left alone.
    """
    try:
        yield
    except BolideError:
        if any(name.startswith("PYTHON_WORKER_FACTORY_") for name in os.environ):
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise
