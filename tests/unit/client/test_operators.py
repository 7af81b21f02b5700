"""What a consumer answers to operators, asked through its broker."""

import asyncio
from typing import Any

import pytest

from bolide.aio import ConsumeContext, Later, MessageQueue, StoredMessage
from bolide.model import java_json
from bolide.net.turns import join_pieces
from bolide.wire.bodies.admin import offset_list_pieces, offsets_pieces
from bolide.wire.bodies.queue import queue_from_key
from bolide.wire.bodies.running import decode_direct_result
from bolide.wire.codes import RequestCode, ResponseCode
from bolide.wire.command import Command
from tests.unit.client.consuming import Collector, consumer_of, on_cluster
from tests.unit.client.scripted import Cluster, wait_for

QUEUE = MessageQueue("orders", "broker-0", 0)


def test_running_info_tells_settings_queues_and_how_fast_it_goes() -> None:
    """AD-04, AD-05."""

    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        collector.fail_on[b"3"] = 1
        for number in range(10):
            broker.store("orders", 0, b"%d" % number)
        async with await consumer_of(c, collector, start_from="first", concurrency=7):
            await wait_for(lambda: len(collector.bodies) == 9 and broker.sent_back, "all")
            fields = {"consumerGroup": "g", "clientId": "whoever", "jstackEnable": "true"}
            answer = await broker.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, fields)
        assert answer.code == ResponseCode.SUCCESS
        told: dict[str, Any] = java_json.loads(answer.body, dialect_length_max=None)
        assert told["properties"]["PROP_THREADPOOL_CORE_SIZE"] == "7"
        assert told["properties"]["PROP_CONSUMEORDERLY"] == "false"
        assert told["properties"]["PROP_CONSUME_TYPE"] == "CONSUME_PASSIVELY"
        assert int(told["properties"]["PROP_CONSUMER_START_TIMESTAMP"]) > 0
        queues = {queue_from_key(key): one for key, one in told["mqTable"].items()}
        assert len(queues) == 5
        assert (queues[QUEUE]["commitOffset"], queues[QUEUE]["cachedMsgCount"]) == (10, 0)
        assert queues[QUEUE]["lastConsumeTimestamp"] > 0
        status = told["statusTable"]["orders"]
        assert status["consumeFailedMsgs"] == 1
        assert status["consumeOKTPS"] > status["consumeFailedTPS"] > 0
        assert status["pullTPS"] > 0
        assert sorted(one["topic"] for one in told["subscriptionSet"]) == ["%RETRY%g", "orders"]
        assert "test_operators" in told["jstack"] or "thread" in told["jstack"]

    on_cluster(scenario)


def test_of_an_orderly_consumer_the_locks_are_told() -> None:
    async def scenario(c: Cluster) -> None:
        async with await consumer_of(c, Collector(), orderly=True):
            fields = {"consumerGroup": "g", "clientId": "whoever"}
            answer = await c.brokers[0].ask(RequestCode.GET_CONSUMER_RUNNING_INFO, fields)
        told = java_json.loads(answer.body)
        assert told["properties"]["PROP_CONSUMEORDERLY"] == "true"
        assert told["jstack"] == ""
        assert all(one["locked"] and one["lastLockTimestamp"] for one in told["mqTable"].values())

    on_cluster(scenario)


def test_how_far_it_is() -> None:
    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        for number in range(3):
            broker.store("orders", 1, b"%d" % number)
        async with await consumer_of(c, collector, start_from="first"):
            await wait_for(lambda: len(collector.bodies) == 3, "all")
            code = RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT
            answer = await broker.ask(code, {"topic": "orders", "group": "g"})
        table = java_json.loads(answer.body)["messageQueueTable"]
        told = {queue_from_key(key).queue_id: offset for key, offset in table.items()}
        assert told == {0: 0, 1: 3, 2: 0, 3: 0}

    on_cluster(scenario)


@pytest.mark.parametrize("pieces", [offsets_pieces, offset_list_pieces])
@pytest.mark.parametrize("orderly", [False, True])
def test_a_reset_goes_on_at_the_new_offset(pieces: Any, orderly: bool) -> None:
    """AD-03: forwards and backwards; the body is a table, or a list as for C++."""

    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        for number in range(5):
            broker.store("orders", 0, b"%d" % number)
        async with await consumer_of(c, collector, start_from="first", orderly=orderly):
            await wait_for(lambda: len(collector.bodies) == 5, "all")
            fields = {"topic": "orders", "group": "g", "timestamp": "0", "isForce": "true"}
            body = await join_pieces(pieces([(QUEUE, 3)]))
            (link,) = broker.links
            link.notify(Command(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, fields, body))
            await wait_for(lambda: len(collector.bodies) == 7, "the last two again")
        assert collector.bodies[5:] == [b"3", b"4"]
        assert broker.offsets["g", "orders", 0] == 5

    on_cluster(scenario)


@pytest.mark.parametrize(
    ("outcome", "verdict", "remark"),
    [
        (None, "CR_SUCCESS", ""),
        (Later("the till is closed"), "CR_LATER", "Later: the till is closed"),
        (ValueError("broken"), "CR_THROW_EXCEPTION", "ValueError: broken"),
    ],
)
def test_a_message_by_hand_reaches_the_listener_and_its_outcome_is_told(
    outcome: Exception | None, verdict: str, remark: str
) -> None:
    """AD-05."""

    async def scenario(c: Cluster) -> None:
        broker, seen = c.brokers[0], list[StoredMessage]()
        broker.store("%RETRY%other", 0, b"by hand", b"RETRY_TOPIC\x01orders\x02")
        record = broker.queues["%RETRY%other", 0][0]

        def listener(messages: list[StoredMessage], context: ConsumeContext) -> None:
            seen.extend(messages)
            if outcome is not None:
                raise outcome

        async with await consumer_of(c, listener):
            fields = {"consumerGroup": "g", "clientId": "x", "msgId": "y", "brokerName": "broker-0"}
            answer = await broker.ask(RequestCode.CONSUME_MESSAGE_DIRECTLY, fields, record)
            nonsense = await broker.ask(RequestCode.CONSUME_MESSAGE_DIRECTLY, fields, b"no record")
            stranger = await broker.ask(
                RequestCode.CONSUME_MESSAGE_DIRECTLY, {**fields, "consumerGroup": "h"}, record
            )
        result = decode_direct_result(answer.body)
        assert (result.verdict, result.remark) == (verdict, remark)
        assert [message.body for message in seen] == [b"by hand"]
        assert broker.sent_back == []
        assert nonsense.code == ResponseCode.SYSTEM_ERROR
        assert stranger.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED

    on_cluster(scenario)


def test_only_some_messages_by_hand_at_once() -> None:
    async def scenario(c: Cluster) -> None:
        broker, may_end = c.brokers[0], asyncio.Event()
        broker.store("other", 0, b"by hand")
        record = broker.queues["other", 0][0]

        async def listener(messages: list[StoredMessage]) -> None:
            await may_end.wait()

        async with await consumer_of(c, listener):
            fields = {"consumerGroup": "g", "clientId": "x", "brokerName": "broker-0"}
            asked = [
                asyncio.ensure_future(broker.ask(RequestCode.CONSUME_MESSAGE_DIRECTLY, fields, record))
                for _ in range(5)
            ]
            await wait_for(lambda: any(one.done() for one in asked), "one too many")
            may_end.set()
            answers = await asyncio.gather(*asked)
        assert sorted(answer.code for answer in answers) == [0, 0, 0, 0, ResponseCode.SYSTEM_ERROR]

    on_cluster(scenario)
