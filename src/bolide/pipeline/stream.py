"""A stream, as Spark wants it.

One object lives in a Python worker beside the driver and is asked about offsets; another one, made of the same options,
is sent to the tasks and only reads.

Nothing is opened or checked when it is made: an error there is lost, because Spark's runner then fails in stopping a
reader that it has not.  Connections run on a loop in a thread of their own, so they live on between two triggers.
"""

from collections.abc import Coroutine, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from bolide.client.loop_thread import shared_loop
from bolide.net.clock import SystemClock
from bolide.pipeline.cluster import Cluster
from bolide.pipeline.errors import in_plain_words
from bolide.pipeline.follow import Follower
from bolide.pipeline.option_table import Use
from bolide.pipeline.options import ReadOptions, parse_options
from bolide.pipeline.places import decode_places, encode_places
from bolide.pipeline.schema import arrow_schema, check_schema
from bolide.pipeline.task import read_batches

T = TypeVar("T")


class RocketMQStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self._given = options
        self._schema = schema
        self._cluster: Cluster | None = None
        self._follower: Follower | None = None
        self._parsed: ReadOptions | None = None

    # ---- beside the driver ---------------------------------------------------------------------------------

    @in_plain_words()
    def initialOffset(self) -> dict[str, Any]:
        return encode_places(self._run(self._following().begin()))

    @in_plain_words()
    def getDefaultReadLimit(self) -> ReadLimit:
        """One of the limits, so that Spark knows that there are some; `latestOffset` keeps all of them."""
        admission = self._options().admission
        if admission.offsets_max is not None:
            return ReadMaxRows(admission.offsets_max)
        if admission.bytes_max is not None:
            return ReadMaxBytes(admission.bytes_max)
        if admission.offsets_min is not None:
            return ReadMinRows(admission.offsets_min)
        return ReadAllAvailable()

    @in_plain_words()
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        rows_max = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        limited = not isinstance(limit, ReadAllAvailable)
        places = decode_places(start)
        found = self._run(self._following().advance(places, rows_max, limited=limited))
        return start if found == places else encode_places(found)

    @in_plain_words()
    def prepareForTriggerAvailableNow(self) -> None:
        self._run(self._following().fix_target())

    @in_plain_words()
    def reportLatestOffset(self) -> dict[str, Any] | None:
        follower = self._follower
        return encode_places(follower.latest) if follower is not None and follower.latest else None

    @in_plain_words()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        ranges = self._run(self._following().ranges(decode_places(start), decode_places(end)))
        return [InputPartition(one) for one in ranges]

    @in_plain_words()
    def commit(self, end: dict[str, Any]) -> None:
        self._run(self._following().done(decode_places(end)))

    def stop(self) -> None:
        if self._cluster is not None:
            self._run(self._cluster.close())
            self._cluster = self._follower = None

    def _options(self) -> ReadOptions:
        if self._parsed is None:
            options = parse_options(self._given, Use.STREAM)
            check_schema(self._schema, options)
            self._parsed = options
        return self._parsed

    def _following(self) -> Follower:
        if self._follower is None:
            options = self._options()
            self._cluster = Cluster(options)
            self._run(self._cluster.start())
            self._follower = Follower(self._cluster, options, SystemClock())
        return self._follower

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return shared_loop().run(work)

    # ---- in the tasks --------------------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with in_plain_words():
            yield from read_batches(self._options(), partition.value, arrow_schema(self._schema))
