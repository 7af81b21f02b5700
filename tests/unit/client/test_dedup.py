"""A dedup window: a listener sees each message once, and again whatever it has failed for."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bolide import Later, Message, Producer, PushConsumer
from bolide.client import dedup_calls, dedup_file
from bolide.client.dedup import DedupWindow
from bolide.model.errors import ConfigError, DedupFailed, InvalidRequest
from bolide.model.message import Property
from bolide.model.offsets import LogOffset, QueueOffset
from bolide.model.verdicts import RetryLater
from bolide.net.surroundings import Surroundings
from bolide.record.stored import StoredMessage
from bolide.testing import EmbeddedServer
from tests.peers.waiting import PATIENCE_SECONDS, wait_until

MakeWindow = Callable[..., DedupWindow]


class SetClock:
    """Time that goes on when it is told to."""

    def __init__(self) -> None:
        self.ms = 1_800_000_000_000

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms


def stored(identity: str, body: bytes = b"x", keys: str = "", topic: str = "orders") -> StoredMessage:
    return StoredMessage(
        topic=topic,
        body=body,
        properties={Property.KEYS: keys} if keys else {},
        queue_id=0,
        queue_offset=QueueOffset(0),
        log_offset=LogOffset(0),
        broker_name="b",
        sys_flag=0,
        flag=0,
        born_timestamp_ms=0,
        born_host="",
        store_timestamp_ms=0,
        store_host="",
        reconsume_times=0,
        message_id=identity,
        offset_message_id="",
    )


ONE, TWO, THREE = stored("1"), stored("2"), stored("3")


@pytest.fixture(params=["memory", "file"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> MakeWindow:
    """Both forms of a window."""
    path = None if request.param == "memory" else tmp_path / "seen"
    return lambda **options: DedupWindow(path=path, **options)


def ids(calls: list[list[StoredMessage]]) -> list[list[str]]:
    return [[message.message_id for message in call] for call in calls]


# ---- listeners ---------------------------------------------------------------------------------------------


def test_a_listener_sees_a_message_once_and_is_not_called_for_nothing(make: MakeWindow) -> None:
    calls: list[list[StoredMessage]] = []
    with make() as window:
        listener = window.wrap(calls.append)
        for messages in ([ONE, TWO], [TWO, THREE], [THREE, ONE], [TWO]):
            listener(messages)
        assert ids(calls) == [["1", "2"], ["3"]]
        assert (window.left_out, len(window), bool(window)) == (4, 3, True)


def test_copies_within_one_call_are_left_out_too(make: MakeWindow) -> None:
    calls: list[list[StoredMessage]] = []
    with make() as window:
        window.wrap(calls.append)([ONE, ONE, TWO, ONE])
        assert ids(calls) == [["1", "2"]]
        assert window.left_out == 2


@pytest.mark.parametrize("answer", [RuntimeError("broken"), RetryLater("not now")])
@pytest.mark.parametrize("is_returned", [False, True])
def test_what_a_listener_has_failed_for_it_gets_again(
    make: MakeWindow, answer: Exception, is_returned: bool
) -> None:
    """An error may be raised, or returned."""
    answers: list[Exception | None] = [answer, None]

    def listen(messages: list[StoredMessage]) -> Exception | None:
        outcome = answers.pop(0)
        if outcome is not None and not is_returned:
            raise outcome
        return outcome

    with make() as window:
        listener = window.wrap(listen)
        if is_returned:
            assert listener([ONE, TWO]) is answer
        else:
            with pytest.raises(type(answer)):
                listener([ONE, TWO])
        assert len(window) == 0
        assert listener([ONE, TWO]) is None
        listener([ONE, TWO])
        assert (answers, window.left_out) == ([], 2)


class Context:
    """As far as a window looks at it."""

    def __init__(self) -> None:
        self.ack_index: int | None = None


def test_a_listener_that_came_only_so_far_gets_the_rest_again(make: MakeWindow) -> None:
    """What it says of the messages that it got is said of those that the consumer gave."""

    def listen(messages: list[StoredMessage], context: Context) -> None:
        if THREE in messages:
            context.ack_index = messages.index(THREE) - 1

    with make() as window:
        window.done("1")
        context = Context()
        window.wrap(listen)([ONE, ONE, TWO, THREE], context)
        assert context.ack_index == 0, "the second copy was not looked at yet"
        assert [window.seen(key) for key in ("1", "2", "3")] == [True, True, False]
        window.wrap(listen)([ONE, TWO, THREE], context)
        assert (context.ack_index, window.seen("3")) == (1, False)

        def all_of_them(messages: list[StoredMessage], context: Context) -> None:
            context.ack_index = len(messages) - 1

        window.wrap(all_of_them)([ONE, THREE, TWO], context)
        assert vars(context) == {"ack_index": None}
        assert window.seen("3")


def test_a_coroutine_function_stays_one_and_works_the_same(make: MakeWindow) -> None:
    calls: list[list[StoredMessage]] = []
    broken = [True]

    async def listen(messages: list[StoredMessage]) -> None:
        calls.append(messages)
        if broken.pop() if broken else False:
            raise RuntimeError("broken")

    async def scenario() -> None:
        listener = window.wrap(listen)
        assert asyncio.iscoroutinefunction(listener)
        with pytest.raises(RuntimeError):
            await listener([ONE])
        await listener([ONE, TWO])
        await listener([TWO, ONE])

    with make() as window:
        asyncio.run(scenario())
        assert ids(calls) == [["1"], ["1", "2"]]
        assert window.left_out == 2


def test_what_a_plain_function_gives_to_be_awaited_counts_when_it_was(make: MakeWindow) -> None:
    async def scenario() -> None:
        end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        outcome: Any = window.wrap(lambda messages: end)([ONE])
        assert not window.seen("1")
        end.set_result(None)
        assert await outcome is None
        assert window.seen("1")

    with make() as window:
        asyncio.run(scenario())


def test_a_copy_waits_for_the_call_that_works_on_the_message(make: MakeWindow) -> None:
    """It is left out when that has succeeded, and worked on when it has failed."""
    goes_on, calls = threading.Event(), list[str]()

    def listen(messages: list[StoredMessage]) -> None:
        calls.append("+".join(message.message_id for message in messages))
        if len(calls) == 1:
            assert goes_on.wait(PATIENCE_SECONDS)
            raise RuntimeError("broken")

    with make() as window, ThreadPoolExecutor(3) as threads:
        listener = window.wrap(listen)
        first = threads.submit(listener, [ONE, TWO])
        wait_until(lambda: calls == ["1+2"], PATIENCE_SECONDS, "the first call")
        copies = [threads.submit(listener, [TWO, THREE, ONE]), threads.submit(listener, [ONE, TWO])]
        wait_until(lambda: "3" in calls, PATIENCE_SECONDS, "the message that nobody else works on")
        goes_on.set()
        for copy in copies:
            assert copy.result(PATIENCE_SECONDS) is None
        with pytest.raises(RuntimeError):
            first.result(PATIENCE_SECONDS)
        assert (calls[:2], sorted("+".join(calls[2:]).split("+"))) == (["1+2", "3"], ["1", "2"])
        assert window.left_out == 2


def test_a_coroutine_waits_for_a_copy_too(make: MakeWindow) -> None:
    async def scenario() -> None:
        begun, goes_on, calls = asyncio.Event(), asyncio.Event(), list[str]()

        async def listen(messages: list[StoredMessage]) -> None:
            calls.append(messages[0].message_id)
            begun.set()
            await goes_on.wait()

        listener = window.wrap(listen)
        first = asyncio.create_task(listener([ONE]))
        await begun.wait()
        second = asyncio.create_task(listener([ONE]))
        cancelled = asyncio.create_task(listener([ONE]))
        await asyncio.wait([second, cancelled], timeout=0.05)
        cancelled.cancel()
        goes_on.set()
        await asyncio.gather(first, second)
        assert (calls, window.left_out) == (["1"], 1)

    with make() as window:
        asyncio.run(scenario())


def test_a_call_that_is_cancelled_leaves_its_messages_to_the_next(make: MakeWindow) -> None:
    async def scenario() -> None:
        begun = asyncio.Event()
        patience: list[asyncio.Event] = [asyncio.Event()]

        async def listen(messages: list[StoredMessage]) -> None:
            begun.set()
            if patience:
                await patience.pop().wait()

        listener = window.wrap(listen)
        task = asyncio.create_task(listener([ONE]))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await listener([ONE])
        assert (len(window), window.left_out) == (1, 0)

    with make() as window:
        asyncio.run(scenario())


def test_a_copy_does_not_wait_for_ever(make: MakeWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dedup_calls, "BUSY_S", 0.01)
    begun, goes_on = threading.Event(), threading.Event()

    def listen(messages: list[StoredMessage]) -> None:
        begun.set()
        assert goes_on.wait(PATIENCE_SECONDS)

    with make() as window, ThreadPoolExecutor(1) as threads:
        listener = window.wrap(listen)
        first = threads.submit(listener, [ONE])
        assert begun.wait(PATIENCE_SECONDS)
        with pytest.raises(RetryLater, match="worked on a copy of the same message"):
            listener([ONE])
        goes_on.set()
        first.result(PATIENCE_SECONDS)


def test_many_threads_work_on_each_message_once(make: MakeWindow) -> None:
    done: list[str] = []

    def listen(messages: list[StoredMessage]) -> None:
        done.extend(message.message_id for message in messages)

    with make() as window, ThreadPoolExecutor(8) as threads:
        listener = window.wrap(listen)
        batches = [[stored(str(n + k)) for k in range(4)] for n in range(40) for _ in range(3)]
        list(threads.map(listener, batches))
        assert sorted(done, key=int) == [str(n) for n in range(43)]
        assert window.left_out == 4 * len(batches) - 43


def test_an_object_that_can_be_called_keeps_what_a_consumer_looks_at() -> None:
    class Handler:
        async def __call__(self, messages: list[StoredMessage]) -> None: ...

    window = DedupWindow()
    assert asyncio.iscoroutinefunction(window.wrap(Handler()))
    with pytest.raises(
        ConfigError, match="listener is a function that takes a list of messages, not NoneType"
    ):
        window.wrap(None)  # type: ignore[type-var]
    with pytest.raises(ConfigError, match="this one takes"):
        PushConsumer("127.0.0.1:1", group="g", listener=window.wrap(lambda: None))  # type: ignore[arg-type]


# ---- keys and bounds ---------------------------------------------------------------------------------------


def test_keys_are_those_of_the_topic_and_a_message_without_any_always_passes() -> None:
    window = DedupWindow(key="keys")
    calls: list[list[StoredMessage]] = []
    listener = window.wrap(calls.append)
    plain = stored("1")
    listener([plain, stored("2", keys="42 43")])
    listener(
        [plain, stored("3", keys="42 43"), stored("4", keys="42"), stored("5", keys="42 43", topic="paid")]
    )
    assert ids(calls) == [["1", "2"], ["1", "4", "5"]]
    assert (window.left_out, window.key_of(plain), len(window)) == (1, None, 3)


def test_a_function_says_what_copies_have_in_common() -> None:
    window = DedupWindow(key=lambda message: message.body.decode())
    calls: list[list[StoredMessage]] = []
    listener = window.wrap(calls.append)
    listener([stored("1", b"a"), stored("2", b"a"), stored("3", b""), stored("4", b"")])
    assert ids(calls) == [["1", "3", "4"]]
    wrong = DedupWindow(key=lambda message: 7)  # type: ignore[arg-type, return-value]
    with pytest.raises(InvalidRequest, match="key is a function that gives a text or None, and gave int 7"):
        wrong.wrap(calls.append)([ONE])


def test_the_oldest_are_forgotten_when_there_are_too_many(make: MakeWindow) -> None:
    clock = SetClock()
    with make(messages_max=3, surroundings=Surroundings(clock=clock)) as window:
        for number in range(10):
            clock.ms += 1
            window.done(str(number))
        window.done("9")
        assert len(window) == 3
        assert [number for number in range(10) if window.seen(str(number))] == [7, 8, 9]


def test_what_is_too_old_is_forgotten(make: MakeWindow) -> None:
    clock = SetClock()
    with make(age_max_ms=1000, surroundings=Surroundings(clock=clock)) as window:
        window.done("old")
        clock.ms += 1000
        assert window.seen("old")
        window.done("young")
        clock.ms += 1
        assert (window.seen("old"), window.seen("young")) == (False, True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"key": "id"}, 'key is "message_id", "keys" or a function of a message, not str \'id\''),
        ({"key": None}, "not NoneType None"),
        ({"messages_max": 0}, "messages_max is a whole number from 1 to 10000000, not int 0"),
        ({"messages_max": 10**9}, "messages_max"),
        ({"age_max_ms": 0}, "age_max_ms is a whole number"),
        ({"path": 7}, "path is the name of a file, not int 7"),
        ({"path": ":memory:"}, "leave it out for a window in memory"),
        ({"path": ""}, "path is the name of a file"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_named(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        DedupWindow(**options)
    assert said in str(raised.value)


@pytest.mark.parametrize("key", [None, "", 7, b"x"])
def test_a_key_by_hand_is_a_text(key: Any) -> None:
    with pytest.raises(InvalidRequest, match="key is a text that is not empty"):
        DedupWindow().done(key)
    with pytest.raises(InvalidRequest, match="key is a text that is not empty"):
        DedupWindow().seen(key)


# ---- with a consumer ---------------------------------------------------------------------------------------


def test_a_consumer_with_a_window_handles_what_is_sent_twice_once(tmp_path: Path) -> None:
    """And what its listener fails for again, until it succeeds; one that is started anew goes on with the file."""
    handled: list[bytes] = []
    failures = [True]

    def handle(messages: list[StoredMessage]) -> None:
        if failures and any(message.body == b"3" for message in messages):
            failures.pop()
            raise Later("not yet", delay_level=1)
        handled.extend(message.body for message in messages)

    def consume(server: EmbeddedServer, count: int, left_out: int) -> None:
        with DedupWindow(key="keys", path=tmp_path / "seen") as window:
            consumer = PushConsumer(
                server.nameserver,
                group="g",
                listener=window.wrap(handle),
                messages_max=1,
                start_from="first",
            )
            consumer.subscribe("orders")
            with consumer:
                wait_until(
                    lambda: len(handled) >= count and window.left_out >= left_out,
                    PATIENCE_SECONDS,
                    lambda: f"{len(handled)} of {count}, {window.left_out} of {left_out}",
                )

    at_once = {"messageDelayLevel": " ".join(["0s"] * 18)}
    with EmbeddedServer(settings=at_once) as server, Producer(server.nameserver, group="p") as producer:

        def send(numbers: range) -> None:
            for number in numbers:
                producer.send(Message("orders", b"%d" % number, keys=[f"order-{number}"]))

        send(range(10))
        send(range(10))
        consume(server, 10, 10)
        send(range(5, 12))
        consume(server, 12, 5)
    assert sorted(handled, key=int) == [b"%d" % number for number in range(12)]
    assert failures == []


def test_a_file_that_cannot_be_read_keeps_messages_from_the_listener_and_loses_none(tmp_path: Path) -> None:
    calls: list[list[StoredMessage]] = []
    with DedupWindow(path=tmp_path / "seen") as window:
        listener = window.wrap(calls.append)
        listener([ONE])
        with closing(sqlite3.connect(tmp_path / "seen")) as somebody:
            somebody.execute("DROP TABLE seen")
        with pytest.raises(DedupFailed, match=r"the dedup window on .*seen: no such table"):
            listener([ONE, TWO])
    assert ids(calls) == [["1"]]


def test_work_that_cannot_be_noted_is_done_nevertheless(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(dedup_file, "BUSY_S", 0.01)
    calls: list[list[StoredMessage]] = []
    with DedupWindow(path=tmp_path / "seen") as window:
        listener = window.wrap(calls.append)
        with closing(sqlite3.connect(tmp_path / "seen", isolation_level=None)) as somebody:
            somebody.execute("BEGIN IMMEDIATE")
            listener([ONE])
        listener([ONE])
        listener([ONE])
        assert (ids(calls), window.left_out) == ([["1"], ["1"]], 1)
    assert "1 messages are done and cannot be remembered" in caplog.text
    assert "database is locked" in caplog.text
