"""Messages on their way to a batch, and their receipts: what is put into which batch, and who hears of it."""

import asyncio
import contextlib
import gc
import pickle
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from bolide.client.results import SendStatus
from bolide.model.errors import ConnectionLost
from bolide.model.message import Message
from bolide.model.offsets import MessageQueue
from bolide.model.pairs import parse_properties
from bolide.record.codec import split_batch
from tests.property.twins import GATHERS

HEAD = "7F00000100010000000100000001"
QUEUE = MessageQueue("orders", "broker-a", 2)


class Nowhere:
    """Nobody waits here."""

    def wait(self, batch: Any, timeout_ms: int | None) -> None:
        raise AssertionError("it is done")


class Stage:
    """Lanes of one producer, made by one of the two modules."""

    def __init__(self, module: Any, *, messages_max: int = 100, bytes_max: int = 10_000) -> None:
        self.module = module
        self.woken: list[Any] = []
        self.pool = module.Pool(lambda: HEAD, lambda: 5000, messages_max, bytes_max)

    def lane(self, queue: MessageQueue | None = None, **limits: int) -> Any:
        return self.module.Lane(
            "orders",
            queue,
            self.pool,
            Nowhere(),
            self.woken.append,
            contextlib.nullcontext(),
            **{"body_below": 100, "batch_bytes_max": 10_000, "batch_messages_max": 1000, **limits},
        )


@pytest.fixture(params=GATHERS, ids=["compiled", "twin"])
def stage(request: pytest.FixtureRequest) -> Stage:
    return Stage(request.param)


def items(batch: Any) -> list[tuple[bytes, dict[str, str], int]]:
    """What a broker reads out of the body: bodies, properties, flags."""
    return [
        (body, parse_properties(properties.decode()), flag)
        for flag, body, properties in split_batch(batch.body())
    ]


def test_a_batch_is_what_a_broker_reads(stage: Stage) -> None:
    lane = stage.lane()
    lane.add(
        Message("orders", b"one", tags="paid", keys=["a", "b"], properties={"colour": "blau ü"}, flag=-7)
    )
    lane.add(Message("orders", b"two", keys="x y"))
    batch = lane.take(also_open=True)
    assert items(batch) == [
        (b"one", {"colour": "blau ü", "TAGS": "paid", "KEYS": "a b", "UNIQ_KEY": f"{HEAD}0001"}, -7),
        (b"two", {"KEYS": "x y", "UNIQ_KEY": f"{HEAD}0002"}, 0),
    ]
    assert (batch.topic, batch.count, lane.is_empty) == ("orders", 2, True)


@pytest.mark.parametrize(
    "changes",
    [
        {"body": b""},
        {"body": b"x" * 100},
        {"body": bytearray(b"x")},
        {"topic": "other"},
        {"tags": "two words"},
        {"tags": "*"},
        {"tags": "a||b"},
        {"tags": "schön"},
        {"tags": 5},
        {"keys": ["two words"]},
        {"keys": [5]},
        {"keys": {"a": 1}},
        {"properties": {"a\x01": "b"}},
        {"properties": {"a": "b\x02"}},
        {"properties": {"DELAY": "3"}},
        {"properties": {"TIMER_ROLL": "3"}},
        {"properties": {"TAGS": "3"}},
        {"properties": {"__SHARDINGKEY": "7"}},
        {"properties": {"a": "\ud800"}},
        {"properties": {"a": 1}},
        {"properties": {"a": "x" * 32_700}},
        {"delay_level": 1},
        {"deliver_at": 1},
        {"delay": 1},
        {"sharding_key": "7"},
        {"flag": 2**31},
        {"flag": True},
        {"flag": "1"},
    ],
    ids=repr,
)
def test_what_is_not_plain_goes_another_way_and_leaves_nothing_behind(
    stage: Stage, changes: dict[str, Any]
) -> None:
    lane = stage.lane()
    assert lane.add(Message(**{"topic": "orders", "body": b"x", **changes})) is None
    assert (lane.is_empty or lane.take(also_open=True).count == 0, stage.pool.messages) == (True, 0)
    assert lane.add("orders") is None


