"""A batch read that looks only where rows can be that a query wants.  Needs a Spark that pushes filters: 4.1.

Spark 4.1 to 4.3 keeps what a push has planned with the frame, not with the query: whoever uses the same `load()` next,
or a second time in one query, reads only that.  No reader can help it, because the uses without filters do not ask it.
So there is this one only for who says `pushFilters`; everybody else reads everything and lets Spark filter.
"""

from collections.abc import Iterable
from dataclasses import replace

from pyspark.sql.datasource import Filter

from bolide.pipeline.errors import in_plain_words
from bolide.pipeline.filters import push
from bolide.pipeline.reader import RocketMQReader


class FilteringReader(RocketMQReader):
    """Takes filters into account.  Spark refuses a reader that can, in sessions that do not push any."""

    @in_plain_words()
    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        self._pushed = push(filters, self._options)
        if self._pushed.tags is not None:
            tags = " || ".join(sorted(self._pushed.tags))
            self._options = replace(self._options, wanted=replace(self._options.wanted, tags=tags))
        return filters  # all of them are Spark's to check again: we only look in fewer places
