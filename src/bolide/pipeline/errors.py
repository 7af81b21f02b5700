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
    """The queue ends before the offsets asked for: it was deleted and made again, or they belong to another one."""


class BadBody(MalformedRecord):
    """A body that is marked as packed and does not unpack.  Only with `badBodies=fail` does it end a read."""


class NotOffered(ClientError):
    """Something that Spark knows and this source does not do."""


class RequirementMissing(ClientError):
    """A library that Spark's Python must have is not there, or too old."""


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
