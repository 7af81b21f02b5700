"""A plan of dead letters, its redrive on a real server, and the record of what was sent.  Without Spark."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from bolide import Message, Producer, PullConsumer, PushConsumer
from bolide.model.errors import ConfigError, ConnectionLost, RouteNotFound
from bolide.model.message import StoredMessage
from bolide.pipeline import sender
from bolide.pipeline.dead_letters.plan import Letter, Plan, read_plan, write_plan
from bolide.pipeline.dead_letters.record import opened, record_of, sent_by
from bolide.pipeline.dead_letters.redrive import Outcome, look, redrive
from bolide.testing import EmbeddedServer
from tests.peers.waiting import PATIENCE_SECONDS, wait_until

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


def bury(server: EmbeddedServer, count: int = COUNT) -> list[StoredMessage]:
    """Dead letters as they come to be: a listener that fails for each."""

    def fail(messages: list[StoredMessage]) -> None:
        raise ValueError("as tests want it")

    with Producer(server.nameserver, group="tests") as producer:
        for number in range(count):
            message = Message("orders", b"order %d" % number, "paid", [f"k{number}"], {"city": "Köln"})
            producer.send(message)
    with PushConsumer(
        server.nameserver, group=GROUP, listener=fail, start_from="first", max_reconsume_times=0
    ) as consumer:
        consumer.subscribe("orders")
        wait_until(lambda: has(server, count), PATIENCE_SECONDS, "all are dead")
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
    write_plan(path, "plan-1", GROUP, "now", {}, entries)
    return path, read_plan(path)


def drive(server: EmbeddedServer, path: Path, to: str | None = None, **options: object) -> Outcome:
    plan = read_plan(path)
    with opened(record_of(path), plan.id, to) as record:
        return redrive(plan, server.nameserver, record, to=to, now=lambda: "then", **options)  # type: ignore[arg-type]


def test_letters_go_to_their_topic_as_new_messages_and_no_run_after_that_sends_anything(
    server: EmbeddedServer, tmp_path: Path
) -> None:
    letters = bury(server)
    path, plan = planned(tmp_path, letters)
    assert look(plan, server.nameserver, None, set()).topics == {"orders": COUNT}
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
    assert len(look(plan, server.nameserver, None, set()).missing) == 0


def test_a_letter_of_no_topic_needs_one(server: EmbeddedServer, tmp_path: Path) -> None:
    path, _ = planned(tmp_path, bury(server, 1))
    tree = json.loads(path.read_text())
    tree["letters"][0]["to"] = ""
    path.write_text(json.dumps(tree))
    assert "give --to" in drive(server, path).missing[0][1]
    path.with_name("plan.sent.jsonl").unlink()
    assert drive(server, path, to="somewhere").sent == 1


def test_a_stop_ends_it_between_letters_and_the_next_run_goes_on(
    server: EmbeddedServer, tmp_path: Path
) -> None:
    path, _ = planned(tmp_path, bury(server))
    stopped = threading.Event()
    first = drive(server, path, is_stopped=stopped.is_set, progress=lambda sent: stopped.set(), rate=100)
    assert 0 < first.sent < COUNT
    assert drive(server, path).sent == COUNT - first.sent
    assert len(stored(server, "orders")) == 2 * COUNT


# ---- files


def test_a_plan_has_a_line_for_each_letter_and_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    entries = [{"broker": "b", "queue": 0, "offset": at, "id": str(at), "to": "t"} for at in range(3)]
    write_plan(path, "p", "g", "now", {"--tag": ["x"]}, entries)
    assert len([line for line in path.read_text().splitlines() if '"offset"' in line]) == 3
    assert read_plan(path) == Plan("p", "g", [Letter("b", 0, at, str(at), "t") for at in range(3)])
    with pytest.raises(FileExistsError):
        write_plan(path, "q", "g", "now", {}, [])


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
    ],
)
def test_a_plan_that_was_changed_wrongly_is_refused_with_the_letter(
    tmp_path: Path, change: dict[str, object], complaint: str
) -> None:
    path = tmp_path / "p.json"
    write_plan(path, "p", "g", "now", {}, [])
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
    assert sent_by(path, "p", None) == {letter.place}
    with pytest.raises(ConfigError, match="record of another plan"):
        sent_by(path, "q", None)
    with pytest.raises(ConfigError, match="began without --to"), opened(path, "p", "t"):
        pass
    path.write_text('{"plan": "p", "to": null}\nnonsense\n')
    with pytest.raises(ConfigError, match="2 cannot be read, so nobody knows what was sent"):
        sent_by(path, "p", None)
