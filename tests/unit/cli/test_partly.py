"""One broker of several does not answer, or refuses: the others are shown, and that one is named with its reason."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from bolide import Message, Producer
from bolide.admin.connection import AdminConnection
from bolide.cli.main import main
from bolide.model.errors import RemoteError
from bolide.testing import EmbeddedServer
from bolide.wire.bodies.route import BrokerData, ClusterInfo, QueueData, TopicRoute
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command as Frame
from tests.peers.ports import free_port
from tests.peers.waiting import PATIENCE_SECONDS, wait_until
from tests.unit.cli.conftest import Command

BROKER, OTHER = "broker-a", "broker-b"
WHY = "java.util.NoSuchElementException, null"
"""What the original says of its runtime figures in its first moments."""

Join = Callable[..., None]


@pytest.fixture
def join(monkeypatch: pytest.MonkeyPatch) -> Join:
    """Let name servers tell of a second broker: nobody listens there, or it refuses these questions and has the first
    one's answers to all others."""
    address = f"127.0.0.1:{free_port()}"
    exchange = AdminConnection.exchange

    def join(*refused: RequestCode, first: str | None = None) -> None:
        async def with_another(
            self: AdminConnection, where: str, code: RequestCode, *given: object, **named: object
        ) -> Frame:
            if where == address and code in refused:
                return Frame(1, remark=WHY)
            there = first if where == address and first else where
            answer = await exchange(self, there, code, *given, **named)  # type: ignore[arg-type]
            if code == RequestCode.GET_BROKER_CLUSTER_INFO:
                answer.body = _with_broker(ClusterInfo.decode(answer.body), address).encode()
            if code == RequestCode.GET_ROUTEINFO_BY_TOPIC and answer.code == 0:
                route = TopicRoute.decode(answer.body)
                queues = (*route.queues, QueueData(OTHER, 8, 8, 6))
                answer.body = replace(
                    route, brokers=(*route.brokers, _broker(address)), queues=queues
                ).encode()
            return answer

        monkeypatch.setattr(AdminConnection, "exchange", with_another)

    return join


def _broker(address: str) -> BrokerData:
    return BrokerData(OTHER, "DefaultCluster", {0: address})


def _with_broker(info: ClusterInfo, address: str) -> ClusterInfo:
    brokers: Mapping[str, BrokerData] = {**info.brokers, OTHER: _broker(address)}
    return replace(info, brokers=brokers, clusters={"DefaultCluster": [BROKER, OTHER]})


def test_a_broker_whose_figures_cannot_be_had_is_listed_with_the_reason(
    command: Command, bolide_module_server: EmbeddedServer, join: Join
) -> None:
    join(RequestCode.GET_BROKER_RUNTIME_INFO, first=bolide_module_server.broker)
    for words in (("broker", "list"), ("cluster", "describe")):
        shown = command(*words, code=1)
        assert f"the broker '{OTHER}' does not tell: SYSTEM_ERROR (1): {WHY}" in shown.err
        assert [row[0] for row in shown.rows[-2:]] == [BROKER, OTHER]
        assert shown.out.rstrip().endswith("does not tell")
    told = command("broker", "list", "--json", code=1).json
    assert [(one["broker"], one["answers"]) for one in told] == [(BROKER, True), (OTHER, False)]
    assert told[0]["reason"] is None
    assert WHY in told[1]["reason"]
    assert WHY in command("broker", "describe", OTHER, code=1).err


