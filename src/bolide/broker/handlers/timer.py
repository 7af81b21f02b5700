"""Timed messages: those with a time of their own (RocketMQ: TIMER_DELIVER_MS and the like), and recalling one (370)."""

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from contextlib import suppress

from bolide.broker.diversions import set_aside
from bolide.broker.handlers.send import answer_stored, topic_of_clients
from bolide.broker.part import Part, Work
from bolide.broker.property_room import check_room
from bolide.broker.sent_message import without_zero
from bolide.broker.state import BrokerState
from bolide.broker.timer import Timer
from bolide.model.errors import (
    InvalidRequest,
    MessageIllegal,
    OperationIllegal,
    PermissionDenied,
    RequestError,
    StoreUnavailable,
    TooBusy,
    TopicNotFound,
)
from bolide.model.limits import PROPERTIES_ROOM_BYTES, TIMER_RECALLS_MAX
from bolide.model.message import Property, format_properties
from bolide.model.names import TIMER_TOPIC
from bolide.model.numbers import parse_whole
from bolide.model.recall import RecallHandle, decode_handle
from bolide.model.steps import at_once
from bolide.net.link import Link
from bolide.net.registry import Handler
from bolide.net.ticks import ticks
from bolide.net.trouble import Trouble, goes_on
from bolide.net.turns import in_turns, next_turn
from bolide.rules.timed import ASKING, asked_ms, step_of
from bolide.rules.transactions import is_whole
from bolide.store.append import QueueTail
from bolide.store.disk import NOT_NOW
from bolide.store.new_message import NewMessage
from bolide.store.retention import HOUR_MS
from bolide.store.timer.index import TimerIndex
from bolide.store.timer.point import TimerPoint
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from bolide.wire.headers.send import RecallAnswer, RecallRequest

log = logging.getLogger(__name__)

LOOK_MS = 200
"""The clock is looked at so often while something waits: it may step."""

IDLE_MS = 60_000
"""While nothing waits."""

GATHER_MS = 2
"""Messages that come are filed with those of the next moment: a turn for each read would cost more than they do."""

POINT_BYTES_MAX = 256 * 1024**2
"""A start goes over the log behind the last point; it is never more than this."""

RECALL_TAG = "_RECALL_TAG_"


_OF_ANOTHER_TIME: dict[str, None] = dict.fromkeys(
    (Property.TIMER_ENQUEUE_MS, Property.TIMER_DEQUEUE_MS, Property.TIMER_ROLL_TIMES)
)


