"""All clients, used wrongly in every way that a walk through their methods finds: each time one of our errors comes,
it says what to do, and nobody waits for ever.
"""

import asyncio
import inspect
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import bolide
from bolide import BolideError, ClientNotRunning, InvalidRequest, Message, MessageIllegal
from bolide.model.message import BODY_BYTES_MAX
from bolide.testing import EmbeddedServer
from tests.peers.waiting import PATIENCE_SECONDS
from tests.unit.client.misuse import BAD, CLIENTS, TOPIC, Client, arguments, parameters

BEFORE_THE_START = {"assign", "resize", "subscribe", "unsubscribe"}
"""What is said before the start; and a push consumer may be started suspended."""

OF_ITS_OWN_LIFE = {"close", "run", "start"}

by_client = pytest.mark.parametrize("client", CLIENTS, ids=str)
by_blocking = pytest.mark.parametrize("client", [one for one in CLIENTS if one.is_blocking], ids=str)
by_asyncio = pytest.mark.parametrize("client", [one for one in CLIENTS if not one.is_blocking], ids=str)


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer() as server, bolide.Producer(server.nameserver) as producer:
        producer.send(Message(TOPIC, b"x"))
        yield server


@pytest.fixture
def loop() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


def use(loop: asyncio.Runner, used: Any, method: str, given: dict[str, Any]) -> object:
    """The outcome of a call, awaited if it is to be."""
    outcome: object = getattr(used, method)(**given)
    if inspect.iscoroutine(outcome):
        outcome = loop.run(asyncio.wait_for(outcome, PATIENCE_SECONDS))
    return outcome


def refusal(loop: asyncio.Runner, used: Any, method: str, given: dict[str, Any]) -> str:
    """What it says: that the client does not run, or that it did something else."""
    try:
        return f"returned {use(loop, used, method, given)!r}"
    except ClientNotRunning as error:
        return str(error)
    except BaseException as error:
        return repr(error)


def assert_says(said: str, method: str, *words: str) -> None:
    assert [word for word in words if word not in said] == [], f"{method}: {said}"


def may_come_first(client: Client, method: str) -> bool:
    """Whether it may be called before the start."""
    may_wait = client.kind == "PushConsumer" and method in ("suspend", "resume")
    return method in BEFORE_THE_START or may_wait


@by_client
def test_a_wrong_argument_of_any_method_is_refused_by_name_or_harmless(
    client: Client, server: EmbeddedServer, loop: asyncio.Runner
) -> None:
    used = client.make(server.nameserver)
    use(loop, used, "start", {})
    wrong = []
    for name, method in client.methods.items():
        for parameter in parameters(method):
            for what, bad in BAD.items():
                try:
                    use(loop, used, name, {**arguments(method), parameter.name: bad})
                except BolideError as error:
                    if not str(error):
                        wrong.append(f"{name}({parameter.name}={what}): nothing is said")
                except ZeroDivisionError:  # of the application's own function, and comes out as it is
                    assert what == "a function that fails"
                except BaseException as error:
                    wrong.append(f"{name}({parameter.name}={what}): {error!r}")
    use(loop, used, "close", {})
    assert not wrong


