"""A plan of dead letters, its redrive on a real server, and the record of what was sent.  Without Spark."""

import asyncio
import json
import threading
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from bolide import Credentials, Message, Producer, PullConsumer, PushConsumer
from bolide.admin.queues import messages_from
from bolide.client.instance import ClientInstance
from bolide.model.errors import ConfigError, ConnectionLost, MalformedRecord, NoBroker, RouteNotFound
from bolide.model.limits import BODY_UNPACKED_BYTES_MAX, SPARK_WRITE_TOPICS_MAX
from bolide.model.message import SysFlag
from bolide.pipeline import sender
from bolide.pipeline.access import ClusterAccess
from bolide.pipeline.dead_letters import plan as plan_module
from bolide.pipeline.dead_letters import redrive as redrive_module
from bolide.pipeline.dead_letters.plan import Letter, Plan, entries_of, read_plan, write_plan
from bolide.pipeline.dead_letters.record import opened, record_of, sent_by
from bolide.pipeline.dead_letters.redrive import Outcome, look, redrive
from bolide.record.stored import StoredMessage
from bolide.testing import EmbeddedServer
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from bolide.wire.headers.send import SendRequest
from tests.peers.waiting import PATIENCE_SECONDS, wait_until
from tests.unit.client.scripted import cluster

GROUP = "mourners"
COUNT = 70


@pytest.fixture
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer() as server:
        yield server


def stored(server: EmbeddedServer, topic: str) -> list[StoredMessage]:
    found: list[StoredMessage] = []
    with PullConsumer(server.nameserver) as consumer:
        for queue in consumer.queues(topic):
            offset = 0
            while (result := consumer.pull(queue, offset)).messages:
                found += result.messages
                offset = result.next_offset
    return found


def bury(server: EmbeddedServer, count: int = COUNT, expected: int | None = None) -> list[StoredMessage]:
    """Dead letters as they come to be: a listener that fails for each.  Others may be in the topic already."""
    expected = count if expected is None else expected

    def fail(messages: list[StoredMessage]) -> None:
        raise ValueError("as tests want it")

    with Producer(server.nameserver, group="tests") as producer:
        for number in range(count):
            message = Message("orders", b"order %d" % number, "paid", [f"k{number}"], {"city": "Köln"})
            producer.send(message)
    with PushConsumer(
        server.nameserver, group=GROUP, listener=fail, start_from="first", attempts_max=0
    ) as consumer:
        consumer.subscribe("orders")
        wait_until(lambda: has(server, expected), PATIENCE_SECONDS, "all are dead")
    return stored(server, f"%DLQ%{GROUP}")


def has(server: EmbeddedServer, count: int) -> bool:
    try:
        return len(stored(server, f"%DLQ%{GROUP}")) >= count
    except RouteNotFound:  # no letter yet, so no topic
        return False


def planned(tmp_path: Path, letters: list[StoredMessage]) -> tuple[Path, Plan]:
    path = tmp_path / "plan.json"
    entries = [
        {
            "broker": letter.broker_name,
            "queue": letter.queue_id,
            "offset": letter.queue_offset,
            "id": letter.message_id,
            "to": letter.properties["RETRY_TOPIC"],
        }
        for letter in letters
    ]
    write_plan(path, "plan-1", "s", GROUP, "now", {}, entries)
    return path, read_plan(path)


def drive(server: EmbeddedServer, path: Path, to: str | None = None, **options: object) -> Outcome:
    plan = read_plan(path)
    with opened(record_of(path), plan.id, to) as record:
        return redrive(plan, ClusterAccess(server.nameserver), record, to=to, now=lambda: "then", **options)  # type: ignore[arg-type]


