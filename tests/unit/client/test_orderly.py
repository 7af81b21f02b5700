"""Consuming in order: one call at a time for a queue, with its lock, and nothing overtakes what has failed."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from typing import cast

import pytest

from bolide.aio import ConsumeContext, MessageQueue, StoredMessage, Suspend
from bolide.client import orderly, push
from bolide.machines import orderly as machine
from bolide.net.link import Link
from bolide.net.turns import next_turn
from bolide.wire.codes import RequestCode, ResponseCode
from bolide.wire.command import Command
from tests.peers.waiting import PATIENCE_MS
from tests.unit.client.consuming import Collector, consumer_of, on_cluster
from tests.unit.client.scripted import Cluster, ScriptedBroker, wait_for


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orderly, "SUSPEND_MS", 30)


def bodies_by_queue(messages: list[StoredMessage]) -> dict[int, list[bytes]]:
    found: dict[int, list[bytes]] = defaultdict(list)
    for message in messages:
        found[message.queue_id].append(message.body)
    return dict(found)


def test_messages_of_a_queue_come_one_after_the_other_and_queues_side_by_side() -> None:
    """OR-03."""

    async def scenario(c: Cluster) -> None:
        broker = c.brokers[0]
        for number in range(200):
            broker.store("orders", number % 4, b"%d" % number)
        seen: list[StoredMessage] = []
        running: set[int] = set()
        most = 0

        async def listener(messages: list[StoredMessage]) -> None:
            nonlocal most
            queue = messages[0].queue_id
            assert queue not in running
            running.add(queue)
            most = max(most, len(running))
            await next_turn()
            running.discard(queue)
            seen.extend(messages)

        async with await consumer_of(c, listener, orderly=True, start_from="first", messages_max=3):
            await wait_for(lambda: len(seen) == 200, "all")
        assert bodies_by_queue(seen) == {q: [b"%d" % n for n in range(q, 200, 4)] for q in range(4)}
        assert most == 4
        assert {q: broker.offsets["g", "orders", q] for q in range(4)} == dict.fromkeys(range(4), 50)
        assert broker.locks == {}, "they are given back at the end"

    on_cluster(scenario)


def test_a_failed_message_is_repeated_and_those_behind_wait() -> None:
    """OR-05: without an end, unless attempts are limited."""

    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        collector.fail_on[b"1"] = 20
        for number in range(4):
            broker.store("orders", 0, b"%d" % number)
        async with await consumer_of(c, collector, orderly=True, start_from="first"):
            await wait_for(lambda: len(collector.bodies) == 4, "all")
        assert collector.bodies == [b"0", b"1", b"2", b"3"]
        assert [message.reconsume_times for message in collector.messages] == [0, 20, 0, 0]
        assert (broker.sent_back, broker.sends) == ([], [])

    on_cluster(scenario)


def test_a_listener_chooses_the_pause_itself() -> None:
    async def scenario(c: Cluster) -> None:
        c.brokers[0].store("orders", 0, b"x")
        clock, times = c.brokers[0].clock, list[int]()

        async def listener(messages: list[StoredMessage]) -> Suspend | None:
            times.append(clock.monotonic_ms())
            return Suspend(300, "not yet") if len(times) == 1 else None

        async with await consumer_of(c, listener, orderly=True, start_from="first"):
            await wait_for(lambda: len(times) == 2, "the second call")
        assert times[1] - times[0] >= 300

    on_cluster(scenario)


def test_after_its_last_attempt_a_message_goes_to_the_dead_and_the_queue_goes_on() -> None:
    """OR-05."""

    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        collector.fail_on[b"1"] = 1000
        for number in range(4):
            broker.store("orders", 0, b"%d" % number, b"UNIQ_KEY\x01%d\x02" % number)
        async with await consumer_of(c, collector, orderly=True, start_from="first", attempts_max=2):
            await wait_for(lambda: len(collector.bodies) == 3, "all but one")
        assert (collector.bodies, len(collector.sizes)) == ([b"0", b"2", b"3"], 6)
        (back,) = broker.sent_back
        assert (back.offset, back.group, back.delay_level) == (1, "g", -1)
        assert (broker.sends, broker.offsets["g", "orders", 0]) == ([], 4)

    on_cluster(scenario)


def test_what_is_done_is_committed_when_the_listener_says_so_and_comes_again_after_a_rollback() -> None:
    """OR-06."""

    async def scenario(c: Cluster) -> None:
        broker, seen, rolled_back = c.brokers[0], list[bytes](), False
        for number in range(6):
            broker.store("orders", 0, b"%d" % number)

        def listener(messages: list[StoredMessage], context: ConsumeContext) -> None:
            nonlocal rolled_back
            seen.append(messages[0].body)
            if messages[0].body == b"1":
                context.commit()
            if messages[0].body == b"3" and not rolled_back:
                rolled_back = True
                context.rollback()

        options = {"orderly": True, "auto_commit": False, "start_from": "first"}
        async with await consumer_of(c, listener, **options):
            await wait_for(lambda: seen[-1:] == [b"5"], "the last one")
        assert seen == [b"0", b"1", b"2", b"3", b"2", b"3", b"4", b"5"]
        assert broker.offsets["g", "orders", 0] == 2, "up to the commit"

    on_cluster(scenario)


def test_a_queue_whose_lock_another_has_is_taken_when_it_is_free() -> None:
    """OR-01, OR-08: and its offset is asked for after the lock was got."""

    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        for number in range(3):
            broker.store("orders", 0, b"%d" % number)
        queue = MessageQueue("orders", "broker-0", 0)
        broker.locks[queue] = "another"
        async with await consumer_of(c, collector, orderly=True, start_from="first") as consumer:
            assert len([one for one in consumer.queues if one.topic == "orders"]) == 3
            broker.offsets["g", "orders", 0] = 2  # the other one is done so far
            del broker.locks[queue]
            await wait_for(lambda: queue in consumer.queues, "the queue")
            await wait_for(lambda: collector.bodies == [b"2"], "what the other one has left")

    on_cluster(scenario)


def test_a_queue_is_given_away_only_after_the_call_that_runs() -> None:
    """OR-04."""

    async def scenario(c: Cluster) -> None:
        broker, begun, may_end = c.brokers[0], asyncio.Event(), asyncio.Event()
        for number in range(3):
            broker.store("orders", 0, b"%d" % number)

        async def listener(messages: list[StoredMessage]) -> None:
            begun.set()
            await may_end.wait()

        async with await consumer_of(c, listener, orderly=True, start_from="first") as consumer:
            await begun.wait()
            queue = MessageQueue("orders", "broker-0", 0)
            broker.members.insert(0, "0-another")  # takes the first queues
            broker.notify_members("g")
            await wait_for(lambda: queue not in consumer.queues, "nothing more of it is begun")
            assert queue in broker.locks, "nobody else has it yet"
            may_end.set()
            await wait_for(lambda: queue not in broker.locks, "it is given away")
            assert broker.offsets["g", "orders", 0] == 1, "with what was done, and nothing more"

    on_cluster(scenario)


def test_a_call_that_does_not_end_does_not_keep_the_queue_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """OR-04."""
    monkeypatch.setattr("bolide.client.assignment.LEAVE_MS", 100)

    async def scenario(c: Cluster) -> None:
        broker, begun = c.brokers[0], asyncio.Event()
        broker.store("orders", 0, b"x")

        async def listener(messages: list[StoredMessage]) -> None:
            begun.set()
            await asyncio.Event().wait()

        options = {"orderly": True, "start_from": "first", "close_timeout_ms": 0}
        async with await consumer_of(c, listener, **options):
            await begun.wait()
            broker.members.insert(0, "0-another")
            broker.notify_members("g")
            queue = MessageQueue("orders", "broker-0", 0)
            await wait_for(lambda: queue not in broker.locks, "it is given away")
        assert broker.offsets["g", "orders", 0] == 0

    on_cluster(scenario)


def test_locks_are_renewed_and_without_an_answer_no_call_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """OR-02: the view of a lock ends by itself, and comes back with the broker's word."""
    monkeypatch.setattr(push, "LOCK_PERIOD_MS", 30)
    monkeypatch.setattr(push, "LOCK_AGAIN_MS", 30)
    monkeypatch.setattr(push, "LOCK_GAP_MS", 0)
    monkeypatch.setattr(machine, "TRUST_MS", 300)

    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        async with await consumer_of(c, collector, orderly=True, start_from="first") as consumer:
            asked = broker.lock_requests
            await wait_for(lambda: broker.lock_requests > asked + 3, "renewals")
            broker.silences.add(RequestCode.LOCK_BATCH_MQ)
            monkeypatch.setattr("bolide.client.locking.LOCK_TIMEOUT_MS", 50)
            met = broker.seen.count(RequestCode.LOCK_BATCH_MQ)
            await wait_for(
                lambda: broker.seen.count(RequestCode.LOCK_BATCH_MQ) > met + 1,
                "no granted lock is on its way",
            )
            held = [cast("machine.OrderedQueue", one.process) for one in consumer._assignment.held]
            now_ms = broker.clock.monotonic_ms
            await wait_for(lambda: not any(one.is_trusted(now_ms()) for one in held), "no lock is trusted")
            broker.store("orders", 0, b"x")
            await wait_for(lambda: any(not one.is_idle for one in held), "it is pulled")
            assert collector.bodies == []
            broker.silences.clear()
            await wait_for(lambda: collector.bodies == [b"x"], "and handled once the lock is ours again")

    on_cluster(scenario)