@by_client
def test_a_wrong_setting_is_refused_by_name_or_harmless(
    client: Client, tmp_path: Any, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = []
    for name in client.settings:
        for what, bad in BAD.items():
            try:
                client.make(**{name: bad})
            except BolideError as error:
                if not str(error):
                    wrong.append(f"{name}={what}: nothing is said")
            except BaseException as error:
                wrong.append(f"{name}={what}: {error!r}")
    assert not wrong


@by_client
def test_a_client_that_was_not_started_says_so_and_how_to_start_it(
    client: Client, loop: asyncio.Runner
) -> None:
    for name, method in client.methods.items():
        if name not in OF_ITS_OWN_LIFE and not may_come_first(client, name):
            said = refusal(loop, client.make(), name, arguments(method))
            assert_says(said, name, "not running", "call start() first")


@by_client
def test_a_closed_client_says_so_whatever_it_is_asked_for(
    client: Client, server: EmbeddedServer, loop: asyncio.Runner
) -> None:
    used = client.make(server.nameserver)
    use(loop, used, "start", {})
    use(loop, used, "close", {})
    for name, method in client.methods.items():
        if name != "close":
            said = refusal(loop, used, name, arguments(method))
            assert_says(said, name, "closed", "make a new one")
    use(loop, used, "close", {})  # twice is fine


@by_asyncio
def test_on_another_event_loop_every_method_says_so_and_nothing_is_changed(
    client: Client, server: EmbeddedServer, loop: asyncio.Runner
) -> None:
    used = client.make(server.nameserver)
    use(loop, used, "start", {})
    with asyncio.Runner() as elsewhere:
        for name, method in client.methods.items():
            if name not in ("start", "run"):
                said = refusal(elsewhere, used, name, arguments(method))
                assert_says(said, name, "another event loop", "make a client on each loop")
    use(loop, used, "close", {})


def test_a_future_is_awaited_on_the_loop_of_its_producer_alone(
    server: EmbeddedServer, loop: asyncio.Runner
) -> None:
    producer = bolide.aio.Producer(server.nameserver, linger_ms=60_000)

    async def give() -> bolide.SendFuture:
        await producer.start()
        return await producer.send_soon(Message(TOPIC, b"x"))

    async def wait(future: bolide.SendFuture) -> None:
        await future

    future = loop.run(give())
    with asyncio.Runner() as elsewhere, pytest.raises(ClientNotRunning, match="another event loop"):
        elsewhere.run(wait(future))
    loop.run(producer.close())
    assert future.result().queue.topic == TOPIC


@by_client
def test_after_a_fork_every_method_says_so_and_nobody_waits_for_ever(
    client: Client, server: EmbeddedServer, loop: asyncio.Runner
) -> None:
    used = client.make(server.nameserver)
    use(loop, used, "start", {})
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - another process
        signal.alarm(int(PATIENCE_SECONDS))
        try:
            with asyncio.Runner() as own:
                for name, method in client.methods.items():
                    if name not in ("start", "run"):
                        said = refusal(own, used, name, arguments(method))
                        if "forked" not in said or "make a new client in this one" not in said:
                            os.write(writing, f"{name}: {said}\n".encode())
        except BaseException as error:
            os.write(writing, f"{error!r}\n".encode())
        finally:
            os._exit(0)  # in no case another run of all tests
    os.close(writing)
    with os.fdopen(reading) as outcome:
        assert outcome.read() == ""
    assert os.waitpid(child, 0)[1] == 0
    use(loop, used, "close", {})


@by_blocking
def test_where_a_blocking_client_would_wait_for_itself_it_says_so(
    client: Client, server: EmbeddedServer, loop: asyncio.Runner
) -> None:
    used = client.make(server.nameserver)
    used.start()
    said: dict[str, str] = {}
    done = threading.Event()

    def call_all(receipt: object, error: object) -> None:
        for name, method in client.methods.items():
            if name != "run":
                said[name] = refusal(loop, used, name, arguments(method))
        done.set()

    with bolide.Producer(server.nameserver) as producer:
        producer.send_soon(Message(TOPIC, b"x"), callback=call_all)
        assert done.wait(PATIENCE_SECONDS)
    used.close()
    said.pop("send_soon", None)  # waits for nobody, while there is room
    assert [name for name, why in said.items() if "use the clients of bolide.aio" not in why] == []


@pytest.mark.parametrize(
    ("message", "error", "said"),
    [
        (Message(TOPIC, bytes(BODY_BYTES_MAX + 1)), MessageIllegal, "4194304"),
        (Message(TOPIC, b"x", properties={"a": "x" * 40_000}), MessageIllegal, "32767"),
        (Message("a topic", b"x"), InvalidRequest, "letters, digits"),
        (Message(None, b"x"), InvalidRequest, "topic is a text"),  # type: ignore[arg-type]
        (Message(TOPIC, b"x", tags="\ud800"), MessageIllegal, "no text"),
    ],
    ids=["too large", "too many properties", "no topic name", "no topic", "a lone surrogate"],
)
@pytest.mark.parametrize("client", [one for one in CLIENTS if one.kind == "TransactionProducer"], ids=str)
def test_no_way_of_sending_takes_a_message_that_cannot_be_sent(
    client: Client,
    message: Message,
    error: type[BolideError],
    said: str,
    server: EmbeddedServer,
    loop: asyncio.Runner,
) -> None:
    used = client.make(server.nameserver)
    use(loop, used, "start", {})
    for name, method in client.methods.items():
        given = arguments(method)
        if "message" in given or "messages" in given:
            given |= {"message": message} if "message" in given else {"messages": [message]}
            with pytest.raises(error, match=said):
                use(loop, used, name, given)
    use(loop, used, "close", {})


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: bolide.by_random(7), "chance is a random.Random"),  # type: ignore[arg-type]
        (lambda: bolide.Credentials("a", "\ud800"), "secret_key has surrogates in it"),
        (lambda: bolide.DedupWindow(path="a\0b"), "path is the name of a file"),
        (lambda: bolide.DedupWindow(path="\ud800"), "path is the name of a file"),
        (lambda: bolide.DedupWindow(key=lambda: None), "key is a function that takes a message"),  # type: ignore[arg-type, misc]
        (lambda: bolide.Producer("h:1", tls=bolide.Tls(verify="no")), "verify of Tls is True or False"),  # type: ignore[arg-type]
        (lambda: bolide.Producer("h:1", tls=bolide.Tls(ca_file="a\0b")), "ca_file"),
        (lambda: bolide.Producer("h:1", tls=bolide.Tls(ca_file=7)), "ca_file"),  # type: ignore[arg-type]
    ],
)
def test_what_clients_are_given_is_checked_where_it_is_made(make: Any, said: str) -> None:
    with pytest.raises(BolideError, match=said):
        make()


@pytest.mark.parametrize("wrong", [{"tags": "\ud800"}, {"tags": "a\0b"}, {"sql": "a = '\ud800'"}], ids=repr)
@pytest.mark.parametrize("kind", ["LitePullConsumer", "PushConsumer"])
def test_what_is_no_text_in_a_subscription_reaches_no_heartbeat(kind: str, wrong: dict[str, str]) -> None:
    for client in CLIENTS:
        if client.kind == kind and client.is_blocking:
            with pytest.raises(bolide.SubscriptionMalformed):
                client.make().subscribe(TOPIC, **wrong)
