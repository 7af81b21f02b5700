"""Relay: what operators ask of a consumer is passed on to it (307, 309), or asked of every member (223 by 221).

The broker calls the client over the connection that the client has made.  A call waits for some seconds at most, and
only so many wait, of one consumer, of one who asks and of all (`machines/questions.py`).  What comes back is bounded
before anything is done with it: a consumer is a stranger, and so is who asks.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Mapping
from dataclasses import replace

from bolide.broker.part import Part
from bolide.broker.state import BrokerState
from bolide.machines.clients import Member
from bolide.machines.questions import Questions
from bolide.machines.shares import room
from bolide.model.addresses import host_of
from bolide.model.errors import (
    BolideError,
    CallTimeout,
    ConnectionLost,
    InvalidRequest,
    NoAnswer,
    NothingFound,
    ProtocolError,
    RequestError,
    TooBusy,
)
from bolide.model.limits import (
    MEMBER_OFFSETS_BYTES_MAX,
    MEMBERS_OFFSETS_BYTES_MAX,
    RELAY_ANSWER_BYTES_MAX,
    RELAY_MEMBERS_MAX,
)
from bolide.model.offsets import MessageQueue
from bolide.model.printable import printable_part
from bolide.model.response_code import ResponseCode
from bolide.net.link import Link
from bolide.net.registry import Handler
from bolide.net.turns import in_turns, next_turn
from bolide.record.message_id import parse_offset_id
from bolide.wire.bodies.admin import decode_member_offsets, group_offsets_pieces
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from bolide.wire.headers.admin import ConsumeDirectly, ConsumerStatusRequest, RunningInfoRequest

PATIENCE_MS = 10_000
"""RocketMQ: callClient.  A client may run jstack, or a listener, before it answers."""

STATUS_MS = 5_000

NAMES_MAX = 8
"""Members that are named as left out for the same reason."""

NAME_LENGTH_MAX = 64


class AnswerTooLong(RequestError):
    """A consumer has answered with more than is taken from one, or kept for all who ask."""


class Relay(Part):
    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._questions: Questions[Link] = Questions()
        self._reading = asyncio.Lock()  # one member's answer at a time
        self._kept: Counter[str] = Counter()  # bytes of members' answers, by the host that asks

    def handlers(self) -> dict[RequestCode, Handler]:
        return {
            RequestCode.GET_CONSUMER_RUNNING_INFO: self.running_info,
            RequestCode.CONSUME_MESSAGE_DIRECTLY: self.consume_directly,
            RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: self.group_status,
        }

    def running_info(self, link: Link, request: Command) -> Awaitable[Command]:
        """307: settings, subscriptions, queues, rates and, if wanted, the stack of one consumer."""
        header = RunningInfoRequest.decode(request.fields)
        member = self._member(header.consumer_group, header.client_id)
        return self._pass_on(link, member, request, Command(request.code, header.encode()))

    def consume_directly(self, link: Link, request: Command) -> Awaitable[Command]:
        """309: one consumer's listener gets a message, named by its place in the log; its progress does not change."""
        header, state = ConsumeDirectly.decode(request.fields), self._state
        if not header.msg_id:
            raise InvalidRequest("msgId is missing: the offset id of the message that is to be consumed")
        _, log_offset = parse_offset_id(header.msg_id)
        record = state.store.reader.named_at(log_offset)
        if record is None:
            raise NothingFound(f"there is no message {header.msg_id[:64]} in this broker's log")
        member = self._member(header.consumer_group, header.client_id)
        topic, group = state.topics.get(header.topic or ""), state.groups.get(header.consumer_group)
        question = replace(  # and nothing else of what the asker sent
            header,
            broker_name=state.identity.name,
            topic_sys_flag=header.topic_sys_flag if topic is None else topic.sys_flag,
            group_sys_flag=header.group_sys_flag if group is None else group.group_sys_flag,
        )
        return self._pass_on(link, member, request, Command(request.code, question.encode(), record))

    async def group_status(self, link: Link, request: Command) -> Command | None:
        """223: how far each member is in its queues of a topic, or one of them.

        Who does not answer, or not as it should, is left out; the remark says who and why.
        """
        header = ConsumerStatusRequest.decode(request.fields)
        group = self._state.clients.require(header.group)
        members = list(group.members.values())
        if header.client_addr:
            members = [member for member in members if member.client_id == header.client_addr]
        members = members[:RELAY_MEMBERS_MAX]
        question = ConsumerStatusRequest(header.topic, header.group)
        poll = _Poll(self._kept, host_of(link.remote))
        try:
            outcomes = await asyncio.gather(*(self._asked(link, one, question, poll) for one in members))
            told: dict[str, Mapping[MessageQueue, int]] = {}
            left_out: dict[str, list[str]] = {}
            for member, outcome in zip(members, outcomes, strict=True):
                if isinstance(outcome, str):
                    left_out.setdefault(outcome, []).append(member.client_id)
                else:
                    told[member.client_id] = outcome
            answer = await self._state.large_answers.make(link, request, lambda: group_offsets_pieces(told))
        finally:
            poll.forget()
        if answer is not None and left_out:
            answer.remark = "; ".join(f"{reason}: {_names(ids)}" for reason, ids in left_out.items())
        return answer

    async def _asked(
        self, link: Link, member: Member[Link], question: ConsumerStatusRequest, poll: "_Poll"
    ) -> Mapping[MessageQueue, int] | str:
        """What a member tells, or why it is left out: in words, as an error would keep the answer it is about."""
        try:
            return await self._ask_member(link, member, question, poll)
        except BolideError as error:
            return _reason(error)

    async def _ask_member(
        self, link: Link, member: Member[Link], question: ConsumerStatusRequest, poll: "_Poll"
    ) -> dict[MessageQueue, int]:
        """Its answer is read as it comes, so that nobody's text is kept until the last one has come."""
        command = Command(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, question.encode())
        answer = await self._call(link, member, command, STATUS_MS, MEMBER_OFFSETS_BYTES_MAX)
        if answer.code != ResponseCode.SUCCESS or not answer.body:
            raise InvalidRequest(f"it answers with the code {answer.code} and {len(answer.body)} bytes")
        poll.keep(len(answer.body))
        async with self._reading:
            offsets = await in_turns(decode_member_offsets(answer.body))
            await next_turn()
        return offsets

    def _member(self, group_name: str, client_id: str | None) -> Member[Link]:
        group = self._state.clients.require(group_name)
        link = group.connection_of.get(client_id or "")
        if link is None:
            raise RequestError(f"the group {group_name[:255]!r} has no member {str(client_id)[:255]!r} here")
        return group.members[link]

    async def _pass_on(
        self, link: Link, member: Member[Link], request: Command, question: Command
    ) -> Command:
        """The consumer's own answer, whatever it says."""
        try:
            answer = await self._call(link, member, question, PATIENCE_MS, RELAY_ANSWER_BYTES_MAX)
        except CallTimeout:
            raise NoAnswer(
                f"the consumer {member.client_id[:255]!r} has not answered within {PATIENCE_MS // 1000} s"
            ) from None
        except (ConnectionLost, ProtocolError) as error:
            raise RequestError(f"the consumer {member.client_id[:255]!r} cannot be asked: {error}") from None
        return request.answer(answer.code, answer.fields, answer.body, answer.remark)

    async def _call(
        self, link: Link, member: Member[Link], question: Command, timeout_ms: int, bytes_max: int
    ) -> Command:
        """Ask a member on behalf of who is at this link."""
        asked, host = member.connection, host_of(link.remote)
        if asked.is_congested:
            raise RequestError(
                f"the consumer {member.client_id[:255]!r} does not read what it was sent before"
            )
        if not self._questions.begin(link, host, asked):
            raise TooBusy("too many questions wait for answers of consumers; ask again in a moment")
        try:
            answer = await asked.call(question, timeout_ms)
        finally:
            self._questions.end(link, host, asked)
        if len(answer.body) > bytes_max:
            raise AnswerTooLong(
                f"the consumer {member.client_id[:255]!r} has answered with {len(answer.body)} bytes;"
                f" {bytes_max} are taken"
            )
        return answer


