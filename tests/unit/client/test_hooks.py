"""Hooks see what a client does, may veto it before it happens, and cannot break it."""

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import Any

import pyarrow as pa
import pytest

import bolide
from bolide.aio import (
    CallEvent,
    CallTimeout,
    ConfigError,
    ConsumeContext,
    ConsumeEvent,
    Credentials,
    Hooks,
    InvalidRequest,
    Message,
    NoReply,
    PartlyStored,
    Producer,
    PullConsumer,
    PushConsumer,
    SendEvent,
    StoredMessage,
    Transaction,
    TransactionProducer,
    Vetoed,
)
from bolide.wire.codes import RequestCode, ResponseCode
from bolide.wire.command import SIGNATURE, Command
from bolide.wire.signature import sign, signature
from tests.peers.waiting import wait_until
from tests.unit.client.consuming import consumer_of, on_cluster
from tests.unit.client.scripted import Cluster, cluster, wait_for
from tests.unit.client.test_blocking import running_cluster
from tests.unit.client.test_credentials import watched


def test_sends_are_seen_before_and_after_with_what_came_of_them() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            said: list[str] = []
            events: list[SendEvent] = []

            def named(name: str) -> Hooks:
                def after(event: SendEvent) -> None:
                    said.append(f"{name} after")
                    events.append(event)

                return Hooks(before_send=lambda event: said.append(f"{name} before"), after_send=after)

            async with Producer(c.nameserver.address, group="p", hooks=[named("a"), named("b")]) as producer:
                message = Message("orders", b"x")
                receipt = await producer.send(message)
                assert said == ["a before", "b before", "b after", "a after"]
                assert (events[0].group, events[0].messages, events[0].receipts) == (
                    "p",
                    (message,),
                    [receipt],
                )
                assert events[0].took_ms is not None
                await producer.send_batch([message, message])
                assert len(events[-1].receipts) == 2
                await producer.send_oneway(message)
                assert (events[-1].receipts, events[-1].error) == ((), None)
                c.brokers[0].silent = True
                with pytest.raises(CallTimeout) as raised:
                    await producer.send(message, timeout_ms=20)
                assert events[-1].error is raised.value

    asyncio.run(scenario())


def test_a_hook_may_veto_a_send_and_a_call_before_they_happen() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)

            def small(event: SendEvent) -> None:
                if len(event.messages[0].body) > 3:
                    raise Vetoed("too long for us")

            def no_batches(event: CallEvent) -> None:
                if event.code == RequestCode.SEND_BATCH_MESSAGE:
                    raise Vetoed("no batches")

            hooks = [Hooks(before_send=small), Hooks(before_call=no_batches)]
            async with Producer(c.nameserver.address, hooks=hooks) as producer:
                with pytest.raises(Vetoed, match="too long"):
                    await producer.send(Message("orders", b"long"))
                with pytest.raises(Vetoed, match="no batches"):
                    await producer.send_batch([Message("orders", b"x")])
                await producer.send(Message("orders", b"x"))
            assert c.brokers[0].bodies == [b"x"]

    asyncio.run(scenario())


def test_many_messages_are_seen_request_by_request_before_and_after() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            before: list[int] = []
            events: list[SendEvent] = []
            hooks = [
                Hooks(before_send=lambda event: before.append(len(event.messages)), after_send=events.append)
            ]
            messages = [Message("orders", b"%d" % number) for number in range(300)]
            messages[100] = Message("orders", bytes(10_000))  # goes alone
            async with Producer(c.nameserver.address, group="p", hooks=hooks) as producer:
                receipts = await producer.send_many(iter(messages))
            assert before == [len(event.messages) for event in events] == [100, 1, 199]
            assert [one for event in events for one in event.messages] == messages
            assert [one for event in events for one in event.receipts] == receipts
            assert {(event.group, event.queue, event.error) for event in events} == {("p", None, None)}

    asyncio.run(scenario())


def no_secrets(event: SendEvent) -> None:
    if any(b"password" in message.body for message in event.messages):
        raise Vetoed("this belongs into no queue")


