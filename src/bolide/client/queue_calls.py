"""What a consumer can ask the brokers about queues: messages, offsets, members of its group."""

from collections.abc import Mapping

from bolide.client.answers import end_of, raise_for
from bolide.client.instance import ClientInstance
from bolide.client.results import PullBlock, PullStatus
from bolide.model.errors import (
    BolideError,
    ClientError,
    NoBroker,
    ProtocolError,
    RemoteError,
    RequestError,
    RouteNotFound,
)
from bolide.model.offsets import GroupOffset, MessageQueue, QueueOffset
from bolide.model.topic import Subscription
from bolide.record.stored import StoredMessage
from bolide.wire.bodies.client import decode_members
from bolide.wire.bodies.route import MASTER_ID
from bolide.wire.codes import RequestCode, ResponseCode
from bolide.wire.command import Command
from bolide.wire.headers.group import GroupRequest
from bolide.wire.headers.offset import (
    OffsetAnswer,
    QueryGroupOffset,
    QueueRequest,
    SearchOffset,
    UpdateGroupOffset,
)
from bolide.wire.headers.pull import PullAnswer, PullFlag, PullRequest
from bolide.wire.headers.retry import SendBack

OFFSET_TIMEOUT_MS = 5_000
PULL_TIMEOUT_MS = 15_000
"""On top of the time that the broker may hold the pull."""

_STATUSES: Mapping[int, PullStatus] = {
    ResponseCode.SUCCESS: PullStatus.FOUND,
    ResponseCode.PULL_NOT_FOUND: PullStatus.NO_NEW_MESSAGE,
    ResponseCode.PULL_RETRY_IMMEDIATELY: PullStatus.NO_MATCHED_MESSAGE,
    ResponseCode.PULL_OFFSET_MOVED: PullStatus.OFFSET_ILLEGAL,
}


class QueueCalls:
    """Asks in the name of one group."""

    def __init__(self, instance: ClientInstance, group: str, *, masters_only: bool = False) -> None:
        """`masters_only`: a slave, which may have less than its master, is not asked in its place."""
        self._instance = instance
        self._group = group
        self._masters_only = masters_only

    async def pull(
        self,
        queue: MessageQueue,
        offset: GroupOffset,
        subscription: Subscription,
        *,
        messages_max: int,
        bytes_max: int | None = None,
        bulk: bool = False,
        wait_ms: int = 0,
        commit: GroupOffset | None = None,
        broker_id: int = MASTER_ID,
    ) -> PullBlock:
        """Records from `offset` on.  `wait_ms` lets the broker hold the request until something comes.

        `bulk` asks for more than consumers get at a time; bolide's brokers grant it, others do not know it.
        The subscription travels with the request, so a broker that has just started answers it too.
        """
        flags = PullFlag.SUBSCRIPTION
        if wait_ms > 0:
            flags |= PullFlag.SUSPEND
        if commit is not None and broker_id == MASTER_ID:
            flags |= PullFlag.COMMIT_OFFSET
        header = PullRequest(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=offset,
            max_msg_nums=messages_max,
            sys_flag=int(flags),
            commit_offset=commit or 0,
            suspend_timeout_millis=wait_ms,
            sub_version=subscription.version,
            subscription=subscription.expression,
            expression_type=subscription.expression_type,
            max_msg_bytes=bytes_max,
            bulk=bulk,
        )
        address = await self._address(queue, broker_id)
        request = Command(RequestCode.PULL_MESSAGE, header.encode())
        answer = await self._instance.call(address, request, wait_ms + PULL_TIMEOUT_MS)
        return _read_pull(answer, offset)

    async def min_offset(self, queue: MessageQueue) -> QueueOffset:
        header = QueueRequest(queue.topic, queue.queue_id)
        return _not_negative(await self._ask_offset(queue, RequestCode.GET_MIN_OFFSET, header.encode()))

    async def max_offset(self, queue: MessageQueue) -> QueueOffset:
        header = QueueRequest(queue.topic, queue.queue_id)
        return _not_negative(await self._ask_offset(queue, RequestCode.GET_MAX_OFFSET, header.encode()))

    async def offset_at(self, queue: MessageQueue, timestamp_ms: int) -> QueueOffset:
        """The first message stored at or after the time; the end of the queue when there is none.

        Apache's 4.9 gives the nearest message instead, the last one also for a time behind all.
        """
        header = SearchOffset(queue.topic, queue.queue_id, timestamp_ms)
        code = RequestCode.SEARCH_OFFSET_BY_TIMESTAMP
        return _not_negative(await self._ask_offset(queue, code, header.encode()))

    async def committed_offset(
        self, queue: MessageQueue, *, zero_for_young: bool = False
    ) -> GroupOffset | None:
        """The group's offset, or None.

        `zero_for_young`: where the group has none and the queue still has its very first messages, brokers answer
        0, so that a group started a moment after the first send misses nothing.
        """
        unset_is_zero = None if zero_for_young else False
        header = QueryGroupOffset(self._group, queue.topic, queue.queue_id, unset_is_zero)
        try:
            offset = await self._ask_offset(queue, RequestCode.QUERY_CONSUMER_OFFSET, header.encode())
        except RemoteError as error:
            if error.response_code == ResponseCode.QUERY_NOT_FOUND:
                return None
            raise
        return GroupOffset(offset) if offset >= 0 else None

    async def commit(self, queue: MessageQueue, offset: GroupOffset) -> None:
        """Store the group's offset and wait until the broker has it."""
        address = await self._address(queue)
        raise_for(await self._instance.call(address, self._commit_request(queue, offset), OFFSET_TIMEOUT_MS))

    async def commit_soon(self, queue: MessageQueue, offset: GroupOffset) -> None:
        """Send the group's offset without waiting for an answer."""
        address = await self._address(queue)
        await self._instance.notify(address, self._commit_request(queue, offset))

    async def send_back(
        self, queue: MessageQueue, message: StoredMessage, delay_level: int, max_reconsume_times: int
    ) -> None:
        """Have the broker bring a message again later, or bury it; returns when it has it."""
        header = SendBack(
            offset=message.log_offset,
            group=self._group,
            delay_level=delay_level,
            origin_msg_id=message.message_id,
            origin_topic=message.topic,
            max_reconsume_times=max_reconsume_times,
        )
        address = await self._address(queue)
        request = Command(RequestCode.CONSUMER_SEND_MSG_BACK, header.encode())
        raise_for(await self._instance.call(address, request, OFFSET_TIMEOUT_MS))

    async def members(self, topic: str) -> list[str]:
        """Client ids of the group, from the first broker of the topic that answers."""
        route = await self._instance.routes.route(topic)
        trouble: BolideError = RouteNotFound(f"the topic {topic!r} has no broker now")
        for broker_name in sorted(route.brokers):
            request = Command(RequestCode.GET_CONSUMER_LIST_BY_GROUP, GroupRequest(self._group).encode())
            try:
                answer = await self._instance.call(self._instance.routes.address(broker_name), request)
                return decode_members(raise_for(answer).body)
            except (ClientError, ProtocolError) as error:
                trouble = error
        raise trouble

    async def _address(self, queue: MessageQueue, broker_id: int = MASTER_ID) -> str:
        address = await self._instance.queue_address(queue, broker_id)
        name = queue.broker_name
        if self._masters_only and not self._instance.routes.has_master(name):
            self._instance.refresh_routes_soon()
            raise NoBroker(
                f"no master of {name} is up, and its slaves may not have all that it has: start the master"
            )
        return address

    def _commit_request(self, queue: MessageQueue, offset: GroupOffset) -> Command:
        header = UpdateGroupOffset(self._group, queue.topic, queue.queue_id, offset)
        return Command(RequestCode.UPDATE_CONSUMER_OFFSET, header.encode())

    async def _ask_offset(self, queue: MessageQueue, code: RequestCode, fields: dict[str, str]) -> int:
        address = await self._address(queue)
        answer = raise_for(await self._instance.call(address, Command(code, fields), OFFSET_TIMEOUT_MS))
        try:
            return OffsetAnswer.decode(answer.fields).offset
        except RequestError as error:
            raise ProtocolError(f"an answer to {code.name} that cannot be read: {error}") from error


