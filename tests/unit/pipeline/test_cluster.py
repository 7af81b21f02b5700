"""What the driver asks when a broker does not answer, and how much of it at once."""

import asyncio
from typing import cast

import pytest

from bolide import Message, Producer
from bolide.client.queue_calls import QueueCalls
from bolide.client.results import PullBlock, PullStatus
from bolide.model.errors import ConfigError, ConnectionLost, NoBroker
from bolide.model.offsets import GroupOffset, MessageQueue, QueueOffset
from bolide.model.topic import Subscription
from bolide.pipeline import cluster
from bolide.pipeline.cluster import PULLS_AT_ONCE_MAX, TRIES_ONCE_REACHED, Cluster
from bolide.pipeline.options import parse_options
from bolide.pipeline.ranges import Ends, QueueRange
from bolide.testing import EmbeddedServer
from tests.unit.arrow.test_columns import record
from tests.unit.client import scripted

QUEUES = [
    MessageQueue("orders", broker, number) for broker in ("broker-a", "broker-b") for number in range(2)
]


class Calls:
    """Brokers with ten messages in each queue; some are silent."""

    def __init__(self) -> None:
        self.silent: set[str] = set()
        self.asked: list[str] = []
        self.committed: list[MessageQueue] = []
        self.under_way = self.under_way_max = 0

    async def min_offset(self, queue: MessageQueue) -> QueueOffset:
        return QueueOffset(0)

    async def max_offset(self, queue: MessageQueue) -> QueueOffset:
        self.asked.append(queue.broker_name)
        if queue.broker_name in self.silent:
            raise ConnectionLost(f"nobody at {queue.broker_name}")
        return QueueOffset(10)

    async def committed_offset(self, queue: MessageQueue) -> GroupOffset | None:
        return None

    async def commit(self, queue: MessageQueue, offset: GroupOffset) -> None:
        self.committed.append(queue)
        if queue.broker_name in self.silent:
            raise ConnectionLost(f"nobody at {queue.broker_name}")

    async def pull(
        self, queue: MessageQueue, offset: GroupOffset, subscription: Subscription, *, messages_max: int
    ) -> PullBlock:
        self.under_way += 1
        self.under_way_max = max(self.under_way_max, self.under_way)
        await asyncio.get_running_loop().run_in_executor(None, int)
        self.under_way -= 1
        data = record(queue_offset=int(offset))
        return PullBlock(PullStatus.FOUND, GroupOffset(offset + 1), QueueOffset(0), QueueOffset(10), data)


def asking(calls: Calls) -> Cluster:
    made = Cluster(parse_options({"nameserver": "h:1", "subscribe": "orders"}))
    made._calls = cast(QueueCalls, calls)
    return made


def test_queues_of_a_broker_that_does_not_answer_are_left_out_until_it_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The usual tries at first, then a single one: a stream does not stand still for a machine that is gone."""
    monkeypatch.setattr(cluster, "PAUSE_MS", 0)

    async def work() -> None:
        calls = Calls()
        one = asking(calls)
        there = await one.ends_there(QUEUES)
        assert there == dict.fromkeys(QUEUES, Ends(0, 10))
        for tries in (TRIES_ONCE_REACHED, 1, 1):
            calls.silent, calls.asked = {"broker-b"}, []
            assert list(await one.ends_there(QUEUES)) == QUEUES[:2]
            assert calls.asked.count("broker-b") == 2 * tries
        calls.silent = set()
        assert await one.ends_there(QUEUES) == there
        calls.silent = {"broker-a", "broker-b"}
        with pytest.raises(ConnectionLost, match="nobody at broker-"):
            await one.ends_there(QUEUES)
        calls.silent = {"broker-b"}
        with pytest.raises(ConnectionLost, match="nobody at broker-b"):
            await one.ends(QUEUES)

    asyncio.run(work())


def test_few_whole_messages_are_held_at_once_to_learn_of_many_queues() -> None:
    """Each may have megabytes, and only its size or its place is wanted."""
    calls = Calls()
    many = [MessageQueue("orders", "broker-a", number) for number in range(100)]

    async def work() -> None:
        one = asking(calls)
        sizes = await one.sizes([QueueRange(queue, 0, 10) for queue in many])
        assert set(sizes.values()) == {float(len(record()))}
        marks = await one.marks(dict.fromkeys(many, 5))
        assert len(marks) == 100

    asyncio.run(work())
    assert calls.under_way_max == PULLS_AT_ONCE_MAX


def test_a_commit_says_which_brokers_took_it_and_warns_once_of_each_that_did_not(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is tried at every batch; a broker that is known to be away is not asked, for that takes its time."""
    monkeypatch.setattr(cluster, "PAUSE_MS", 0)
    offsets = dict.fromkeys(QUEUES, 7)

    async def work() -> None:
        calls = Calls()
        one = asking(calls)
        calls.silent = {"broker-b"}
        for _ in range(2):
            assert await one.commit(offsets) == QUEUES[:2]
        assert len(calls.committed) == 8
        assert len([text for text in caplog.messages if "cannot show its progress" in text]) == 2
        await one.ends_there(QUEUES)
        calls.committed.clear()
        assert await one.commit(offsets) == calls.committed == QUEUES[:2]
        calls.silent = set()
        await one.ends_there(QUEUES)
        assert await one.commit(offsets) == QUEUES
        assert len(caplog.messages) == 2
        calls.silent = {"broker-b"}
        assert await one.commit(offsets) == QUEUES[:2]
        assert len(caplog.messages) == 4

    asyncio.run(work())


