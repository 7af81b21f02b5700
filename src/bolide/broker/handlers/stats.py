"""Statistics of topics and groups (315), the progress of all groups (317), and times of messages (303).

What went into a topic is not counted at all: it is how much its queues have grown.  What a group got is added up once
per pull, by whoever serves it, in `state.statistics`.
"""

from collections.abc import Awaitable, Iterator

from bolide.broker.handlers.offset import progress_of
from bolide.broker.part import Part, Work
from bolide.broker.state import BrokerState
from bolide.broker.statistics import StatName
from bolide.model.errors import RequestError
from bolide.model.offsets import MessageQueue, QueueOffset
from bolide.model.topic import TopicConfig
from bolide.net.link import Link
from bolide.net.registry import Handler
from bolide.wire.bodies.admin import (
    QueueTimeSpan,
    StatisticsFigure,
    all_progress_pieces,
    encode_statistics,
    time_span_pieces,
)
from bolide.wire.bodies.offset import QueueProgress
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from bolide.wire.headers.admin import AllProgressRequest, StatisticsRequest, TimeSpanRequest

NO_TIME = -1


class Stats(Part):
    def __init__(self, state: BrokerState) -> None:
        self._state = state
        state.door.on_arrival(state.statistics.arrived)
        state.topics.on_delete(state.statistics.topic_deleted)

    def handlers(self) -> dict[RequestCode, Handler]:
        return {
            RequestCode.VIEW_BROKER_STATS_DATA: self.view,
            RequestCode.GET_BROKER_CONSUME_STATS: self.all_progress,
            RequestCode.QUERY_CONSUME_TIME_SPAN: self.time_span,
        }

    def work(self) -> list[Work]:
        return [("statistics", self._state.statistics.run())]

    def view(self, link: Link, request: Command) -> Command:
        """315: the last minute, hour and day of one count."""
        header = StatisticsRequest.decode(request.fields)
        figures = self._state.statistics.figures(header.stats_name, header.stats_key)
        if figures is None:
            known = ", ".join(name.value for name in StatName)
            raise RequestError(
                f"nothing is counted as {header.stats_name[:64]!r} of {header.stats_key[:255]!r};"
                f" counted are {known}, once there was something"
            )
        minute, hour, day = (StatisticsFigure(*figure) for figure in figures)
        return request.answer(body=encode_statistics(minute, hour, day))

    def all_progress(self, link: Link, request: Command) -> Awaitable[Command | None]:
        """317: how far every group is in each of its topics; with `isOrder` in the ordered ones alone."""
        ordered_only = AllProgressRequest.decode(request.fields).is_order
        state = self._state
        return state.large_answers.make(
            link,
            request,
            lambda: all_progress_pieces(self._groups(ordered_only), state.identity.address),
        )

    def _groups(
        self, ordered_only: bool
    ) -> Iterator[tuple[str, Iterator[tuple[Iterator[tuple[MessageQueue, QueueProgress]], float]]]]:
        for group in [config.name for config in self._state.groups]:
            yield group, self._topics(group, ordered_only)

    def _topics(
        self, group: str, ordered_only: bool
    ) -> Iterator[tuple[Iterator[tuple[MessageQueue, QueueProgress]], float]]:
        state = self._state
        online = state.clients.group(group)
        for topic in state.offsets.topics_of(group):
            config = state.topics.get(topic)
            if config is None or (ordered_only and not config.order):
                continue
            if online is not None and online.subscriptions and topic not in online.subscriptions:
                continue
            yield progress_of(state, group, [topic]), state.statistics.rate_of_group(topic, group)

    def time_span(self, link: Link, request: Command) -> Awaitable[Command | None]:
        """303: for each queue the times of its first and last message, and of the last one the group has finished."""
        header = TimeSpanRequest.decode(request.fields)
        config = self._state.topics.require(header.topic)
        return self._state.large_answers.make(
            link, request, lambda: time_span_pieces(self._spans(config, header.group))
        )

    def _spans(self, config: TopicConfig, group: str) -> Iterator[QueueTimeSpan]:
        for queue_id in range(config.write_queues):
            yield self._span(MessageQueue(config.name, self._state.identity.name, queue_id), group)

    def _span(self, queue: MessageQueue, group: str) -> QueueTimeSpan:
        reader, topic, queue_id = self._state.store.reader, queue.topic, queue.queue_id
        start, end = reader.queue_range(topic, queue_id)
        done = self._state.offsets.query(group, topic, queue_id) or 0

        def stored_ms(offset: int) -> int:
            found = reader.store_time(topic, queue_id, QueueOffset(offset)) if start <= offset < end else None
            return NO_TIME if found is None else found

        first_ms = stored_ms(start)
        next_ms = stored_ms(max(done, start)) if done < end else NO_TIME
        return QueueTimeSpan(
            queue,
            first_ms=first_ms,
            last_ms=stored_ms(end - 1),
            consumed_ms=stored_ms(done - 1) if done > 0 else first_ms,
            delay_ms=0 if next_ms == NO_TIME else max(0, self._state.clock.now_ms() - next_ms),
        )