def test_a_cluster_is_described_without_what_a_broker_does_not_tell(
    command: Command, bolide_module_server: EmbeddedServer, join: Join
) -> None:
    command("topic", "create", "partly", "--if-not-exists")
    command("group", "create", "partly", "--if-not-exists")
    whole = command("cluster", "describe", "--json").json
    tables = (RequestCode.GET_ALL_TOPIC_CONFIG, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
    join(*tables, first=bolide_module_server.broker)
    shown = command("cluster", "describe", "--json", code=1)
    assert f"the broker '{OTHER}' does not tell: SYSTEM_ERROR (1): {WHY}" in shown.err
    assert (shown.json["topics"], shown.json["groups"]) == (whole["topics"], whole["groups"])


@pytest.mark.parametrize(
    ("code", "words"), [(1, "does not tell: SYSTEM_ERROR (1)"), (3, "does not answer: cannot connect to")]
)
def test_groups_are_shown_without_a_broker_that_keeps_silent(
    command: Command, bolide_module_server: EmbeddedServer, join: Join, code: int, words: str
) -> None:
    command("topic", "create", "read-partly", "--queues", "1", "--if-not-exists")
    command("group", "create", "partly-readers", "--if-not-exists")
    with Producer(bolide_module_server.nameserver, group="tests") as producer:
        producer.send(Message("read-partly", b"x"))
    command("group", "reset", "partly-readers", "--to", "earliest", "--topic", "read-partly", "--yes")
    refused = (
        RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
        RequestCode.GET_CONSUMER_CONNECTION_LIST,
        RequestCode.GET_CONSUME_STATS,
    )
    join(*refused, first=bolide_module_server.broker) if code == 1 else join()
    for line in (("group", "list"), ("group", "lag")):
        shown = command(*line, "--json", code=code)
        (row,) = [row for row in shown.json if row["group"] == "partly-readers"]
        assert row["behind"] >= 1
        assert f"the broker '{OTHER}' {words}" in shown.err
        assert shown.err.count(OTHER) == 1


@pytest.mark.parametrize("line", [("topic", "describe"), ("queue", "list")])
def test_queues_are_shown_without_those_of_a_broker_that_does_not_tell_them(
    command: Command, bolide_module_server: EmbeddedServer, join: Join, line: tuple[str, str]
) -> None:
    command("topic", "create", "seen-partly", "--queues", "2", "--if-not-exists")
    join(RequestCode.GET_TOPIC_STATS_INFO, first=bolide_module_server.broker)
    shown = command(*line, "seen-partly", code=1)
    assert f"the broker '{OTHER}' does not tell, so its queues are missing here: SYSTEM_ERROR" in shown.err
    assert [row[:2] for row in shown.rows[-2:]] == [[BROKER, "0"], [BROKER, "1"]]


def test_messages_are_found_on_the_others_and_nothing_is_said_not_to_exist(
    command: Command, bolide_module_server: EmbeddedServer, join: Join
) -> None:
    with Producer(bolide_module_server.nameserver, group="tests") as producer:
        receipt = producer.send(Message("found-partly", b"x", keys=["k1"]))
    by_id = ("message", "get", "--topic", "found-partly")
    wait_until(
        lambda: main(["message", "find", "found-partly", "--key", "k1"]) == 0,
        PATIENCE_SECONDS,
        "it is not indexed",
    )
    join(RequestCode.QUERY_MESSAGE, first=bolide_module_server.broker)
    shown = command("message", "find", "found-partly", "--key", "k1", "--json", code=1)
    assert shown.json["id"] == receipt.message_id
    assert "does not tell, so its messages are missing here" in shown.err
    shown = command("message", "find", "found-partly", "--key", "k2", code=1)
    assert WHY in shown.err
    assert "no broker" not in shown.err
    command(*by_id, receipt.message_id)
    assert WHY in command(*by_id, receipt.message_id[:-1] + "Z", code=1).err


def test_changes_and_copies_are_not_begun_with_half_of_the_picture(
    command: Command, bolide_module_server: EmbeddedServer, join: Join
) -> None:
    join(RequestCode.GET_ALL_TOPIC_CONFIG, first=bolide_module_server.broker)
    assert WHY in command("cluster", "export", code=1).err


def test_a_command_ends_with_the_error_where_nobody_tells(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = AdminConnection.ask

    async def refused(self: AdminConnection, where: str, code: RequestCode, *given: object) -> Frame:
        if code == RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG:
            raise RemoteError(1, WHY)
        return await ask(self, where, code, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(AdminConnection, "ask", refused)
    shown = command("group", "list", code=1)
    assert shown.err.startswith(f"error: SYSTEM_ERROR (1): {WHY}")
