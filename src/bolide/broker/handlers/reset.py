"""Moving a group: to a time or an offset (222), to where another group is (314); the least offsets of a topic (308).

A group goes on at its new offsets in one of two ways (`useServerSideResetOffset`).  Here, as in 5.x: the offsets are
stored, and whoever pulls from elsewhere is told to go there with its next pull, which every client understands.  Or by
its members, as in 4.x: they are told the offsets (220) and commit them; nobody can be told when nobody is there.

A topic may have thousands of queues, and a group thousands of topics: all of it goes in slices, a move after the other
(`broker/moves.py`).  Who waits has nothing but its request: where a group goes on, and in which topics, is found when
its turn has come.

A move whose connection has closed before its turn is not made: nobody would hear of it, and an operator who has given
it up may have asked for something else meanwhile.  One that has begun is made in all its queues and topics, whoever
still listens: a group that has gone elsewhere in some of them, and in others not, would skip messages or get them
again, and nobody could tell where.  So an operator without an answer finds the group where it was, or where it was to
go, and can ask for the same once more; only a full table, the end of the broker, and a topic or group that is deleted
meanwhile leave a move half done.
"""

import logging
from collections.abc import Awaitable, Iterator, Mapping
from functools import partial
from itertools import islice

from bolide.broker.moves import Moves
from bolide.broker.own_offsets import check_offsets_change
from bolide.broker.part import Part, Work
from bolide.broker.state import BrokerState
from bolide.model.errors import ConsumerNotOnline, InvalidRequest, RequestError, TooBusy
from bolide.model.limits import TOPICS_ASKED_MAX
from bolide.model.numbers import INT64_MAX
from bolide.model.offsets import MessageQueue
from bolide.model.steps import Steps
from bolide.model.topic import TopicConfig
from bolide.net.link import Link
from bolide.net.provoked import Provoked
from bolide.net.registry import Handler
from bolide.net.turns import in_turns, join_pieces, next_turn
from bolide.wire.bodies.admin import correction_offsets_pieces, offset_list_pieces, offsets_pieces
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from bolide.wire.headers.admin import CloneOffsets, CorrectionOffsetRequest, ResetOffset

log = logging.getLogger(__name__)

QUEUES_PER_TURN = 64
"""A time is looked for in a queue by some twenty reads."""

MOVED_PER_TURN = 256

COMPARED_PER_TURN = 2048

TOLD_AT_ONCE = 64
"""Offsets of so many queues are no large answer."""

KEPT_PER_QUEUE = 72
"""Bytes of an offset that was found, until the answer tells of it."""

NOW = -1
"""The time that stands for the end of a queue."""

ALL_QUEUES = -1

CPP = "CPP"

NAMED = 8
"""So many members are named in a refusal."""