def test_a_veto_keeps_a_message_from_being_sent_whatever_sends_it() -> None:
    secret = Message("orders", b"password=1234")
    called: list[Message] = []

    def local(message: Message) -> Transaction:
        called.append(message)
        return Transaction.COMMIT

    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            async with TransactionProducer(
                c.nameserver.address,
                group="p",
                check=lambda message: Transaction.UNKNOWN,
                hooks=[Hooks(before_send=no_secrets)],
            ) as producer:
                await producer.send_many([Message("orders", b"good")])
                sends: list[Callable[[], Awaitable[object]]] = [
                    lambda: producer.send(secret),
                    lambda: producer.send_oneway(secret),
                    lambda: producer.send_batch([secret]),
                    lambda: producer.send_many([secret]),
                    lambda: producer.request(secret),
                    lambda: producer.send_in_transaction(secret, local),
                ]
                for send in sends:
                    with pytest.raises(Vetoed, match="belongs into no queue"):
                        await send()
                future = await producer.send_soon(secret)
                with pytest.raises(Vetoed):
                    await future
                large = Message("orders", b"g" * 10_000)  # a request before that of the secret
                with pytest.raises(PartlyStored) as raised:
                    await producer.send_many([large, secret])
                assert isinstance(raised.value.cause, Vetoed)
                assert [receipt is not None for receipt in raised.value.receipts] == [True, False]
            assert len(c.brokers[0].bodies) == 2
            assert not [body for body in c.brokers[0].bodies if b"password" in body]

    asyncio.run(scenario())
    assert called == []


def test_requests_and_half_messages_are_seen_with_their_receipts() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            events: list[SendEvent] = []
            async with TransactionProducer(
                c.nameserver.address,
                group="p",
                check=lambda message: Transaction.UNKNOWN,
                hooks=[Hooks(after_send=events.append)],
            ) as producer:
                message = Message("orders", b"x")
                receipt = await producer.send_in_transaction(message, lambda _: Transaction.COMMIT)
                assert (events[0].messages, events[0].receipts[0].message_id) == (
                    (message,),
                    receipt.message_id,
                )
                with pytest.raises(NoReply):
                    await producer.request(message, timeout_ms=1500)
                assert (events[1].messages, len(events[1].receipts), events[1].error) == ((message,), 1, None)
            assert len(events) == 2

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "hooks", [Hooks(before_send=no_secrets), Hooks(after_send=print)], ids=["before", "after"]
)
def test_rows_of_a_table_are_refused_where_a_hook_looks_at_messages(hooks: Hooks) -> None:
    table = pa.table({"body": ["password=1234"]})

    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            async with Producer(c.nameserver.address, hooks=[hooks]) as producer:
                with pytest.raises(InvalidRequest, match="use send_many"):
                    await producer.send_arrow(table, topic="orders")
            async with Producer(c.nameserver.address, hooks=[Hooks(after_call=print)]) as producer:
                assert (await producer.send_arrow(table, topic="orders")).rows == 1
            assert len(c.brokers[0].bodies) == 1

    asyncio.run(scenario())


def test_a_hook_that_fails_is_logged_and_breaks_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)

            def bad(event: Any) -> None:
                raise RuntimeError("a bad hook")

            def late(event: Any) -> None:
                raise Vetoed("too late")

            got: list[bytes] = []
            hooks = [
                Hooks(bad, bad, bad, bad, bad, bad, keep_message=bad),  # type: ignore[arg-type]
                Hooks(after_call=late, after_send=late, after_consume=late),
            ]
            consumer = PushConsumer(
                c.nameserver.address,
                group="g",
                listener=lambda messages: got.extend(one.body for one in messages),
                start_from="first",
                hooks=hooks,
            )
            await consumer.subscribe("orders")
            async with Producer(c.nameserver.address, hooks=hooks) as producer, consumer:
                await producer.send(Message("orders", b"x"))
                await wait_for(lambda: got == [b"x"], "the message")
            assert c.brokers[0].offsets["g", "orders", 0] == 1

    asyncio.run(scenario())
    assert "a bad hook" in caplog.text
    assert "only a before hook can" in caplog.text


