"""A real server inside a test: starts at once, keeps its data when told to, leaves nothing behind."""

import asyncio
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bolide import BolideError, Message, MessageIllegal, Producer, PullConsumer
from bolide.aio import Producer as AsyncProducer
from bolide.model.errors import RecoveryInterrupted
from bolide.testing import AsyncEmbeddedServer, EmbeddedServer, embedded
from tests.peers import frames
from tests.peers.waiting import PATIENCE_SECONDS


def test_clients_can_use_it_at_once() -> None:
    with EmbeddedServer() as server:
        _send(server, b"hello")
        assert _bodies(server) == [b"hello"]


def test_a_restart_keeps_address_and_messages() -> None:
    with EmbeddedServer() as server:
        before = (server.nameserver, server.broker)
        _send(server, b"one")
        server.stop()
        assert not server.is_running
        assert not frames.answers(before[0])
        server.start()
        assert (server.nameserver, server.broker) == before
        _send(server, b"two")
        assert sorted(_bodies(server)) == [b"one", b"two"]


def test_closing_it_ends_a_start_that_still_recovers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Method: the first report of the recovery waits until the server is being closed by somebody else."""
    recovering, closing = threading.Event(), threading.Event()

    class Report:
        def __init__(self, clock: object) -> None: ...

        def __call__(self, done: int, total: int) -> None:
            recovering.set()
            assert closing.wait(PATIENCE_SECONDS)

    monkeypatch.setattr(embedded, "LoggedProgress", Report)
    server = EmbeddedServer()
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(server.start)
        assert recovering.wait(PATIENCE_SECONDS)
        interrupt = server._inner.interrupt

        def interrupt_and_tell() -> None:
            interrupt()
            closing.set()

        monkeypatch.setattr(server._inner, "interrupt", interrupt_and_tell)
        server.close()
        with pytest.raises(RecoveryInterrupted):
            starting.result(PATIENCE_SECONDS)
    assert not server.data_dir.exists()


def test_data_in_a_given_directory_outlives_the_server(tmp_path: Path) -> None:
    with EmbeddedServer(data_dir=tmp_path / "data") as server:
        _send(server, b"kept")
    with EmbeddedServer(data_dir=tmp_path / "data") as server:
        assert _bodies(server) == [b"kept"]


def _servers() -> int:
    """How many of them run in this process; others' may be among them."""
    return sum(thread.name == "bolide-server" for thread in threading.enumerate())


def test_its_own_directory_thread_and_port_are_gone_afterwards() -> None:
    before = _servers()
    with EmbeddedServer() as server:
        assert (server.data_dir / "commitlog").is_dir()
        folder, address = server.data_dir, server.nameserver
    assert not folder.exists()
    assert not frames.answers(address)
    assert _servers() == before


def test_several_servers_live_side_by_side() -> None:
    with EmbeddedServer() as one, EmbeddedServer() as other:
        _send(one, b"1")
        _send(other, b"2")
        assert (_bodies(one), _bodies(other)) == ([b"1"], [b"2"])


def test_settings_are_the_original_ones_and_a_wrong_one_leaves_nothing_behind() -> None:
    before = _servers()
    with EmbeddedServer(settings={"autoCreateTopicEnable": "false"}) as server, pytest.raises(BolideError):
        _send(server, b"refused")
    with pytest.raises(BolideError, match="did you mean"), EmbeddedServer(settings={"brokerNam": "x"}):
        pass
    assert _servers() == before


def test_a_port_in_use_is_said_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(BolideError, match=f"{port}.*in use"), EmbeddedServer(nameserver_port=port):
            pass
        with pytest.raises(BolideError, match=f"{port}.*in use"), EmbeddedServer(broker_port=port):
            pass


def test_starting_twice_is_an_error_and_stopping_twice_is_not() -> None:
    with EmbeddedServer() as server:
        with pytest.raises(BolideError, match="already"):
            server.start()
        server.stop()
        server.stop()


def test_on_the_callers_own_loop() -> None:
    async def run() -> None:
        async with AsyncEmbeddedServer() as server, AsyncProducer(server.nameserver) as producer:
            receipt = await producer.send(Message("letters", b"a"))
            assert receipt.queue_offset == 0

    asyncio.run(run())


def test_the_fixture_gives_a_fresh_server(bolide_server: EmbeddedServer) -> None:
    _send(bolide_server, b"fresh")
    assert _bodies(bolide_server) == [b"fresh"]


@pytest.mark.parametrize("again", [False, True])
def test_the_fixture_of_a_file_stays_the_same_for_its_tests(
    bolide_module_server: EmbeddedServer, again: bool
) -> None:
    _send(bolide_module_server, b"again" if again else b"first")
    assert sorted(_bodies(bolide_module_server)) == ([b"again", b"first"] if again else [b"first"])


def test_the_session_fixture_is_another_one(
    bolide_session_server: EmbeddedServer, bolide_module_server: EmbeddedServer
) -> None:
    assert bolide_session_server.is_running
    assert bolide_session_server.nameserver != bolide_module_server.nameserver


def _send(server: EmbeddedServer, body: bytes) -> None:
    with Producer(server.nameserver, group="tests") as producer:
        producer.send(Message("letters", body))


def _bodies(server: EmbeddedServer) -> list[bytes]:
    bodies: list[bytes] = []
    with PullConsumer(server.nameserver, group="tests") as consumer:
        for queue in consumer.queues("letters"):
            at: int = consumer.min_offset(queue)
            while at < consumer.max_offset(queue):  # one pull may give fewer than there are
                result = consumer.pull(queue, at)
                bodies += [message.body for message in result.messages]
                at = result.next_offset
    return bodies


def test_settings_may_be_numbers_and_truths() -> None:
    settings = {"autoCreateTopicEnable": False, "maxMessageSize": 100}
    with (
        EmbeddedServer(settings=settings) as server,
        pytest.raises(BolideError, match="no broker has the topic"),
    ):
        _send(server, b"refused")


def test_text_where_bytes_belong_is_named_as_such() -> None:
    """The first mistake of everybody who comes from a client that takes text."""
    with EmbeddedServer() as server, Producer(server.nameserver, group="tests") as producer:
        for body in ("text", {"id": 1}):
            with pytest.raises(MessageIllegal, match=f"is bytes, not {type(body).__name__}"):
                producer.send(Message("orders", body))  # type: ignore[arg-type]
            with pytest.raises(MessageIllegal, match="encode it"):
                producer.send_batch([Message("orders", b"x"), Message("orders", body)])  # type: ignore[arg-type]
