"""`bolide up`, `bolide nameserver` and `bolide broker`: starting, refusing to start, and stopping."""

import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.peers import frames
from tests.peers.ports import free_broker_port, free_port
from tests.peers.process import ManagedProcess
from tests.peers.waiting import PATIENCE_SECONDS, wait_until
from tests.system.command import launch, lines_of, run


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., tuple[ManagedProcess, str, str]]:
    """Start `bolide up` on free ports and wait for its three lines."""

    def start(*words: str, host: str = "127.0.0.1") -> tuple[ManagedProcess, str, str]:
        nameserver, broker, log = free_port(), free_broker_port(), tmp_path / "up.log"
        ports = ("--nameserver-port", str(nameserver), "--broker-port", str(broker))
        process = launch(log, "up", "--data", str(tmp_path / "data"), "--host", host, *ports, *words)
        process.wait_ready(lambda: len(lines_of(log)) >= 3, PATIENCE_SECONDS)
        return process, f"127.0.0.1:{nameserver}", f"127.0.0.1:{broker}"

    return start


Start = Callable[..., tuple[ManagedProcess, str, str]]


def test_it_says_address_data_and_a_first_command_and_the_command_works(start: Start, tmp_path: Path) -> None:
    # A well filled disk is worth a line of its own, which is not what this is about.
    process, nameserver, broker = start("--set", "diskMaxUsedSpaceRatio=95")
    address, data, first = lines_of(process.log)
    assert nameserver in address
    assert broker in address
    assert str(tmp_path / "data") in data
    _, _, words = first.partition("bolide ")
    sent = run(*words.split())
    assert sent.code == 0, sent.err
    assert run("tail", "greetings", "-n", nameserver, "--no-follow").out == "hello\n"
    process.stop()
    assert lines_of(process.log) == [address, data, first]  # nothing more was said until the end


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_in_order_with_code_0(start: Start, number: signal.Signals) -> None:
    process, nameserver, broker = start()
    with frames.Connection(broker) as idle:
        idle.ask(frames.GET_CLUSTER_INFO)
        process.signal(number)
        assert process.wait_exit(PATIENCE_SECONDS) == 0
    assert not frames.answers(nameserver)


def test_it_stops_while_clients_wait_in_long_polls(start: Start, tmp_path: Path) -> None:
    process, nameserver, _ = start()
    run("send", "waiting", "-m", "x", "-n", nameserver)
    log = tmp_path / "tail.log"
    tail = launch(log, "tail", "waiting", "-n", nameserver)
    tail.wait_ready(lambda: lines_of(log) == ["x"], PATIENCE_SECONDS)
    process.signal(signal.SIGTERM)
    assert process.wait_exit(PATIENCE_SECONDS) == 0
    tail.kill()


@pytest.mark.parametrize("which", ["--nameserver-port", "--broker-port"])
def test_a_port_in_use_is_one_clear_line_and_code_5(which: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ports = {
            "--nameserver-port": str(free_port()),
            "--broker-port": str(free_broker_port()),
            which: str(port),
        }
        refused = run("up", "--data", str(tmp_path), *(word for pair in ports.items() for word in pair))
    assert refused.code == 5
    assert refused.out == ""
    assert refused.err.count("\n") == 1
    assert f"port {port}" in refused.err
    assert "in use" in refused.err


def test_a_mistyped_setting_names_its_nearest_relative_and_leaves_no_data(tmp_path: Path) -> None:
    refused = run("up", "--data", str(tmp_path / "data"), "--set", "flushDiskTyp=SYNC_FLUSH")
    assert refused.code == 2
    assert "did you mean flushDiskType" in refused.err
    assert not (tmp_path / "data").exists()


def test_a_data_directory_that_cannot_be_one_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused = run("up", "--data", str(tmp_path / "file" / "data"))
    assert refused.code == 2
    assert "--data" in refused.err
    assert "Traceback" not in refused.err


def test_all_addresses_are_listened_on_and_a_reachable_one_is_told(start: Start) -> None:
    process, nameserver, _ = start(host="0.0.0.0")
    with frames.Connection(nameserver) as connection:
        told = connection.ask(frames.GET_CLUSTER_INFO).body.decode()
    assert "0.0.0.0" not in told
    assert "0.0.0.0" not in process.log.read_text()
    process.stop()


def test_what_clients_are_told_can_be_set(start: Start) -> None:
    process, nameserver, _ = start("--set", "brokerIP1=192.0.2.7", host="0.0.0.0")
    with frames.Connection(nameserver) as connection:
        assert "192.0.2.7" in connection.ask(frames.GET_CLUSTER_INFO).body.decode()
    process.stop()


@pytest.mark.parametrize("form", ["properties", "toml"])
def test_a_name_server_and_a_broker_alone_find_each_other(form: str, tmp_path: Path) -> None:
    port, broker_port = free_port(), free_broker_port()
    nameserver = launch(tmp_path / "ns.log", "nameserver", "--host", "127.0.0.1", "--port", str(port))
    nameserver.wait_ready(lambda: frames.answers(f"127.0.0.1:{port}"), PATIENCE_SECONDS)
    settings = {
        "brokerName": "alone",
        "brokerIP1": "127.0.0.1",
        "namesrvAddr": f"127.0.0.1:{port}",
        "storePathRootDir": str(tmp_path / "store"),
    }
    config = tmp_path / ("broker.toml" if form == "toml" else "broker.conf")
    quote = '"' if form == "toml" else ""
    lines = [f"{key} = {quote}{value}{quote}" for key, value in settings.items()]
    config.write_text("\n".join(lines) + f"\nlistenPort = 1\n{'[broker]' if form == 'toml' else '# end'}\n")
    broker = launch(
        tmp_path / "broker.log", "broker", "-c", str(config), "--set", f"listenPort={broker_port}"
    )
    broker.wait_ready(lambda: frames.knows_broker(f"127.0.0.1:{port}", "alone"), PATIENCE_SECONDS)
    wait_until(
        lambda: "broker alone serves at" in broker.log.read_text(),
        PATIENCE_SECONDS,
        "the broker does not say so",
    )
    assert run("send", "t", "-m", "x", "-n", f"127.0.0.1:{port}").code == 0
    for process in (broker, nameserver):
        process.signal(signal.SIGTERM)
        assert process.wait_exit(PATIENCE_SECONDS) == 0
