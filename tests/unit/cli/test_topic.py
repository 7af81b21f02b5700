"""Creating what is there and making topics smaller: nobody loses sight of a message by a command about topics."""

import json
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from bolide import Message, MessageQueue, Producer, PullConsumer, PushConsumer, StoredMessage
from bolide.admin import topics
from bolide.admin.connection import AdminConnection
from bolide.cli.main import main
from bolide.model.errors import CallTimeout
from bolide.testing import EmbeddedServer
from bolide.wire.bodies.route import BrokerData, TopicRoute
from tests.peers.ports import free_port
from tests.peers.waiting import PATIENCE_SECONDS
from tests.unit.cli.shells import BOLIDE

Run = Callable[..., str]

EACH = 5
"""Messages in each queue of a full topic."""


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer() as server:
        yield server


@pytest.fixture
def run(server: EmbeddedServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command that ends with this code; gives what it wrote, to stdout and then to stderr."""
    monkeypatch.setenv("BOLIDE_NAMESERVER", server.nameserver)
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)

    def run(*words: str, code: int = 0) -> str:
        capsys.readouterr()
        outcome = main(words)
        shown = capsys.readouterr()
        assert outcome == code, shown.err
        return shown.out + shown.err

    return run


def fill(server: EmbeddedServer, topic: str, queues: int) -> None:
    """`EACH` messages into every queue."""
    assert main(["topic", "create", topic, "--queues", str(queues), "-n", server.nameserver]) == 0
    with Producer(server.nameserver, group="tests") as producer:
        for number in range(EACH * queues):
            place = MessageQueue(topic, "broker-a", number % queues)
            producer.send(Message(topic, b"%d" % number), queue=place)


def commit(server: EmbeddedServer, topic: str, group: str, offset: int) -> None:
    """As if the group had consumed so far in every queue."""
    with PullConsumer(server.nameserver, group=group) as consumer:
        for queue in consumer.queues(topic):
            consumer.pull(queue, 0, 1)
            consumer.commit(queue, offset)


def numbers(run: Run, topic: str) -> tuple[int, int, int]:
    """Read queues, write queues, and how many messages can be read."""
    settings = json.loads(run("topic", "describe", topic, "--json"))["brokers"]["broker-a"]
    shown = run("tail", topic, "--since", "beginning", "--no-follow")
    return settings["read_queues"], settings["write_queues"], len(shown.split())


# ---- creating


def test_creating_what_exists_is_refused_and_changes_nothing(run: Run, server: EmbeddedServer) -> None:
    fill(server, "pay", 16)
    refused = run("topic", "create", "pay", code=1)
    for word in ("exists", "16 read and 16 write queues", "bolide topic update pay", "--if-not-exists"):
        assert word in refused
    assert numbers(run, "pay") == (16, 16, 16 * EACH)


def test_creating_if_it_does_not_exist_is_a_success_either_way(run: Run) -> None:
    first = run("topic", "create", "wanted", "--queues", "3", "--if-not-exists", "--json")
    assert json.loads(first)["brokers"] == ["broker-a"]
    assert "left as it is" in run("topic", "create", "wanted", "--queues", "9", "--if-not-exists")
    assert numbers(run, "wanted") == (3, 3, 0)


@pytest.mark.parametrize(
    ("words", "queues"),
    [
        (["--read-queues", "3"], (3, 3)),
        (["--write-queues", "12"], (12, 12)),
        (["--read-queues", "9"], (9, 8)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_number_that_is_not_given_follows_the_one_that_is(
    run: Run, words: list[str], queues: tuple[int, int]
) -> None:
    topic = "follows" + "".join(words)
    run("topic", "create", topic, *words)
    assert numbers(run, topic)[:2] == queues


def test_queues_that_are_written_and_not_read_are_refused(run: Run) -> None:
    assert "nobody could read" in run(
        "topic", "create", "blind", "--read-queues", "2", "--write-queues", "4", code=2
    )
    run("topic", "create", "seeing", "--queues", "4")
    assert "nobody could read" in run("topic", "update", "seeing", "--read-queues", "2", code=2)
    assert numbers(run, "seeing") == (4, 4, 0)


# ---- making a topic smaller


def test_making_a_topic_smaller_is_explained_and_wants_a_yes(run: Run, server: EmbeddedServer) -> None:
    fill(server, "asked", 4)
    commit(server, "asked", "readers", 0)
    refused = run("topic", "update", "asked", "--queues", "2", code=2)
    for word in ("queues 2 to 3", f"{2 * EACH} messages", "write queues", "read queues", "--yes"):
        assert word in refused
    assert numbers(run, "asked") == (4, 4, 4 * EACH)


def test_a_no_changes_nothing(run: Run, server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(server, "doubted", 2)
    commit(server, "doubted", "readers", EACH)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda *words, **options: False)
    assert "nothing was changed" in run("topic", "update", "doubted", "--queues", "1", code=1)
    assert numbers(run, "doubted") == (2, 2, 2 * EACH)


def test_without_a_group_that_could_read_it_nothing_goes_unless_forced(
    run: Run, server: EmbeddedServer
) -> None:
    fill(server, "lonely", 4)
    refused = run("topic", "update", "lonely", "--queues", "1", "--yes", code=1)
    assert f"{3 * EACH} messages" in refused
    assert "--force" in refused
    assert numbers(run, "lonely") == (4, 4, 4 * EACH)
    run("topic", "update", "lonely", "--queues", "1", "--yes", "--force", "--quiet-time", "0")
    assert numbers(run, "lonely") == (1, 1, EACH)
    run("topic", "update", "lonely", "--queues", "4")  # nothing was deleted
    assert numbers(run, "lonely") == (4, 4, 4 * EACH)


def test_read_queues_go_when_every_group_has_consumed_them(run: Run, server: EmbeddedServer) -> None:
    fill(server, "drained", 4)
    commit(server, "drained", "quick", EACH)
    commit(server, "drained", "slow", EACH - 2)
    looks: list[str] = []
    seen = threading.Event()

    def catch_up() -> None:
        seen.wait(PATIENCE_SECONDS)
        commit(server, "drained", "slow", EACH)

    def watch(text: str) -> None:
        looks.append(text)
        seen.set()

    catching_up = threading.Thread(target=catch_up)
    catching_up.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bolide.cli.progress.say", watch)
        patch.setattr("bolide.cli.progress.LOGGED_EVERY", 1)
        run("topic", "update", "drained", "--queues", "2", "--yes", "--quiet-time", "0")
    catching_up.join()
    assert looks[0] == "queues 2 to 3: 'slow' has 4 left and no member connected"
    assert looks[-1] == "queues 2 to 3: nothing to wait for any more"
    assert numbers(run, "drained") == (2, 2, 2 * EACH)


def test_a_group_that_nobody_may_ever_read_for_is_named_with_the_way_out(
    run: Run, server: EmbeddedServer
) -> None:
    fill(server, "stuck", 2)
    commit(server, "stuck", "gone", 1)
    commit(server, "stuck", "done", EACH)
    commit(server, "stuck", "here", 2)
    told = threading.Event()

    def listener(messages: list[StoredMessage]) -> None:
        told.wait(PATIENCE_SECONDS)

    here = PushConsumer(server.nameserver, group="here", listener=listener)
    here.subscribe("stuck")
    with here:
        shown = run("topic", "update", "stuck", "--queues", "1", code=2)
        told.set()
    assert f"'gone' has {EACH - 1} left and no member connected\n" in shown
    assert f"'here' has {EACH - 2} left\n" in shown
    assert "'done'" not in shown
    assert "say --force to go on without it" in shown


def test_a_topic_that_nothing_lies_in_waits_for_producers_alone(run: Run) -> None:
    run("topic", "create", "empty", "--queues", "3")
    shown = run("topic", "update", "empty", "--queues", "1", "--yes", "--quiet-time", "1")
    assert "producers have 1 s more" in shown
    assert numbers(run, "empty") == (1, 1, 0)


def test_ctrl_c_while_groups_are_waited_for_leaves_all_readable_and_says_how_to_go_on(
    run: Run, server: EmbeddedServer
) -> None:
    fill(server, "cut", 4)
    commit(server, "cut", "slow", 0)
    words = ["topic", "update", "cut", "--queues", "2", "--yes", "--quiet-time", "0", "-n", server.nameserver]
    with subprocess.Popen([BOLIDE, *words], stderr=subprocess.PIPE, text=True) as update:
        assert update.stderr is not None
        for line in update.stderr:
            if line.startswith("queues 2 to 3: 'slow' has"):
                break
        update.send_signal(signal.SIGINT)
        told = update.stderr.read()
        assert update.wait(PATIENCE_SECONDS) == 130
    assert "nothing is lost" in told
    assert "bolide topic update cut --write-queues 4" in told
    assert "Traceback" not in told
    assert numbers(run, "cut") == (4, 2, 4 * EACH)
    commit(server, "cut", "slow", EACH)
    run(*words)
    assert numbers(run, "cut") == (2, 2, 2 * EACH)


def test_more_queues_and_fewer_write_queues_need_no_question(run: Run, server: EmbeddedServer) -> None:
    fill(server, "grown", 2)
    run("topic", "update", "grown", "--queues", "6")
    assert numbers(run, "grown") == (6, 6, 2 * EACH)
    run("topic", "update", "grown", "--write-queues", "1")
    assert numbers(run, "grown") == (6, 1, 2 * EACH)


@pytest.fixture
def dead(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name server still tells of a second broker, where nobody listens."""
    address = f"127.0.0.1:{free_port()}"
    asked = topics.topic_route

    async def topic_route(servers: AdminConnection, topic: str) -> TopicRoute:
        route = await asked(servers, topic)
        gone = BrokerData(broker_name="broker-gone", cluster="DefaultCluster", addresses={0: address})
        return replace(route, brokers=(*route.brokers, gone))

    monkeypatch.setattr(topics, "topic_route", topic_route)
    return address


def test_a_description_without_a_broker_that_does_not_answer_says_so(
    server: EmbeddedServer, run: Run, dead: str
) -> None:
    fill(server, "halved", 2)
    shown = run("topic", "describe", "halved", code=3)
    assert "halved: 10 messages in 2 queues on 1 broker" in shown
    assert (
        f"the broker 'broker-gone' does not answer, so its queues are missing here: cannot connect to {dead}"
        in shown
    )
    assert '"broker-gone": "cannot connect to' in run("topic", "describe", "halved", "--json", code=3)


def test_a_change_is_not_begun_while_a_broker_of_the_topic_does_not_answer(
    server: EmbeddedServer, run: Run, dead: str
) -> None:
    fill(server, "kept", 2)
    assert dead in run("topic", "update", "kept", "--queues", "4", code=3)


def test_a_list_of_topics_says_whose_they_are(server: EmbeddedServer, run: Run) -> None:
    fill(server, "listed", 1)
    assert "of 1 broker that the name server knows: broker-a" in run("topic", "list")


@pytest.mark.parametrize(
    "words",
    [
        ["topic", "describe", "ordres"],
        ["topic", "update", "ordres", "--queues", "4"],
        ["topic", "delete", "ordres", "--yes"],
        ["message", "find", "ordres", "--key", "k"],
        ["message", "get", "7F0000015FA1257ECA984ACE66A50001", "--topic", "ordres"],
        ["tail", "ordres", "--no-follow"],
        ["send", "ordres", "x"],
    ],
)
def test_every_command_names_the_topic_that_may_be_meant(
    words: list[str], server: EmbeddedServer, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("topic", "create", "orders", "--if-not-exists")
    monkeypatch.setattr("bolide.client.routes.DEFAULT_TOPIC", "none-on-demand")
    assert "did you mean orders?" in run(*words, code=4)


# ---- deleting


def test_a_deletion_is_previewed_with_what_it_takes_and_who_reads_it(
    server: EmbeddedServer, run: Run
) -> None:
    fill(server, "doomed", 2)
    commit(server, "doomed", "mourners", 1)
    said = run("topic", "delete", "doomed", "--preview")
    assert "with 10 messages in 2 queues, read by mourners. Nothing was deleted" in said
    assert json.loads(run("topic", "delete", "doomed", "--preview", "--json"))["groups"] == ["mourners"]
    assert "this deletes messages: say --yes" in run("topic", "delete", "doomed", code=2)
    assert numbers(run, "doomed") == (2, 2, 10)


# ---- a first step that does not succeed


def test_a_refused_first_step_leaves_the_topic_as_it_was_and_says_so(run: Run) -> None:
    said = run("topic", "update", "DefaultCluster", "--queues", "2", "--yes", "--force", code=1)
    assert "DefaultCluster is as it was" in said
    assert "write queues now" not in said


def test_a_first_step_without_an_answer_is_not_said_to_be_done(
    run: Run, server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silence(*_: object, **__: object) -> None:
        raise CallTimeout("no answer")

    fill(server, "quiet", 4)
    monkeypatch.setattr(topics, "update_topic", silence)
    said = run("topic", "update", "quiet", "--queues", "2", "--yes", "--force", code=3)
    assert "broker-a has not answered, and may or may not have taken write queues from quiet" in said