def test_calls_are_seen_with_their_end_and_what_hooks_add_is_signed() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            seen = watched(c)
            calls: list[CallEvent] = []
            hooks = [Hooks(before_call=lambda call: call.fields.update(trace="7"), after_call=calls.append)]
            alice = Credentials("alice", "secret")
            async with Producer(c.nameserver.address, hooks=hooks, credentials=alice, retries=0) as producer:
                await producer.send(Message("orders", b"x"))
                c.brokers[0].silent = True
                with pytest.raises(CallTimeout):
                    await producer.send(Message("orders", b"x"), timeout_ms=20)
            assert {call.code for call in calls} == {
                RequestCode.GET_ROUTEINFO_BY_TOPIC,
                RequestCode.HEART_BEAT,
                RequestCode.SEND_MESSAGE_V2,
                RequestCode.UNREGISTER_CLIENT,
            }
            good, bad = (call for call in calls if call.code == RequestCode.SEND_MESSAGE_V2)
            assert (good.address, good.answer_code, good.error) == (
                c.brokers[0].address,
                ResponseCode.SUCCESS,
                None,
            )
            assert bad.answer_code is None
            assert isinstance(bad.error, CallTimeout)
            assert all(request.fields["trace"] == "7" for request in seen)
            assert all(request.fields[SIGNATURE] == signature(request, "secret") for request in seen)

    asyncio.run(scenario())


async def consumed(c: Cluster, listener: Any, hooks: list[Hooks], done: Any) -> None:
    for body in (b"good", b"bad", b"odd"):
        c.brokers[0].store("orders", 0, body)
    consumer = PushConsumer(
        c.nameserver.address, group="g", listener=listener, start_from="first", messages_max=1, hooks=hooks
    )
    await consumer.subscribe("orders")
    async with consumer:
        await wait_for(done, "all of it")


FORMS = ["coroutine", "function", "function that gives a coroutine"]


def in_form(form: str, work: Callable[..., None]) -> Callable[..., Any]:
    """A listener that does this work."""

    @functools.wraps(work)
    async def coroutine(*values: Any) -> None:
        work(*values)

    @functools.wraps(work)
    def giving(*values: Any) -> Any:
        return coroutine(*values)

    forms: list[Callable[..., Any]] = [coroutine, work, giving]
    return forms[FORMS.index(form)]


@pytest.mark.parametrize("form", FORMS)
def test_a_consumption_is_seen_and_a_filter_passes_messages_over(form: str) -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            events: list[ConsumeEvent] = []
            got: list[bytes] = []

            def listener(messages: list[StoredMessage]) -> None:
                got.extend(one.body for one in messages)
                if got == [b"good", b"bad"]:
                    raise RuntimeError("once")

            hooks = [Hooks(after_consume=events.append, keep_message=lambda message: message.body != b"odd")]
            await consumed(c, in_form(form, listener), hooks, lambda: c.brokers[0].sent_back)
            assert got == [b"good", b"bad"]
            assert [(one.group, one.messages[0].body) for one in events] == [("g", body) for body in got]
            assert [type(one.error) for one in events] == [type(None), RuntimeError]
            assert [one.result for one in events] == [None, None]
            assert c.brokers[0].offsets["g", "orders", 0] == 3

    asyncio.run(scenario())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("ack_index", "goes_back"), [(None, []), (7, []), (1, []), (0, [3]), (-1, [1, 2, 3])]
)
def test_ack_index_counts_the_messages_that_the_listener_got(
    form: str, ack_index: int | None, goes_back: list[int]
) -> None:
    """What the filter has passed over is done as far as it lies before the first message that has failed."""

    async def scenario(c: Cluster) -> None:
        broker, got = c.brokers[0], list[bytes]()
        for body in (b"odd", b"good", b"odd", b"last"):
            broker.store("orders", 0, body)

        def listener(messages: list[StoredMessage], context: ConsumeContext) -> None:
            got.extend(one.body for one in messages)
            context.ack_index = ack_index

        hooks = [Hooks(keep_message=lambda message: message.body != b"odd")]
        options: dict[str, Any] = {"start_from": "first", "messages_max": 4, "hooks": hooks}
        async with await consumer_of(c, in_form(form, listener), **options):
            await wait_for(lambda: got == [b"good", b"last"], "the call")
        assert [back.offset for back in broker.sent_back] == goes_back
        assert broker.offsets["g", "orders", 0] == 4

    on_cluster(scenario)