def test_letters_go_to_their_topic_as_new_messages_and_no_run_after_that_sends_anything(
    server: EmbeddedServer, tmp_path: Path
) -> None:
    letters = bury(server)
    path, plan = planned(tmp_path, letters)
    assert look(plan, ClusterAccess(server.nameserver), None, set()).topics == {"orders": COUNT}
    assert len(stored(server, "orders")) == COUNT
    outcome = drive(server, path)
    assert (outcome.sent, outcome.missing) == (COUNT, [])
    found = [message for message in stored(server, "orders") if "REDRIVE_OF" in message.properties]
    assert Counter(message.body for message in found) == Counter(letter.body for letter in letters)
    one = next(message for message in found if message.body == b"order 7")
    letter = next(letter for letter in letters if letter.body == b"order 7")
    assert (one.tags, one.keys, one.properties["city"], one.reconsume_times) == ("paid", ("k7",), "Köln", 0)
    assert one.properties["REDRIVE_OF"] == letter.message_id
    assert one.properties["REDRIVE_FROM"] == f"{letter.broker_name} 0 {letter.queue_offset}"
    assert (one.properties["REDRIVE_ID"], one.properties["REDRIVE_TIMES"]) == ("plan-1", "1")
    assert not {"RETRY_TOPIC", "ORIGIN_MESSAGE_ID", "BOLIDE_ATTEMPTS", "DELAY"} & one.properties.keys()
    again = drive(server, path)
    assert (again.sent, again.sent_before) == (0, COUNT)
    assert len(stored(server, "orders")) == 2 * COUNT


def test_neither_plan_nor_record_has_the_secret_of_who_sends(server: EmbeddedServer, tmp_path: Path) -> None:
    path, plan = planned(tmp_path, bury(server, 2))
    ops = ClusterAccess(server.nameserver, Credentials("ops", "very secret"))
    with opened(record_of(path), plan.id, None) as record:
        assert redrive(plan, ops, record, now=lambda: "then").sent == 2
    for file in (path, record_of(path)):
        assert "very secret" not in file.read_text()


def test_the_record_has_the_receipt_of_every_letter(server: EmbeddedServer, tmp_path: Path) -> None:
    path, plan = planned(tmp_path, bury(server, 40))
    drive(server, path, to="repair")
    there = {(one.broker_name, one.queue_id, one.queue_offset): one for one in stored(server, "repair")}
    head, *lines = [json.loads(line) for line in record_of(path).read_text().splitlines()]
    assert head == {"plan": "plan-1", "to": "repair"}
    assert {(line["broker"], line["queue"], line["offset"]) for line in lines} == {
        letter.place for letter in plan.letters
    }
    for line in lines:
        message = there[line["stored"]["broker"], line["stored"]["queue"], line["stored"]["offset"]]
        assert message.properties["REDRIVE_OF"] == line["id"]
        assert (message.message_id, line["to"], line["at"]) == (line["new_id"], "repair", "then")


