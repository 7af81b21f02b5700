"""Replies: handed to the connection of the client that asked, stored, and what a replier hears when that fails."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from bolide.broker.app import Broker
from bolide.model.pairs import parse_properties
from bolide.model.response_code import ResponseCode
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from tests.unit.broker.stage import bodies_of, connect, properties_of, pull_request, send_request, serving
from tests.unit.broker.test_delete_topic import CREATE
from tests.unit.net.stage import Wire

TOPIC = "DefaultCluster_REPLY_TOPIC"
LONG, SHORT = RequestCode.SEND_REPLY_MESSAGE, RequestCode.SEND_REPLY_MESSAGE_V2

Act = Callable[[Broker, Wire, Wire], Awaitable[None]]


def play(root: Path, act: Act, settings: Mapping[str, str] | None = None) -> None:
    """`act` has the broker, a replier, and a requester whose client id is `asker`."""

    async def main() -> None:
        async with serving(root, settings) as (broker, wire):
            requester = await connect(broker)
            heartbeat = {"clientID": "asker", "producerDataSet": [{"groupName": "askers"}]}
            await requester.ask(Command(RequestCode.HEART_BEAT, {}, json.dumps(heartbeat).encode()))
            await act(broker, wire, requester)

    asyncio.run(main())


def reply(body: bytes = b"yes", to: str = "asker", code: int = SHORT) -> Command:
    pairs = {"CORRELATION_ID": "c-1", **({"REPLY_TO_CLIENT": to} if to else {})}
    short = send_request(body, 7, topic=TOPIC, code=code, properties=properties_of(7, **pairs))
    if code == SHORT:
        return short
    spelled = {"a": "producerGroup", "b": "topic", "c": "defaultTopic", "d": "defaultTopicQueueNums"}
    spelled |= {"e": "queueId", "f": "sysFlag", "g": "bornTimestamp", "h": "flag", "i": "properties"}
    return Command(
        code, {spelled.get(key, key): value for key, value in short.fields.items()}, body, opaque=7
    )


async def stored(wire: Wire) -> list[bytes]:
    return bodies_of(await wire.ask(pull_request(topic=TOPIC)))


@pytest.mark.parametrize("code", [LONG, SHORT])
def test_a_reply_is_handed_to_who_asked_and_its_sender_hears_when_it_is_there(
    tmp_path: Path, code: int
) -> None:
    """RR-01: by the client id in the reply; with the correlation id, by which the requester knows it."""

    async def act(broker: Broker, replier: Wire, requester: Wire) -> None:
        replier.send(reply(code=code))
        pushed = await requester.next()
        assert (pushed.code, pushed.body) == (RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, b"yes")
        properties = parse_properties(pushed.fields["properties"])
        assert properties["CORRELATION_ID"] == "c-1"
        assert properties["PUSH_REPLY_TIME"] == pushed.fields["storeTimestamp"]
        assert pushed.fields["storeHost"] == broker.address
        assert pushed.fields["bornHost"].startswith("127.0.0.1:")
        requester.send(pushed.answer())
        answer = await replier.next()
        assert (answer.code, answer.opaque, answer.fields["queueOffset"]) == (0, 7, "0")
        assert await stored(replier) == [b"yes"]

    play(tmp_path, act)


def test_replies_are_not_stored_where_the_settings_say_so(tmp_path: Path) -> None:
    async def act(broker: Broker, replier: Wire, requester: Wire) -> None:
        replier.send(reply())
        requester.send((await requester.next()).answer())
        answer = await replier.next()
        assert (answer.code, answer.fields["msgId"]) == (0, "0")
        assert broker.state.store.log.end == 0

    play(tmp_path, act, {"storeReplyMessageEnable": "false"})


@pytest.mark.parametrize(
    ("to", "code", "why"),
    [
        ("nobody", ResponseCode.SYSTEM_ERROR, "'nobody' is not connected"),
        ("", ResponseCode.MESSAGE_ILLEGAL, "REPLY_TO_CLIENT"),
    ],
)
def test_a_reply_that_cannot_be_handed_over_is_refused_with_the_reason(
    tmp_path: Path, to: str, code: ResponseCode, why: str
) -> None:
    async def act(broker: Broker, replier: Wire, requester: Wire) -> None:
        answer = await replier.ask(reply(to=to))
        assert answer.code == code
        assert why in (answer.remark or "")

    play(tmp_path, act)


def test_a_requester_that_refuses_or_goes_away_is_told_to_the_replier(tmp_path: Path) -> None:
    async def act(broker: Broker, replier: Wire, requester: Wire) -> None:
        replier.send(reply())
        requester.send((await requester.next()).answer(ResponseCode.SYSTEM_ERROR, remark="no such request"))
        assert "refuses the reply: no such request" in ((await replier.next()).remark or "")
        replier.send(reply())
        await requester.next()
        requester.close()
        answer = await replier.next()
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert "did not take the reply" in (answer.remark or "")

    play(tmp_path, act)


def test_a_reply_to_a_topic_that_is_not_there_makes_none(tmp_path: Path) -> None:
    async def act(broker: Broker, replier: Wire, requester: Wire) -> None:
        request = reply()
        request.fields["b"] = "elsewhere"
        assert (await replier.ask(request)).code == ResponseCode.TOPIC_NOT_EXIST
        assert broker.state.topics.get("elsewhere") is None

    play(tmp_path, act)


def test_a_reply_that_is_stored_is_answered_when_it_is_synced(tmp_path: Path) -> None:
    async def act(broker: Broker, replier: Wire, requester: Wire) -> None:
        replier.send(reply())
        requester.send((await requester.next()).answer())
        assert (await replier.next()).code == 0
        assert broker.state.store.marks.durable > broker.state.store.log.last_record

    play(tmp_path, act, {"flushDiskType": "SYNC_FLUSH"})


@pytest.mark.parametrize(
    ("changes", "body", "why"),
    [
        ({}, b"", "no body"),
        ({"f": "192"}, b"x", "stay one record"),
        ({"f": "4"}, b"x", "TRAN_MSG"),
        (
            {"f": "4", "i": "TRAN_MSG\x01true\x02PGROUP\x01g\x02REPLY_TO_CLIENT\x01asker\x02"},
            b"x",
            "transaction",
        ),
        ({"m": "true"}, b"x", "batch"),
        ({"i": "x" * 70_000}, b"x", "70000 characters"),
        ({}, bytes(4 * 1024 * 1024 + 1), "maxMessageSize"),
    ],
)
def test_what_a_send_refuses_is_neither_handed_over_nor_stored_as_a_reply(
    tmp_path: Path, changes: dict[str, str], body: bytes, why: str
) -> None:
    async def act(broker: Broker, replier: Wire, requester: Wire) -> None:
        request = reply(body)
        request.fields.update(changes)
        answer = await replier.ask(request)
        assert answer.code == ResponseCode.MESSAGE_ILLEGAL
        assert why in (answer.remark or "")
        assert await stored(replier) == []

    play(tmp_path, act)


@pytest.mark.parametrize(
    ("meanwhile", "kept"),
    [
        ([Command(215, {"topic": "T"})], []),
        ([Command(215, {"topic": "T"}), Command(17, CREATE)], []),
        ([Command(17, {**CREATE, "readQueueNums": "1", "writeQueueNums": "1"})], []),
        ([Command(17, {**CREATE, "perm": "4"})], [b"yes"]),
    ],
    ids=["deleted", "made again", "made narrower", "changed"],
)
def test_a_late_reply_is_stored_in_the_topic_it_was_meant_for_or_nowhere(
    tmp_path: Path, meanwhile: list[Command], kept: list[bytes]
) -> None:
    """The requester takes its time, and has the reply in any case."""

    async def act(broker: Broker, replier: Wire, requester: Wire) -> None:
        admin = await connect(broker)
        assert (await admin.ask(Command(17, CREATE))).code == 0
        request = reply()
        request.fields |= {"b": "T", "e": "3"}
        replier.send(request)
        pushed = await requester.next()
        for change in meanwhile:
            assert (await admin.ask(change)).code == 0
        requester.send(pushed.answer())
        answer = await replier.next()
        assert (answer.code, answer.fields["msgId"] == "0") == (0, not kept)
        queue = broker.state.store.queues.find("T", 3)
        assert (queue.end if queue else 0) == len(kept)
        admin.close()

    play(tmp_path, act)
