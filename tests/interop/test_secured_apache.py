"""Our Python clients against an Apache 5.5.0 that demands TLS and credentials, right ones and wrong ones."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bolide import (
    ConnectionLost,
    Credentials,
    Message,
    NoNameServer,
    Producer,
    PullConsumer,
    PushConsumer,
    RemoteError,
    ResponseCode,
    StoredMessage,
)
from bolide.cli.main import main
from bolide.cli.outcome import ExitCode
from tests.peers.secured import ALICE, Secured, secured_apache
from tests.peers.waiting import PATIENCE_MS, PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.needs("java", "mvn", "openssl")


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_apache(tmp_path_factory.mktemp("apache")) as server:
        yield server


def test_clients_with_the_right_secret_send_consume_and_pull_over_tls(apache: Secured) -> None:
    got: list[StoredMessage] = []
    consumer = PushConsumer(
        apache.nameserver, group="secured", listener=got.extend, start_from="first", **apache.options
    )
    consumer.subscribe("secured")
    with Producer(apache.nameserver, timeout_ms=PATIENCE_MS, **apache.options) as producer:
        receipts = [producer.send(Message("secured", b"%d" % number)) for number in range(5)]
        receipts += producer.send_batch([Message("secured", b"%d" % number) for number in range(5, 10)])
        producer.send_oneway(Message("secured", b"10"))
        with consumer:
            wait_until(lambda: len(got) >= 11, PATIENCE_SECONDS, lambda: f"{len(got)} of 11 messages")
    assert sorted(int(message.body) for message in got) == list(range(11))
    with PullConsumer(apache.nameserver, group="secured", **apache.options) as reader:
        assert reader.pull(receipts[0].queue, receipts[0].queue_offset, 1).messages[0].body == b"0"
        assert sum(int(reader.committed_offset(queue) or 0) for queue in reader.queues("secured")) == 11


@pytest.mark.parametrize(
    "credentials", [Credentials("alice", "a guess"), Credentials("nobody", "a guess"), None], ids=str
)
def test_a_client_without_the_right_secret_is_refused_and_hears_why(
    apache: Secured, credentials: Credentials | None
) -> None:
    options = apache.options | {"credentials": credentials}
    with (
        Producer(apache.nameserver, timeout_ms=PATIENCE_MS, retries=0, **options) as producer,
        pytest.raises(RemoteError) as raised,
    ):
        producer.send(Message("started", b"x"))
    assert raised.value.response_code == ResponseCode.NO_PERMISSION
    assert "a guess" not in str(raised.value)


def test_a_client_that_does_not_trust_the_certificate_says_what_to_give_it(apache: Secured) -> None:
    with (
        Producer(apache.nameserver, tls=True, credentials=ALICE) as producer,
        pytest.raises(NoNameServer, match=r"is not trusted: .*tls=Tls\(ca_file=\.\.\.\)"),
    ):
        producer.send(Message("started", b"x"))


def test_a_client_without_tls_hears_that_the_server_may_demand_it(apache: Secured) -> None:
    with (
        Producer(apache.nameserver, credentials=ALICE) as producer,
        pytest.raises(ConnectionLost, match="TLS"),
    ):
        producer.send(Message("started", b"x"))


def test_the_command_line_is_let_in_as_whom_it_says(
    apache: Secured, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("a guess")
    address = ["-n", apache.nameserver]
    assert main([*apache.words, "send", "started", "-m", "by hand", *address]) == ExitCode.OK
    assert main([*apache.words, "broker", "list", *address]) == ExitCode.OK
    assert "broker-a" in capsys.readouterr().out
    words = [*apache.words, "--secret-key-file", str(wrong)]
    assert main([*words, "send", "started", "-m", "by hand", *address]) == ExitCode.FAILED
    assert "a guess" not in capsys.readouterr().err