def test_a_sharding_key_among_the_properties_is_plain_where_somebody_has_looked_at_it(stage: Stage) -> None:
    lane = stage.lane(QUEUE)
    assert lane.add(Message("orders", b"0", properties={"__SHARDINGKEY": "7"})) is not None
    assert lane.add(Message("orders", b"1", sharding_key="7", properties={"__SHARDINGKEY": "8"})) is None
    ((_, properties, _),) = items(lane.take(also_open=True))
    assert properties["__SHARDINGKEY"] == "7"


def test_a_full_batch_is_followed_by_another_and_the_lane_says_so(stage: Stage) -> None:
    lane = stage.lane(batch_messages_max=2)
    assert not stage.woken
    for number in range(5):
        lane.add(Message("orders", b"%d" % number))
    assert stage.woken == [lane] * 3  # the first one, and two that were full
    assert lane.has_full
    taken = [lane.take(also_open=False), lane.take(also_open=False), lane.take(also_open=False)]
    assert [None if one is None else one.count for one in taken] == [2, 2, None]
    assert lane.take(also_open=True).count == 1


def test_a_batch_is_full_by_its_bytes_and_takes_one_message_whatever_its_size(stage: Stage) -> None:
    lane = stage.lane(batch_bytes_max=150)
    for number in range(4):
        lane.add(Message("orders", b"%d" % number * 60))
    assert [batch.count for batch in lane.cut()] == [1, 1, 1, 1]