def _not_negative(offset: int) -> QueueOffset:
    if offset < 0:
        raise ProtocolError(f"an answer with offset {offset}")
    return QueueOffset(offset)


def _read_pull(answer: Command, offset: GroupOffset) -> PullBlock:
    status = _STATUSES.get(answer.code)
    if status is None:
        raise RemoteError(answer.code, answer.remark or "")
    try:
        header = PullAnswer.decode(answer.fields)
    except RequestError as error:
        raise ProtocolError(f"a pull answer that cannot be read: {error}") from error
    if header.next_begin_offset < 0:
        raise ProtocolError(f"a pull answer that goes on at offset {header.next_begin_offset}")
    if status is not PullStatus.FOUND:  # a queue that has lost a part sends us behind its end
        next_offset = min(header.next_begin_offset, max(offset, header.max_offset))
    else:
        next_offset = header.next_begin_offset
        _check_agrees(header, answer.body, offset)
    return PullBlock(
        status,
        GroupOffset(next_offset),
        QueueOffset(header.min_offset),
        QueueOffset(header.max_offset),
        answer.body if status is PullStatus.FOUND else b"",
        header.suggest_which_broker_id,
    )


def _check_agrees(header: PullAnswer, body: bytes, offset: GroupOffset) -> None:
    """Where to go on becomes the group's offset: messages that contradict it must not move it."""
    next_offset = header.next_begin_offset
    if bool(body) != (next_offset > offset):
        what = "messages and" if body else "no message of those it has found, but"
        raise ProtocolError(
            f"the broker sends {what} goes on at offset {next_offset} after a pull at {offset}"
        )
    if next_offset > header.max_offset and next_offset > end_of(
        body
    ):  # some may be newer than its view of the end
        raise ProtocolError(
            f"the broker goes on at offset {next_offset}, and says that the queue ends at {header.max_offset}"
        )