def test_letters_whose_receipts_were_lost_in_a_crash_are_not_sent_twice(
    server: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third request is stored, and the run dies before it hears of it; then its record loses half a line."""
    path, _ = planned(tmp_path, bury(server))
    true_send, count = sender.Sender.send_over, 0

    class Killed(Exception):
        pass

    async def dying(self: sender.Sender, link, frame, queue) -> None:  # type: ignore[no-untyped-def]
        nonlocal count
        count += 1
        number = count
        if number == 3:
            self._receipts = None
        if number <= 3:
            await true_send(self, link, frame, queue)
        if number >= 3:
            raise Killed

    monkeypatch.setattr(sender.Sender, "send_over", dying)
    with pytest.raises(Killed):
        drive(server, path, rate=100)
    monkeypatch.undo()
    in_topic = len(stored(server, "orders")) - COUNT
    recorded = record_of(path)
    assert recorded.read_bytes().count(b"\n") - 1 < in_topic < COUNT
    recorded.write_bytes(recorded.read_bytes()[:-20])
    outcome = drive(server, path)
    assert outcome.sent + outcome.sent_before == COUNT
    assert len(stored(server, "orders")) == 2 * COUNT
    lines = [json.loads(line) for line in recorded.read_text().splitlines()][1:]
    assert len({(line["broker"], line["queue"], line["offset"]) for line in lines}) == len(lines) == COUNT
    assert any(line["stored"] is None for line in lines)


def test_answers_that_are_lost_double_nothing(
    server: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = planned(tmp_path, bury(server))
    true_send, count = sender.Sender.send_over, 0

    async def losing(self: sender.Sender, link, frame, queue) -> None:  # type: ignore[no-untyped-def]
        nonlocal count
        count += 1
        await true_send(self, link, frame, queue)
        if count == 1:
            link.abort()
            raise ConnectionLost("as if the answer had not come")

    monkeypatch.setattr(sender.Sender, "send_over", losing)
    drive(server, path)
    assert len(stored(server, "orders")) == 2 * COUNT


def test_what_is_not_there_any_more_is_said_and_the_rest_is_sent(
    server: EmbeddedServer, tmp_path: Path
) -> None:
    letters = bury(server, 3)
    path, plan = planned(tmp_path, letters)
    tree = json.loads(path.read_text())
    tree["letters"][0]["id"] = "0" * 32
    tree["letters"][1]["offset"] = 900
    tree["letters"].append({"broker": "broker-z", "queue": 0, "offset": 0, "id": "x", "to": "orders"})
    path.write_text(json.dumps(tree))
    outcome = drive(server, path)
    assert outcome.sent == 1
    said = {letter.place: why for letter, why in outcome.missing}
    assert f"{letters[0].message_id} is in its place" in said["broker-a", 0, letters[0].queue_offset]
    assert "it has expired" in said["broker-a", 0, 900]
    assert "its queue is not there" in said["broker-z", 0, 0]
    assert len(look(plan, ClusterAccess(server.nameserver), None, set()).missing) == 0


def test_a_damaged_letter_among_them_ends_nothing(
    server: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker of Apache gives its bytes, in one answer with its neighbours."""
    path, plan = planned(tmp_path, bury(server, 4))
    damaged, behind = plan.letters[1].offset, plan.letters[3]
    tree = json.loads(path.read_text())
    tree["letters"] = [vars(letter) for letter in plan.letters if letter.offset != damaged]
    path.write_text(json.dumps(tree))
    true_read = messages_from

    async def reading(servers, place, offset: int, count: int):  # type: ignore[no-untyped-def]
        if offset <= damaged < offset + count or behind.offset in range(offset, offset + count):
            raise MalformedRecord("no record")
        return await true_read(servers, place, offset, count)

    monkeypatch.setattr(redrive_module, "messages_from", reading)
    outcome = drive(server, path)
    assert (outcome.sent, [letter for letter, _ in outcome.missing]) == (2, [behind])
    assert "it is damaged" in outcome.missing[0][1]


def test_a_letter_of_no_topic_needs_one(server: EmbeddedServer, tmp_path: Path) -> None:
    path, _ = planned(tmp_path, bury(server, 1))
    tree = json.loads(path.read_text())
    tree["letters"][0]["to"] = ""
    path.write_text(json.dumps(tree))
    assert "write one into the plan" in drive(server, path).missing[0][1]
    tree["letters"][0]["to"] = "somewhere"
    path.write_text(json.dumps(tree))
    assert drive(server, path).sent == 1


@pytest.mark.parametrize("to", ["%DLQ%billing", "SCHEDULE_TOPIC_XXXX"])
def test_a_plan_sends_nothing_where_nobody_gets_it(tmp_path: Path, server: EmbeddedServer, to: str) -> None:
    path, _ = planned(tmp_path, bury(server, 1))
    tree = json.loads(path.read_text())
    tree["letters"][0]["to"] = to
    path.write_text(json.dumps(tree))
    with pytest.raises(ConfigError, match="letter 1: no consumer would get it"):
        read_plan(path)


def test_a_stop_ends_it_between_letters_and_the_next_run_goes_on(
    server: EmbeddedServer, tmp_path: Path
) -> None:
    path, _ = planned(tmp_path, bury(server))
    stopped = threading.Event()
    first = drive(server, path, is_stopped=stopped.is_set, progress=lambda sent: stopped.set(), rate=100)
    assert 0 < first.sent < COUNT
    assert drive(server, path).sent == COUNT - first.sent
    assert len(stored(server, "orders")) == 2 * COUNT


def test_letters_of_more_topics_than_one_write_takes_are_all_sent(
    server: EmbeddedServer, tmp_path: Path
) -> None:
    path, _ = planned(tmp_path, bury(server))
    tree = json.loads(path.read_text())
    topics = [f"of-{number}" for number in range(SPARK_WRITE_TOPICS_MAX + 1)]
    for number, letter in enumerate(tree["letters"]):
        letter["to"] = topics[number % len(topics)]
    path.write_text(json.dumps(tree))
    outcome = drive(server, path)
    assert (outcome.sent, outcome.missing, set(outcome.topics)) == (COUNT, [], set(topics))
    assert sum(len(stored(server, topic)) for topic in topics) == COUNT
    assert drive(server, path).sent == 0


@pytest.mark.parametrize(
    ("brokers", "told"), [(0, "knows no broker now"), (1, "no master of the topic .* is up")]
)
def test_while_no_broker_is_up_no_letter_is_said_to_be_gone(brokers: int, told: str) -> None:
    async def scenario() -> None:
        async with cluster(brokers) as c:
            c.create(f"%DLQ%{GROUP}")
            for broker in c.brokers:
                broker.ids = {"1": broker}
            plan = Plan("p", GROUP, [Letter("broker-0", 0, 0, "x", "orders")], "s")
            with pytest.raises(NoBroker, match=told):
                await asyncio.get_running_loop().run_in_executor(
                    None, look, plan, ClusterAccess(c.nameserver.address), None, set()
                )

    asyncio.run(scenario())


# ---- files


def test_a_letter_that_cannot_be_read_is_left_out_and_spoils_no_plan(tmp_path: Path) -> None:
    """Of a damaged one only the place is known (`arrow/batches.py`)."""
    place = {"brokerName": "b", "queueId": 0}
    whole = {**place, "queueOffset": 1, "msgId": "7F", "origin": "orders", "tag": "", "died": 1}
    damaged = {**place, "queueOffset": 2, "msgId": None, "origin": "", "tag": "", "died": None}
    entries = entries_of([whole, damaged])
    write_plan(tmp_path / "p.json", "p", "s", "g", "now", {}, entries)
    assert read_plan(tmp_path / "p.json").letters == [Letter("b", 0, 1, "7F", "orders")]


def test_a_plan_has_a_line_for_each_letter_and_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    entries = [{"broker": "b", "queue": 0, "offset": at, "id": str(at), "to": "t"} for at in range(3)]
    write_plan(path, "p", "s", "g", "now", {"--tag": ["x"]}, entries)
    assert len([line for line in path.read_text().splitlines() if '"offset"' in line]) == 3
    assert read_plan(path) == Plan("p", "g", [Letter("b", 0, at, str(at), "t") for at in range(3)], "s")
    with pytest.raises(FileExistsError):
        write_plan(path, "q", "s", "g", "now", {}, [])
    assert [file.name for file in tmp_path.iterdir()] == ["p.json"]


def test_a_plan_has_as_many_letters_as_can_be_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids are as long as their producers make them."""
    monkeypatch.setattr(plan_module, "REPLAY_FILE_BYTES_MAX", 10_000)
    path = tmp_path / "p.json"
    entries = [
        {"broker": "b", "queue": 0, "offset": at, "id": "x" * (at % 700), "to": "t"} for at in range(100)
    ]
    written = write_plan(path, "p", "s", "g", "now", {}, entries)
    assert 9_000 < len(path.read_text()) <= 10_000
    assert [letter.offset for letter in read_plan(path).letters] == list(range(written))


def test_a_letter_that_says_it_was_of_a_topic_of_retries_is_of_no_known_one() -> None:
    """Its producer can have written so, to reach one group past all that a consumer asks for."""
    row = {"brokerName": "b", "queueId": 0, "queueOffset": 1, "msgId": "7F", "tag": "", "died": 1}
    origins = ("orders", "%RETRY%billing", "%DLQ%billing")
    entries = entries_of([{**row, "origin": origin} for origin in origins])
    assert [entry["to"] for entry in entries] == ["orders", "", ""]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"kind": "x"}, "is no plan of a redrive"),
        ({"letters": {}}, "letters is a list"),
        ({"letters": [7]}, "letter 1: it is no object"),
        ({"letters": [{"broker": "b", "queue": -1, "offset": 0, "id": "x"}]}, "numbers from 0 on"),
        ({"letters": [{"broker": "b", "queue": 0, "offset": 0, "id": "x", "to": "a b"}]}, "letter 1: "),
        ({"letters": [{"broker": "b", "queue": 0, "offset": 0, "id": "x"}] * 2}, "names a letter twice"),
        ({"id": "../x"}, "is no id"),
        ({"group": "a b"}, "p.json: "),
        ({"secret": None}, "it has no secret"),
    ],
)
def test_a_plan_that_was_changed_wrongly_is_refused_with_the_letter(
    tmp_path: Path, change: dict[str, object], complaint: str
) -> None:
    path = tmp_path / "p.json"
    write_plan(path, "p", "s", "g", "now", {}, [])
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ConfigError, match=complaint):
        read_plan(path)


def test_a_record_belongs_to_one_plan_one_run_and_one_way(tmp_path: Path) -> None:
    path = tmp_path / "p.sent.jsonl"
    letter = Letter("b", 0, 1, "x", "t")
    with opened(path, "p", None) as record:
        record.add(letter, {"to": "t"})
        with pytest.raises(ConfigError, match="is being redriven"), opened(path, "p", None):
            pass
    assert sent_by(path, "p", None) == {("b", 0, 1, "x")}
    with pytest.raises(ConfigError, match="record of another plan"):
        sent_by(path, "q", None)
    with pytest.raises(ConfigError, match="began without --to"), opened(path, "p", "t"):
        pass
    path.write_text('{"plan": "p", "to": null}\nnonsense\n')
    with pytest.raises(ConfigError, match="2 cannot be read, so nobody knows what was sent"):
        sent_by(path, "p", None)


async def plant(
    server: EmbeddedServer,
    properties: str = "",
    body: bytes = b"odd",
    sys_flag: int = 0,
    topic: str = "orders",
) -> None:
    """A message as another client may send it."""
    instance = ClientInstance(server.nameserver)
    instance.act_as_producer("strangers")
    await instance.start()
    route, _ = await instance.routes.route_for_sending(topic)
    header = SendRequest(
        topic=topic,
        producer_group="strangers",
        default_topic="TBW102",
        default_topic_queues=4,
        queue_id=0,
        sys_flag=sys_flag,
        born_timestamp_ms=1,
        flag=0,
        properties=properties,
    )
    address = instance.routes.address(next(iter(route.brokers)))
    answer = await instance.call(address, Command(RequestCode.SEND_MESSAGE_V2, header.encode(), body))
    assert answer.code == 0, answer.remark
    await instance.close()


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ("TAGS\x01A B\x02", "its tags is one word"),
        ("TAGS\x01*\x02", "its tags is one word"),
        ("TAGS\x01a||b\x02", "its tags is one word"),
    ],
    ids=["blank", "star", "alternatives"],
)
def test_a_letter_that_no_write_takes_is_named_and_the_others_are_sent(
    server: EmbeddedServer, tmp_path: Path, properties: str, why: str
) -> None:
    asyncio.run(plant(server, properties))
    path, plan = planned(tmp_path, bury(server, 3, expected=4))
    odd = look(plan, ClusterAccess(server.nameserver), None, set()).missing
    assert [why in said for _, said in odd] == [True]
    outcome = drive(server, path)
    assert (outcome.sent, [letter for letter, _ in outcome.missing]) == (3, [odd[0][0]])


def test_a_body_that_takes_all_the_room_to_unpack_leaves_its_neighbours_readable(
    server: EmbeddedServer, tmp_path: Path
) -> None:
    for body in (bytes(int(BODY_UNPACKED_BYTES_MAX)), b"small"):
        asyncio.run(plant(server, body=zlib.compress(body), sys_flag=SysFlag.COMPRESSED))
    path, plan = planned(tmp_path, bury(server, 0, expected=2))
    outcome = drive(server, path)
    assert (outcome.sent, [letter.offset for letter, _ in outcome.missing]) == (1, [plan.letters[0].offset])
    assert "its body" in outcome.missing[0][1]


def test_a_count_that_is_no_count_ends_no_redrive(server: EmbeddedServer, tmp_path: Path) -> None:
    asyncio.run(plant(server, f"REDRIVE_TIMES\x01{'9' * 5000}\x02"))
    path, _ = planned(tmp_path, bury(server, 0, expected=1))
    assert drive(server, path).sent == 1
    assert stored(server, "orders")[-1].properties["REDRIVE_TIMES"] == "1"