def test_callbacks_hear_of_each_message_in_order_and_one_that_fails_disturbs_nobody(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[tuple[int, Any, Any]] = []

    def note(number: int) -> Callable[[Any, Any], None]:
        return lambda receipt, error: heard.append((number, receipt, error))

    def fail(receipt: Any, error: Any) -> None:
        raise ValueError("of the application")

    lane = stage.lane()
    lane.add(Message("orders", b"0"), note(0))
    lane.add(Message("orders", b"1"), fail)
    lane.add(Message("orders", b"2"))
    lane.add(Message("orders", b"3"), note(3))
    batch = lane.take(also_open=True)
    assert (stage.pool.messages, stage.pool.size_bytes) == (4, batch.size_bytes)
    batch.stored(QUEUE, SendStatus.SEND_OK, 40, "A,B,C,D")
    assert [(number, one.queue_offset, one.offset_message_id, error) for number, one, error in heard] == [
        (0, 40, "A", None),
        (3, 43, "D", None),
    ]
    assert heard[1][1].message_id == f"{HEAD}0004"
    assert (stage.pool.messages, stage.pool.size_bytes) == (0, 0)
    assert "a callback of send_soon failed" in caplog.text


def test_a_future_gives_the_receipt_or_raises_what_went_wrong(stage: Stage) -> None:
    lane = stage.lane()
    good = lane.add(Message("orders", b"0"))
    told: list[Any] = []
    good.add_done_callback(told.append)
    assert not good.done()
    lane.take(also_open=True).stored(QUEUE, SendStatus.SEND_OK, 40, "A")
    assert (good.done(), good.exception(), good.result().queue, told) == (True, None, QUEUE, [good])
    bad = lane.add(Message("orders", b"1"))
    lane.take(also_open=True).failed(ConnectionLost("gone"))
    assert str(bad.exception()) == "gone"
    with pytest.raises(ConnectionLost, match="gone"):
        bad.result()
    bad.add_done_callback(told.append)
    assert told == [good, bad]


@pytest.mark.parametrize("kind", [ValueError, SystemExit, KeyboardInterrupt, asyncio.CancelledError])
def test_whatever_a_callback_raises_the_others_hear_of_what_is_stored(
    stage: Stage, kind: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Any] = []

    def fail(*_: object) -> None:
        raise kind("of the application")

    lane = stage.lane()
    first = lane.add(Message("orders", b"0"), fail)
    first.add_done_callback(fail)
    first.add_done_callback(heard.append)
    second = lane.add(Message("orders", b"1"), lambda receipt, error: heard.append(receipt.queue_offset))
    lane.take(also_open=True).stored(QUEUE, SendStatus.SEND_OK, 40, "A,B")
    assert heard == [41, first]
    assert (first.result().queue_offset, second.result().queue_offset) == (40, 41)
    assert caplog.text.count("a callback of send_soon failed") == 2


def test_one_that_fails_when_the_outcome_is_known_already_is_logged_too(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    lane = stage.lane()
    future = lane.add(Message("orders", b"0"))
    lane.take(also_open=True).stored(QUEUE, SendStatus.SEND_OK, 40, "A")
    future.add_done_callback(lambda _: 1 / 0)
    assert "a callback of send_soon failed" in caplog.text


def test_a_callback_that_is_given_when_the_outcome_is_known_keeps_nothing_alive(stage: Stage) -> None:
    def live() -> int:
        gc.collect()
        return sum(type(one) is stage.module.Batch for one in gc.get_objects())

    def one() -> None:
        lane = stage.lane()
        future = lane.add(Message("orders", b"0"))
        future.add_done_callback(told.append)
        lane.take(also_open=True).stored(QUEUE, SendStatus.SEND_OK, 40, "A")
        future.add_done_callback(told.append)

    told: list[Any] = []
    before = live()
    for _ in range(10):
        one()
    assert len(told) == 20
    told.clear()
    assert live() == before


def test_who_asks_while_the_batch_ends_is_told_once(stage: Stage) -> None:
    told: list[Any] = []
    lane = stage.lane()
    futures: list[Any] = []
    futures.append(lane.add(Message("orders", b"0"), lambda *_: futures[0].add_done_callback(told.append)))
    lane.take(also_open=True).stored(QUEUE, SendStatus.SEND_OK, 40, "A")
    assert told == futures


def test_a_batch_is_done_once_whatever_it_is_told_later(stage: Stage) -> None:
    heard: list[Any] = []
    lane = stage.lane()
    future = lane.add(Message("orders", b"0"), lambda receipt, error: heard.append(error))
    batch = lane.take(also_open=True)
    batch.stored(QUEUE, SendStatus.SEND_OK, 40, "A")
    batch.failed(ConnectionLost("gone"))
    batch.stored(QUEUE, SendStatus.SEND_OK, 50, "B")
    batch.stored_alone(stage.module.SendReceipt("I", "O", QUEUE, 7, SendStatus.SEND_OK))
    assert (future.result().queue_offset, future.exception(), heard) == (40, None, [None])
    assert (stage.pool.messages, stage.pool.size_bytes) == (0, 0)


def test_the_error_of_a_batch_has_one_traceback_however_many_raise_it(stage: Stage) -> None:
    def again(_: Any, error: Any) -> None:
        raise error

    def origin() -> ConnectionLost:
        try:
            raise ConnectionLost("gone")
        except ConnectionLost as error:
            return error

    def raised(future: Any) -> int:
        with pytest.raises(ConnectionLost) as caught:
            future.result()
        return len(traceback.extract_tb(caught.value.__traceback__))

    lane = stage.lane()
    futures = [lane.add(Message("orders", b"0"), again) for _ in range(10)]
    lane.take(also_open=True).failed(origin())
    assert len({raised(future) for future in futures}) == 1
    error = futures[0].exception()
    assert [frame.name for frame in traceback.extract_tb(error.__traceback__)] == ["origin"]


def test_a_batch_tells_when_its_first_message_came(stage: Stage) -> None:
    lane = stage.lane()
    lane.add(Message("orders", b"0"))
    assert lane.take(also_open=True).born_ms == 5000


def test_a_message_that_needs_a_request_of_its_own_keeps_its_place(stage: Stage) -> None:
    alone = Message("orders", b"large" * 1000)
    lane = stage.lane(QUEUE)
    lane.add(Message("orders", b"0", sharding_key="7"))
    future = lane.add_alone(alone, 5000)
    lane.add(Message("orders", b"2"))
    batches = lane.cut()
    assert [(batch.count, batch.alone, batch.queue) for batch in batches] == [
        (1, None, QUEUE),
        (1, alone, QUEUE),
        (1, None, QUEUE),
    ]
    receipt = stage.module.SendReceipt("OWN", "O", QUEUE, 9, SendStatus.SEND_OK, "handle")
    batches[1].stored_alone(receipt)
    assert future.result() is receipt
    assert (receipt.message_id, receipt.recall_handle) == ("OWN", "handle")


def test_a_pool_is_full_by_count_or_by_bytes(stage: Stage) -> None:
    few = Stage(stage.module, messages_max=2)
    lane = few.lane()
    lane.add(Message("orders", b"0"))
    assert not few.pool.is_full
    lane.add(Message("orders", b"1"))
    assert few.pool.is_full
    small = Stage(stage.module, bytes_max=100)
    small.lane().add(Message("orders", b"x" * 90))
    assert small.pool.is_full


def test_receipts_are_values(stage: Stage) -> None:
    made = stage.module.SendReceipt("I", "O", QUEUE, 7, SendStatus.SEND_OK)
    lane = stage.lane()
    future = lane.add(Message("orders", b"0"))
    lane.take(also_open=True).stored(QUEUE, SendStatus.SEND_OK, 7, "O")
    receipt = future.result()
    assert receipt == future.result() != made
    assert made == stage.module.SendReceipt("I", "O", QUEUE, 7, SendStatus.SEND_OK)
    assert hash(receipt) == hash(future.result())
    assert pickle.loads(pickle.dumps(receipt)) == receipt  # noqa: S301 - our own
    assert "queue_offset=7" in repr(receipt)


def test_lanes_take_a_plain_message_to_a_topic_that_they_know_while_there_is_room(stage: Stage) -> None:
    few = Stage(stage.module, messages_max=2)
    lanes = stage.module.Lanes(few.pool)
    told: list[Any] = []
    assert lanes.add(Message("orders", b"0")) is None  # nobody has made its lane
    lane = lanes["orders"] = few.lane()
    assert lanes.add(Message("orders", b"0"), lambda *outcome: told.append(outcome)) is not None
    for other in (
        Message("returns", b"1"),
        Message("orders", b"1", sharding_key="7"),
        Message("orders", b"1", delay_level=1),
        Message(["orders"], b"1"),  # type: ignore[arg-type]
        "orders",
    ):
        assert lanes.add(other) is None
    assert lanes.add(Message("orders", b"1")) is not None
    assert lanes.add(Message("orders", b"2")) is None  # no room
    batch = lane.take(also_open=True)
    assert [body for body, _, _ in items(batch)] == [b"0", b"1"]
    batch.stored(QUEUE, SendStatus.SEND_OK, 7, "A,B")
    assert [(receipt.queue_offset, error) for receipt, error in told] == [(7, None)]
    lanes.clear()
    assert lanes.add(Message("orders", b"2")) is None


def test_a_message_without_one_of_its_members_is_an_error(stage: Stage) -> None:
    lane = stage.lane()
    message = Message("orders", b"0")
    del message.keys
    with pytest.raises(AttributeError):
        lane.add(message)
    assert stage.pool.messages == 0


@pytest.mark.parametrize("wait", ["result", "exception"])
def test_seconds_are_refused_where_milliseconds_are_meant(stage: Stage, wait: str) -> None:
    future = stage.lane().add(Message("orders", b"x"))
    for seconds in ({"timeout": 5}, {"timeout": 0.5}):
        with pytest.raises(TypeError, match="timeout_ms=3000"):
            getattr(future, wait)(**seconds)
    with pytest.raises(TypeError, match="timeout_ms=3000"):
        getattr(future, wait)(5)