def test_a_broker_that_comes_back_is_asked_for_the_lock_before_the_next_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Brokers keep locks in memory: one that was restarted may have given ours to somebody else."""
    monkeypatch.setattr(push, "LOCK_AGAIN_MS", 100)

    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        may_end = asyncio.Event()

        async def listener(messages: list[StoredMessage]) -> None:
            await collector(messages)
            await may_end.wait()

        for number in range(3):
            broker.store("orders", 0, b"%d" % number)
        async with await consumer_of(c, listener, orderly=True, start_from="first") as consumer:
            await wait_for(lambda: collector.bodies == [b"0"], "the first call")
            (held,) = [one for one in consumer._assignment.held if not one.process.is_idle]
            port = int(broker.address.rpartition(":")[2])
            await broker.stop()
            broker.locks = dict.fromkeys(broker.locks, "another")
            await wait_for(lambda: not held.is_locked, "the connection is gone")
            may_end.set()
            await wait_for(lambda: not held.process.is_at_work, "the call has ended")
            await broker.start(port)
            await wait_for(lambda: held.is_gone, "it is the other one's")
            assert collector.bodies == [b"0"], "nothing was begun meanwhile"

    on_cluster(scenario)


def test_a_lock_that_was_anothers_meanwhile_means_to_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(push, "LOCK_PERIOD_MS", 30)

    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        queue = MessageQueue("orders", "broker-0", 0)
        async with await consumer_of(c, collector, orderly=True, start_from="first") as consumer:
            broker.store("orders", 0, b"0")
            await wait_for(lambda: collector.bodies == [b"0"], "the first")
            broker.locks[queue] = "another"
            await wait_for(lambda: queue not in consumer.queues, "it is not ours")
            broker.offsets["g", "orders", 0] = 2  # where the other one has come to
            for number in (1, 2):
                broker.store("orders", 0, b"%d" % number)
            del broker.locks[queue]
            await wait_for(lambda: collector.bodies == [b"0", b"2"], "on from where the other one was")

    on_cluster(scenario)


async def _scripted(broker: ScriptedBroker, **handlers: Callable[[Link, Command], object]) -> None:
    """The broker answers so from now on."""
    for name, handler in handlers.items():
        setattr(broker, name, handler)
    await broker.stop()
    await broker.start()


class _Refusal:
    """Of the offset of one queue, as long as it `holds`."""

    def __init__(self, broker: ScriptedBroker, queue: MessageQueue) -> None:
        self.holds = True
        self._answer = broker._query_offset
        self._of = (queue.topic, str(queue.queue_id))

    def __call__(self, link: Link, request: Command) -> Command:
        if self.holds and (request.fields["topic"], request.fields["queueId"]) == self._of:
            return request.answer(ResponseCode.SYSTEM_ERROR, remark="as the test wants it")
        return self._answer(link, request)


def test_a_queue_that_cannot_be_begun_with_is_not_kept_from_others_by_its_lock() -> None:
    async def scenario(c: Cluster) -> None:
        broker, queue = c.brokers[0], MessageQueue("orders", "broker-0", 0)
        refusal = _Refusal(broker, queue)
        await _scripted(broker, _query_offset=refusal)
        async with await consumer_of(c, Collector(), orderly=True, start_from="first") as consumer:
            await wait_for(lambda: queue not in broker.locks, "it is given back")
            assert len([one for one in broker.locks if one.topic == "orders"]) == 3
            refusal.holds = False
            await wait_for(lambda: queue in consumer.queues, "and taken when it can be begun with")
            assert queue in broker.locks

    on_cluster(scenario)


def test_a_queue_is_not_taken_again_before_its_lock_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock that comes late to its end would be the next one."""
    monkeypatch.setattr("bolide.client.locking.LOCK_TIMEOUT_MS", PATIENCE_MS)

    async def scenario(c: Cluster) -> None:
        broker, queue = c.brokers[0], MessageQueue("orders", "broker-0", 0)
        refusal, answer, may_end = _Refusal(broker, queue), broker._unlock, asyncio.Event()

        async def unlock(link: Link, request: Command) -> Command:
            await may_end.wait()
            return answer(link, request)

        await _scripted(broker, _query_offset=refusal, _unlock=unlock)
        async with await consumer_of(c, Collector(), orderly=True, start_from="first") as consumer:
            try:
                await wait_for(lambda: RequestCode.UNLOCK_BATCH_MQ in broker.seen, "it is being given back")
                refusal.holds = False
                asked = broker.lock_requests
                await consumer._rebalance()
                assert (queue in consumer.queues, broker.lock_requests) == (False, asked)
            finally:
                may_end.set()
            await wait_for(lambda: queue in consumer.queues, "it is taken after that")
            assert queue in broker.locks

    on_cluster(scenario)