class Resets(Part):
    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._provoked = Provoked(state.clock)
        self._moves = Moves()

    def handlers(self) -> dict[RequestCode, Handler]:
        return {
            RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: self.reset,
            RequestCode.CLONE_GROUP_OFFSET: self.clone,
            RequestCode.QUERY_CORRECTION_OFFSET: self.correction_offsets,
        }

    def work(self) -> list[Work]:
        return [("moves of groups", self._moves.run())]

    def reset(self, link: Link, request: Command) -> Awaitable[Command | None]:
        """222: answers with the offsets at which the group goes on."""
        header = ResetOffset.decode(request.fields)
        if header.queue_id < ALL_QUEUES:
            raise InvalidRequest(f"queueId is {header.queue_id}: a queue, or -1 for all")
        check_offsets_change(header.group)
        self._topic_of(header)
        return self._reset(link, request, header)

    def _topic_of(self, header: ResetOffset) -> TopicConfig:
        config = self._state.topics.require(header.topic)
        self._state.groups.require(header.group)
        return config

    async def _reset(self, link: Link, request: Command, header: ResetOffset) -> Command | None:
        state = self._state
        is_here = state.settings.now.server_side_reset
        move = self._reset_here if is_here else self._reset_by_members
        with self._moves.place(link):
            offsets = await self._moves.made(link, partial(move, header))
            if offsets is None:
                return None
            kept = len(offsets) * KEPT_PER_QUEUE
            link.account.charge(kept)
            try:
                if is_here:
                    await state.files.saved(state.offsets)
                    self._say_reset(link, header, len(offsets))
                return await self._answer(link, request, header.topic, offsets)
            finally:
                link.account.release(kept)

    async def _reset_here(self, header: ResetOffset) -> dict[int, int]:
        offsets = await in_turns(self._offsets(header, self._topic_of(header)))
        await in_turns(self._move(header.group, header.topic, offsets))
        return offsets

    def _say_reset(self, link: Link, header: ResetOffset, queues: int) -> None:
        self._provoked.say(
            log,
            logging.INFO,
            link.remote,
            "%s has reset the group %s in %d queues of %s",
            link.remote,
            header.group,
            queues,
            header.topic,
            about=(header.group, header.topic),
        )

    async def _answer(
        self, link: Link, request: Command, topic: str, offsets: Mapping[int, int]
    ) -> Command | None:
        def pieces() -> Iterator[bytes]:
            return offsets_pieces(self._by_queue(topic, offsets))

        if len(offsets) <= TOLD_AT_ONCE:  # tools move a topic queue by queue, many at a time
            return request.answer(body=b"".join(pieces()))
        try:
            return await self._state.large_answers.make(link, request, pieces)
        except TooBusy as error:
            raise TooBusy(f"the group is where it was to go, but no answer can tell of it: {error}") from None

    async def _reset_by_members(self, header: ResetOffset) -> dict[int, int]:
        """They are told where to go on: unless forced, no further than where they are."""
        state = self._state
        wanted = await in_turns(self._offsets(header, self._topic_of(header)))
        known = state.offsets.offsets_of(header.group, header.topic)
        offsets = {
            queue_id: offset if header.is_force else min(offset, known.get(queue_id, offset))
            for queue_id, offset in wanted.items()
        }
        group = state.clients.group(header.group)
        if group is None:
            raise ConsumerNotOnline(
                f"no consumer of the group {header.group[:255]!r} is connected, and its members move it"
                " (useServerSideResetOffset is false): start one, or set its offsets"
            )
        members = list(group.members.values())
        body = await join_pieces(offsets_pieces(self._by_queue(header.topic, offsets)))
        listed = b""
        if any(member.language == CPP for member in members):
            listed = await join_pieces(offset_list_pieces(self._by_queue(header.topic, offsets)))
        fields = ResetOffset(header.topic, header.group, header.timestamp).encode()
        if deaf := [member.client_id for member in members if member.connection.is_congested]:
            raise TooBusy(
                f"{len(deaf)} of {len(members)} members do not read what they are sent, and would undo the move with"
                f" their next commit, so none was told: try again, or stop them ({', '.join(deaf[:NAMED])[:512]})"
            )
        for member in members:
            told = listed if member.language == CPP else body
            member.connection.notify(Command(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, dict(fields), told))
            await next_turn()  # each gets as much as the topic has queues
        return offsets

    def _offsets(self, header: ResetOffset, config: TopicConfig) -> Steps[dict[int, int]]:
        """Where the group is to go on, by queue."""
        reader = self._state.store.reader
        if header.queue_id != ALL_QUEUES:
            if header.queue_id >= config.read_queues:
                raise InvalidRequest(
                    f"the topic {config.name} has {config.read_queues} queues to read, and no queue {header.queue_id}"
                )
            if header.offset is not None and header.offset != NOW:
                start, end = reader.queue_range(config.name, header.queue_id)
                if not start <= header.offset <= end:
                    raise RequestError(
                        f"the offset {header.offset} is not in queue {header.queue_id}, which has {start} to {end}"
                    )
                return {header.queue_id: header.offset}
        queue_ids = range(config.read_queues) if header.queue_id == ALL_QUEUES else (header.queue_id,)
        found: dict[int, int] = {}
        for queue_id in queue_ids:
            if header.timestamp == NOW:
                found[queue_id] = reader.queue_range(config.name, queue_id)[1]
            else:
                found[queue_id] = reader.search_offset(config.name, queue_id, header.timestamp)
            if len(found) % QUEUES_PER_TURN == 0:
                yield
                self._topic_of(
                    header
                )  # one that is made again was away for some turns; what was found is not in it
        return found

    def _move(self, group: str, topic: str, offsets: Mapping[int, int]) -> Steps[None]:
        """The group goes on at these offsets, unless it or the topic is deleted meanwhile."""
        state, left = self._state, iter(offsets.items())
        while some := dict(islice(left, MOVED_PER_TURN)):
            if topic not in state.topics or group not in state.groups:
                return
            state.offsets.reset(group, topic, some, is_online=state.clients.group(group) is not None)
            yield

    def _by_queue(self, topic: str, offsets: Mapping[int, int]) -> Iterator[tuple[MessageQueue, int]]:
        name = self._state.identity.name
        return ((MessageQueue(topic, name, queue_id), offset) for queue_id, offset in offsets.items())

    async def clone(self, link: Link, request: Command) -> Command | None:
        """314: a group goes on where another one is; in one topic, or in all that the other one has."""
        header, state = CloneOffsets.decode(request.fields), self._state
        check_offsets_change(header.dest_group)
        for name in (header.src_group, header.dest_group):
            state.groups.require(name)
        with self._moves.place(link):
            if not await self._moves.made(link, partial(self._clone, header)):
                return None
            await state.files.saved(state.offsets)
        return request.answer()

    async def _clone(self, header: CloneOffsets) -> bool:
        state = self._state
        for topic in [header.topic] if header.topic else self._topics_of(header.src_group):
            if topic in state.topics and (header.offline or self._subscribes(header.src_group, topic)):
                offsets = dict(state.offsets.offsets_of(header.src_group, topic))
                await in_turns(self._move(header.dest_group, topic, offsets))
        return True

    def _topics_of(self, group: str) -> list[str]:
        topics = list(islice(self._state.offsets.topics_of(group), TOPICS_ASKED_MAX + 1))
        if len(topics) > TOPICS_ASKED_MAX:
            raise InvalidRequest(
                f"the group has offsets in more than {TOPICS_ASKED_MAX} topics; name one of them"
            )
        return topics

    def _subscribes(self, name: str, topic: str) -> bool:
        """Whether the group reads the topic, as far as its members say."""
        group = self._state.clients.group(name)
        return group is None or not group.subscriptions or topic in group.subscriptions

    def correction_offsets(self, link: Link, request: Command) -> Awaitable[Command | None]:
        """308: by queue the least offset of all groups but the filtered ones; the largest number where the compared
        group is not behind it."""
        header = CorrectionOffsetRequest.decode(request.fields)

        def pieces() -> Iterator[bytes]:
            least: dict[int, int] = {}
            for at, (queue_id, offset) in enumerate(self._others(header), 1):
                _lower(least, queue_id, offset)
                if at % COMPARED_PER_TURN == 0:
                    yield b""  # nothing to tell yet, and others have their turn
            compared = self._state.offsets.offsets_of(header.compare_group, header.topic)
            for queue_id, offset in compared.items():
                if least.get(queue_id, INT64_MAX) > offset:
                    least[queue_id] = INT64_MAX
            yield from correction_offsets_pieces(least)

        return self._state.large_answers.make(link, request, pieces)

    def _others(self, header: CorrectionOffsetRequest) -> Iterator[tuple[int, int]]:
        """Queue and offset of each group that is not filtered, as they are when the group's turn comes."""
        filtered = set((header.filter_groups or "").split(","))
        for group in self._state.offsets.groups_of(header.topic):
            if group not in filtered:
                yield from list(self._state.offsets.offsets_of(group, header.topic).items())


def _lower(least: dict[int, int], queue_id: int, offset: int) -> None:
    least[queue_id] = min(offset, least.get(queue_id, offset))