class _Poll:
    """What the members of a group have told for one question, as far as it is counted."""

    def __init__(self, kept: Counter[str], host: str) -> None:
        self._kept = kept
        self._host = host
        self._bytes = 0

    def keep(self, size: int) -> None:
        """`AnswerTooLong` when there is no room for it."""
        if size > room(self._kept[self._host], MEMBERS_OFFSETS_BYTES_MAX, self._kept.total()):
            raise AnswerTooLong("all together have answered too much")
        self._kept[self._host] += size
        self._bytes += size

    def forget(self) -> None:
        self._kept[self._host] -= self._bytes
        if not self._kept[self._host]:
            del self._kept[self._host]


def _reason(error: BolideError) -> str:
    """Why a member is left out, in words that are the same for many of them."""
    match error:
        case AnswerTooLong():
            return "answered too much"
        case TooBusy():
            return "not asked, because too many questions wait for answers"
        case CallTimeout():
            return f"silent for {STATUS_MS // 1000} s"
        case ConnectionLost():
            return "gone"
        case _:
            return "answered nonsense"


def _names(client_ids: list[str]) -> str:
    named = ", ".join(printable_part(client_id, NAME_LENGTH_MAX) for client_id in client_ids[:NAMES_MAX])
    return named if len(client_ids) <= NAMES_MAX else f"{named} and {len(client_ids) - NAMES_MAX} more"