@pytest.mark.parametrize("step", ["_lock", "_query_offset"])
def test_a_start_that_is_given_up_leaves_no_lock_behind(step: str) -> None:
    """Neither while the offset is asked for, nor while the broker's word on the lock is on its way."""

    async def scenario(c: Cluster) -> None:
        broker = c.brokers[0]
        do = getattr(broker, step)

        def unheard(link: Link, request: Command) -> None:
            do(link, request)

        await _scripted(broker, **{step: unheard})
        consumer = await consumer_of(c, Collector(), orderly=True, start_from="first")
        starting = asyncio.ensure_future(consumer.start())
        code = {"_lock": RequestCode.LOCK_BATCH_MQ, "_query_offset": RequestCode.QUERY_CONSUMER_OFFSET}[step]
        await wait_for(lambda: code in broker.seen, "the question")
        assert broker.locks
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert broker.locks == {}

    on_cluster(scenario)


def test_full_queues_take_turns_at_one_thread() -> None:
    """OR-07: after each call, which is sooner than the original's minute."""

    async def scenario(c: Cluster) -> None:
        broker, seen, may_go_on = c.brokers[0], list[int](), asyncio.Event()
        for number in range(40):
            broker.store("orders", number % 4, b"x")

        async def listener(messages: list[StoredMessage]) -> None:
            await may_go_on.wait()
            seen.append(messages[0].queue_id)

        async with await consumer_of(
            c, listener, orderly=True, start_from="first", concurrency=1
        ) as consumer:
            held = consumer._assignment.held
            await wait_for(lambda: sum(one.process.held.messages for one in held) == 40, "all are pulled")
            may_go_on.set()
            await wait_for(lambda: len(seen) == 40, "all")
        assert all(len(set(seen[at : at + 4])) == 4 for at in range(0, 40, 4)), seen

    on_cluster(scenario)