class Timers(Part):
    def __init__(self, state: BrokerState) -> None:
        self._state = state
        config = state.settings.now
        window_ms = config.timer_roll_steps * config.timer_step_ms
        if config.reserved_hours:  # a record that waits keeps its segment, and the original would delete it
            window_ms = min(window_ms, config.reserved_hours * HOUR_MS * 2 // 3)
        index = TimerIndex(state.disk, state.root, config.timer_step_ms, config.timer_file_bytes)
        self.timer = Timer(
            state.store,
            state.door,
            state.topics,
            index,
            state.clock,
            max(window_ms // config.timer_step_ms, 2) * config.timer_step_ms,
        )
        self._thread = state.surroundings.threads("bolide-timer")
        self._wanted = asyncio.Event()
        self._gathering: asyncio.TimerHandle | None = None
        self._next: tuple[TimerPoint, int, int] | None = (
            None  # with the log's end and the count of changes then
        )
        self._written: tuple[TimerPoint, int] | None = None
        self._is_broken = False
        """A sync has failed: nobody knows what is in the files.  The last point stays true, a start mends the rest."""
        self._unwritten = Trouble(log, "the timer's files cannot be written, and a start would take longer")
        state.diversions.add(self.divert)
        state.door.on_arrival(self._arrived)
        state.kept_from.append(self.timer.oldest_waiting)

    def handlers(self) -> dict[RequestCode, Handler]:
        return {RequestCode.RECALL_MESSAGE: self.recall}

    def work(self) -> list[Work]:
        return [("timed messages", self._run()), ("the timer's files", self._keep())]

    def figures(self) -> Mapping[str, str]:
        timer = self.timer
        behind_ms = self._state.clock.now_ms() - timer.read_ms if timer.index.slots_ahead else 0
        _, end = self._state.store.reader.queue_range(TIMER_TOPIC, 0)
        return {
            "timerReadBehind": str(max(0, behind_ms) // 1000),
            "timerOffsetBehind": str(max(0, end - timer.queue_offset) if timer.is_open else 0),
            "timerCongestNum": str(max(0, timer.index.pending)),
        }

    # ---- sending -------------------------------------------------------------------------------------------

    def divert(
        self, message: NewMessage, properties: Mapping[str, str], *, is_taken: bool
    ) -> NewMessage | None:
        """A message with a time waits in the timer's topic; one whose time is over does not wait at all.

        What a sender may ask for is no question any more of one that was taken, as a half message.
        """
        if properties.keys().isdisjoint(ASKING):
            return None
        if not is_whole(message.sys_flag):
            return None
        if (parse_whole(properties.get(Property.DELAY, "0")) or 0) > 0:  # a delay level counts alone
            return None
        config, now_ms = self._state.settings.now, self._state.clock.now_ms()
        if not config.timer_enabled and not is_taken:
            raise RequestError("timed messages are switched off at this broker: timerWheelEnable is false")
        if Property.TIMER_DELETE_KEY in properties and not config.recall_enabled and not is_taken:
            raise PermissionDenied("recalls are switched off at this broker: recallMessageEnable is false")
        due_ms = asked_ms(properties, now_ms)
        assert due_ms is not None
        if due_ms <= now_ms:
            if Property.TIMER_DELETE_KEY in properties:
                raise MessageIllegal("it is too late to recall this message: its time is over")
            return None
        # A delay has a millisecond more than was asked for.
        if due_ms - now_ms > config.timer_delay_s_max * 1000 + 1 and not is_taken:
            raise MessageIllegal(
                f"the message is due in {(due_ms - now_ms) // 1000} s; timerMaxDelaySec allows"
                f" {config.timer_delay_s_max}"
            )
        check_room(message.properties, PROPERTIES_ROOM_BYTES)
        step = step_of(due_ms, config.timer_step_ms)
        if self.timer.is_full:
            raise TooBusy(
                "too many timed messages are due, or wait for a clock that was set back; send again later"
            )
        slot = self.timer.index.wheel.slot(max(step, self.timer.read_ms))
        if Property.TIMER_DELETE_KEY in properties and slot.recalls >= TIMER_RECALLS_MAX:
            raise RequestError(f"{slot.recalls} messages that are due at this time are recalled already")
        if slot.messages >= config.timer_slot_messages_max:
            raise RequestError(
                f"{config.timer_slot_messages_max} messages are due at this time already"
                " (timerCongestNumEachSlot); choose another one, or send again later"
            )
        # A message that has waited once, and is sent again to wait once more, brings what was written then.
        return set_aside(message, TIMER_TOPIC, 0, **{**_OF_ANOTHER_TIME, Property.TIMER_OUT_MS: str(step)})

    def recall(self, link: Link, request: Command) -> Coroutine[None, None, Command] | None:
        """370: a record that says which message is not to be delivered, filed under the same time."""
        state = self._state
        header = RecallRequest.decode(request.fields)
        if not state.settings.now.recall_enabled:
            raise PermissionDenied("messages cannot be recalled at this broker: recallMessageEnable is false")
        topic = state.topics.get(topic_of_clients(header.topic))
        if topic is None:
            raise TopicNotFound(f"the topic {header.topic} does not exist")
        try:
            handle = decode_handle(header.recall_handle)
        except InvalidRequest as error:
            raise OperationIllegal(str(error)) from None
        self._check(handle, topic.name)
        key = handle.unique_key
        if state.settings.now.timer_delete_key_has_topic:
            key = f"{topic.name}+{key}"
        now_ms = state.clock.now_ms()
        properties = {
            Property.TAGS: RECALL_TAG,
            Property.TIMER_DELETE_KEY: key,
            Property.UNIQUE_KEY: handle.unique_key,
            Property.TIMER_DELIVER_MS: str(handle.time_ms),
            Property.BORN_TIMESTAMP: str(now_ms),
            Property.PRODUCER_GROUP: header.producer_group or "",
        }
        message = NewMessage(
            topic=topic.name,
            queue_id=0,
            body=b"0",
            properties=without_zero(format_properties(properties)).encode(),
            flag=0,
            sys_flag=0,
            born_timestamp_ms=now_ms,
            born_host=link.remote_host,
        )
        (stored,) = state.door.append([state.diversions.of(message, properties)])
        answer = request.answer(fields=RecallAnswer(handle.unique_key).encode())
        return answer_stored(state, link, request, answer, topic.name, stored.end)

    def _check(self, handle: RecallHandle, topic: str) -> None:
        state = self._state
        if handle.topic != topic:
            raise OperationIllegal(f"the handle is of a message of the topic {handle.topic[:127]}")
        if handle.broker_name != state.identity.name:
            raise OperationIllegal(f"the handle is of a message of the broker {handle.broker_name[:127]}")
        # When the clock was set back, what was due before has been delivered, or is about to be.
        left_ms = handle.time_ms - max(state.clock.now_ms(), state.store.newest_stored_ms or 0)
        if left_ms <= 0 or step_of(handle.time_ms, state.settings.now.timer_step_ms) <= self.timer.read_ms:
            raise OperationIllegal("it is too late to recall this message: its time has come")
        if left_ms >= state.settings.now.timer_delay_s_max * 1000:
            raise OperationIllegal("no message waits as long as this handle says")

    # ---- working -------------------------------------------------------------------------------------------

    def _arrived(self, tail: QueueTail) -> None:
        if tail.key[0] == TIMER_TOPIC and self._gathering is None:
            self._gathering = asyncio.get_running_loop().call_later(GATHER_MS / 1000, self._gathered)

    def _gathered(self) -> None:
        self._gathering = None
        self._wanted.set()

    @goes_on("delivering timed messages")
    async def _run(self) -> None:
        if not self.timer.is_open:
            await in_turns(self.timer.opening())
            if self.timer.found is not None:
                self._written = self.timer.found, 0
        trouble = Trouble(log, "the timer met an unforeseen error and goes on")
        while True:
            self._wanted.clear()
            try:
                again_ms = self.timer.turn()
            except OSError as error:  # the index cannot be written; the messages are in the log
                trouble.met(error)
                again_ms = self._state.clock.now_ms() + LOOK_MS
            else:
                trouble.over()
            await self._pause(again_ms)

    async def _pause(self, until_ms: int | None) -> None:
        """Until a time or a new message, and never for long: the clock may step."""
        now_ms = self._state.clock.now_ms()
        if until_ms is not None and until_ms <= now_ms:
            await next_turn()
            return
        wait_ms = IDLE_MS if until_ms is None else min(until_ms - now_ms, LOOK_MS)
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_ms / 1000):
                await self._wanted.wait()

    # ---- becoming durable ----------------------------------------------------------------------------------

    @goes_on("writing the timer's files")
    async def _keep(self) -> None:
        async for _ in ticks(self._state.settings.now.timer_flush_ms / 1000):
            if self.timer.is_open:
                with self.timer.index.held():
                    await in_turns(self.timer.index.looking(self.timer.read_ms))
                if not self._is_broken:
                    await self._keep_once()

    async def _keep_once(self) -> None:
        """Take a point; write it when the log is durable as far as it was then."""
        state, timer = self._state, self.timer
        if timer.is_rebuilding:  # it was of an index that is no more
            self._next = None
        if self._next is None and self._is_due():
            self._next = (timer.point(), int(state.store.log.end), timer.changes)
            state.door.sync_soon()
        if self._next is None or state.store.durability.durable < self._next[1]:
            return
        point, _, changes = self._next
        self._next = None
        try:
            with timer.index.held():
                writing = await in_turns(timer.index.writing(point))
                await asyncio.wrap_future(
                    self._thread.submit(timer.index.write, writing, state.clock.now_ms())
                )
        except OSError as error:
            self._unwritten.met(error)
            self._is_broken = error.errno not in NOT_NOW
        else:
            self._unwritten.over()
            timer.index.written()
            self._written = point, changes
            timer.index.units.drop_before(int(state.store.log.start))

    def _is_due(self) -> bool:
        """Whether there is something new to write down."""
        if self.timer.is_rebuilding:
            return False
        if self._written is None:
            return self.timer.changes > 0
        point, changes = self._written
        return self.timer.changes != changes or self.timer.mark - point.mark > POINT_BYTES_MAX

    def close(self) -> None:
        """Leave the files as whoever goes on needs them, us or the original."""
        if self._gathering is not None:
            self._gathering.cancel()
        self._thread.shutdown(wait=True)
        state, timer = self._state, self.timer
        is_true = timer.is_open and not self._is_broken and state.store.durability.failure is None
        try:
            if is_true and not timer.is_rebuilding and (timer.changes or self._written is not None):
                state.store.sync_log()
                timer.catch_up()
                if not timer.is_rebuilding:
                    self._write_point()
                    if timer.settle():
                        self._write_point()
        except (OSError, StoreUnavailable) as error:
            log.warning("the timer's files are not what they should be, the next start mends them: %s", error)
        finally:
            timer.index.close()

    def _write_point(self) -> None:
        index = self.timer.index
        index.write(at_once(index.writing(self.timer.point())), self._state.clock.now_ms())
        index.written()