def test_a_vetoed_consumption_comes_again() -> None:
    """As after any failure: its broker has it again."""

    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            got: list[bytes] = []
            vetoes = [Vetoed("not now")]

            def not_yet(event: ConsumeEvent) -> None:
                if vetoes and event.messages[0].body == b"bad":
                    raise vetoes.pop()

            def listener(messages: list[StoredMessage]) -> None:
                got.extend(one.body for one in messages)

            await consumed(
                *(c, listener, [Hooks(before_consume=not_yet)]),
                lambda: len(got) == 2 and c.brokers[0].sent_back,
            )
            assert sorted(got) == [b"good", b"odd"]

    asyncio.run(scenario())


def test_whoever_pulls_sees_what_the_filter_keeps() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            for body in (b"even", b"odd"):
                c.brokers[0].store("orders", 0, body)
            hooks = [Hooks(keep_message=lambda message: message.body == b"even")]
            async with PullConsumer(c.nameserver.address, hooks=hooks) as reader:
                (queue,) = await reader.queues("orders")
                result = await reader.pull(queue, 0)
                assert ([one.body for one in result.messages], result.next_offset) == ([b"even"], 2)

    asyncio.run(scenario())


def test_hooks_of_a_blocking_client_work_too() -> None:
    with running_cluster() as c:
        sends: list[SendEvent] = []
        with bolide.Producer(c.nameserver.address, hooks=[Hooks(after_send=sends.append)]) as producer:
            producer.send(Message("orders", b"x"))
            producer.send_many([Message("orders", b"y"), Message("orders", b"z")])
        wait_until(lambda: [len(send.messages) for send in sends] == [1, 2], 10, "the hook")


async def coroutine(event: Any) -> None: ...


class Guard:
    async def __call__(self, event: Any) -> None:
        raise Vetoed("nobody would wait for this")


NO_HOOKS: list[Any] = [
    *(Hooks(), [print], 5, [{"before_send": "x"}]),
    *(
        [{"after_call": coroutine}],
        [{"before_send": Guard()}],
        [{"keep_message": functools.partial(coroutine)}],
    ),
]


@pytest.mark.parametrize("wrong", NO_HOOKS)
def test_what_is_no_hook_is_refused(wrong: Any) -> None:
    hooks = (
        [Hooks(**one) if isinstance(one, dict) else one for one in wrong]
        if isinstance(wrong, list)
        else wrong
    )
    with pytest.raises(ConfigError):
        Producer("127.0.0.1:9876", hooks=hooks)


def test_what_is_printed_of_a_call_does_not_tell_who_may_make_it() -> None:
    credentials = Credentials("the-access-key", "the-secret-key", "the-token")
    told: list[str] = []
    hooks = [
        Hooks(
            before_call=lambda call: told.append(repr(call)), after_call=lambda call: told.append(f"{call}")
        )
    ]

    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            async with Producer(c.nameserver.address, hooks=hooks, credentials=credentials) as producer:
                await producer.send(Message("orders", b"x"))

    asyncio.run(scenario())
    assert any("'topic': 'orders'" in one for one in told)
    request = Command(310, {"topic": "orders"})
    sign(request, credentials)
    proof = request.fields["Signature"]
    assert "fields={'topic': 'orders'}" in repr(request)
    for secret in ("the-access-key", "the-secret-key", "the-token", proof, "Signature"):
        assert secret not in repr(request)
        assert not [one for one in told if secret in one]