@pytest.mark.parametrize("assign", ['{"orders": {"broker-a": [0], "broker-b": [1]}}', '{"orders": [0, 9]}'])
def test_assigned_queues_that_were_there_before_may_be_absent(assign: str) -> None:
    known = [MessageQueue("orders", "broker-b", number) for number in (1, 9)]

    async def ask(nameserver: str) -> None:
        async with Cluster(parse_options({"nameserver": nameserver, "assign": assign})) as made:
            with pytest.raises(
                ConfigError, match=r"assign names queues that are not there: orders@[^,]*:[19]$"
            ):
                await made.queues()
            assert await made.queues(known) == [MessageQueue("orders", "broker-a", 0)]

    with EmbeddedServer() as server:
        with Producer(server.nameserver, group="tests") as producer:
            producer.send(Message("orders", b"1"))
        asyncio.run(ask(server.nameserver))


def test_a_group_that_is_new_shows_where_it_begins_and_no_warning_is_given(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Brokers refuse the offsets of a group that has not pulled yet."""

    async def begin(nameserver: str) -> list[GroupOffset | None]:
        options = {"nameserver": nameserver, "subscribe": "orders", "consumerGroup": "new"}
        async with Cluster(parse_options(options)) as made:
            queues = await made.queues()
            await made.commit(dict.fromkeys(queues, 0))
            return [await made._calls.committed_offset(queue) for queue in queues]

    with EmbeddedServer() as server, caplog.at_level("WARNING", "bolide.pipeline"):
        with Producer(server.nameserver, group="tests") as producer:
            producer.send(Message("orders", b"1"))
        assert asyncio.run(begin(server.nameserver)) == [0, 0, 0, 0]
    assert caplog.messages == []


def test_a_query_that_begins_again_moves_its_group_back_nowhere_and_shows_itself_once_it_is_there() -> None:
    """From then on it says where it is, also in a topic made anew, of which brokers forget where groups were."""

    async def go(nameserver: str) -> list[int]:
        options = {"nameserver": nameserver, "subscribe": "orders", "consumerGroup": "etl"}
        seen: list[int] = []
        async with Cluster(parse_options(options)) as first, Cluster(parse_options(options)) as second:
            queue = (await first.queues())[0]
            for who, offset in ((first, 2), (second, 0), (second, 3), (second, 1)):
                assert await who.commit({queue: offset}) == [queue]
                seen.append(int(await who._calls.committed_offset(queue) or 0))
        return seen

    with EmbeddedServer() as server:
        with Producer(server.nameserver, group="tests") as producer:
            for _ in range(20):
                producer.send(Message("orders", b"1"))
        assert asyncio.run(go(server.nameserver)) == [2, 2, 3, 1]


def test_a_broker_of_which_only_slaves_are_up_counts_as_one_that_is_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A slave may end before what was read of its master, as a log does that has lost its end."""
    monkeypatch.setattr(cluster, "PAUSE_MS", 0)

    async def work() -> None:
        async with scripted.cluster(brokers=2) as c:
            c.create("orders", 1)
            away = c.brokers[1]
            away.store("orders", 0, b"1")
            options = parse_options({"nameserver": c.nameserver.address, "subscribe": "orders"})
            async with Cluster(options) as made:
                queues = await made.queues()
                assert await made.ends_there(queues) == {queues[0]: Ends(0, 0), queues[1]: Ends(0, 1)}
                away.ids = {"1": away}
                queues = await made.queues()
                assert await made.ends_there(queues) == {queues[0]: Ends(0, 0)}
                for ask in (made.ends(queues), made.marks({queues[1]: 0})):
                    with pytest.raises(NoBroker, match="no master of broker-1 is up"):
                        await ask
                away.ids = {"0": away}
                queues = await made.queues()
                assert list(await made.ends_there(queues)) == queues

    asyncio.run(work())
