"""Who chooses the queue of a message: ready-made selectors, and sharding keys."""

import asyncio
from collections import Counter
from random import Random
from typing import Any

import pytest

from bolide.aio import (
    InvalidRequest,
    Message,
    MessageIllegal,
    MessageQueue,
    Producer,
    RemoteError,
    by_hash,
    by_machine_room,
    by_random,
)
from bolide.model.pairs import parse_properties
from bolide.wire.codes import ResponseCode
from tests.unit.client.scripted import cluster

QUEUES = [
    MessageQueue("orders", broker, number)
    for broker in ("bremen@a", "hamburg@b", "plain")
    for number in range(2)
]
MESSAGE = Message("orders", b"x")


def test_a_hash_gives_the_same_queue_for_the_same_key() -> None:
    assert by_hash("a")(QUEUES, MESSAGE) == QUEUES[97 % 6]
    assert len({by_hash(f"customer-{number}")(QUEUES, MESSAGE) for number in range(100)}) == 6


def test_chance_reaches_all_queues_and_can_be_had_again() -> None:
    first, again = (by_random(Random(7)) for _ in range(2))
    chosen = [first(QUEUES, MESSAGE) for _ in range(100)]
    assert chosen == [again(QUEUES, MESSAGE) for _ in range(100)]
    assert set(chosen) == set(QUEUES)
    assert by_random()(QUEUES, MESSAGE) in QUEUES


def test_brokers_of_a_room_take_turns_and_without_one_all_do() -> None:
    near = by_machine_room("hamburg", "berlin")
    assert Counter(near(QUEUES, MESSAGE) for _ in range(10)) == {QUEUES[2]: 5, QUEUES[3]: 5}
    nowhere = by_machine_room("plain", "ham")
    assert {nowhere(QUEUES, MESSAGE) for _ in range(6)} == set(QUEUES)


def test_wrong_keys_and_rooms_are_named() -> None:
    wrong: list[tuple[Any, tuple[Any, ...], str]] = [
        (by_hash, (7,), "key is a text, as in 'customer-7', not int 7"),
        (by_machine_room, (), "takes the names of rooms"),
        (by_machine_room, (None,), "each of rooms is a text"),
    ]
    for selector, arguments, said in wrong:
        with pytest.raises(InvalidRequest, match=said):
            selector(*arguments)


def test_messages_with_one_sharding_key_go_to_one_queue_the_one_of_its_hash() -> None:
    """PR-05."""

    async def scenario() -> None:
        async with cluster(2) as c:
            c.create("orders", 3)
            async with Producer(c.nameserver.address) as producer:
                queues = await producer.queues("orders")
                for key in ("order-1", "order-2", "ключ"):
                    expected = by_hash(key)(queues, MESSAGE)
                    keyed = Message("orders", b"x", sharding_key=key)
                    found = {(await producer.send(keyed)).queue for _ in range(4)}
                    found.add((await producer.send_batch([keyed, keyed]))[1].queue)
                    found.add(
                        (
                            await producer.send(Message("orders", b"x", properties={"__SHARDINGKEY": key}))
                        ).queue
                    )
                    assert found == {expected}
                other = next(queue for queue in queues if queue != expected)
                assert (await producer.send(keyed, queue=other)).queue == other
                assert (await producer.send(keyed, selector=lambda queues, _: other)).queue == other
            sent = [parse_properties(header.properties) for broker in c.brokers for header in broker.sends]
            assert {one.get("__SHARDINGKEY") for one in sent} == {"order-1", "order-2", "ключ", None}

    asyncio.run(scenario())


def test_the_queue_of_a_sharding_key_is_never_exchanged() -> None:
    async def scenario() -> None:
        async with cluster(2) as c:
            c.create("orders")
            for broker in c.brokers:
                broker.answers = [ResponseCode.SYSTEM_ERROR]
            async with Producer(c.nameserver.address) as producer:
                with pytest.raises(RemoteError):
                    await producer.send(Message("orders", b"x", sharding_key="order-1"))
            assert sum(len(broker.sends) for broker in c.brokers) == 1

    asyncio.run(scenario())


def test_different_sharding_keys_do_not_fit_one_batch() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders")
            async with Producer(c.nameserver.address) as producer:
                batch = [Message("orders", b"x", sharding_key=key) for key in ("a", "b")]
                with pytest.raises(MessageIllegal, match="send_many"):
                    await producer.send_batch(batch)
            assert c.brokers[0].sends == []

    asyncio.run(scenario())
