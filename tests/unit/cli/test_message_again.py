"""Looking closely at messages and delivering them again: by offset, who consumed them, copies, dead letters."""

import asyncio
import json

import pytest

from bolide import Later, Message, MessageQueue, Producer, PushConsumer
from bolide.admin.connection import AdminConnection
from bolide.admin.queues import Place
from bolide.admin.replay import Span, copy_of, letter_again, letters_in
from bolide.model.errors import MessageIllegal
from bolide.model.offsets import QueueOffset
from bolide.record.stored import StoredMessage
from bolide.testing import EmbeddedServer
from tests.peers.waiting import PATIENCE_SECONDS, wait_until
from tests.unit.cli.conftest import Command
from tests.unit.cli.samples import sample

BROKER = "broker-a"


@pytest.fixture
def server(bolide_module_server: EmbeddedServer) -> EmbeddedServer:
    return bolide_module_server


def send(server: EmbeddedServer, command: Command, topic: str, *bodies: bytes, **options: str) -> None:
    """Into queue 0 of a topic of one queue."""
    command("topic", "create", topic, "--queues", "1", "--if-not-exists")
    with Producer(server.nameserver, group="tests") as producer:
        for body in bodies:
            message = Message(topic, body, tags="eu", keys=["42"], properties=options)
            producer.send(message, queue=MessageQueue(topic, BROKER, 0))


def there(command: Command, topic: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in command("queue", "peek", topic, "0", "--json").out.splitlines()]


# ---- looking


def test_a_message_is_found_by_its_place(server: EmbeddedServer, command: Command) -> None:
    send(server, command, "placed", b"first", b"second")
    assert json.loads(command("message", "at", "placed", "0", "1", "--json").out)["body"] == "second"
    assert "second" in command("message", "at", "placed", "0", "1").out
    assert "no message at offset 2" in command("message", "at", "placed", "0", "2", code=4).err
    assert "has no queue 5" in command("message", "at", "placed", "5", "0", code=4).err


def test_a_track_tells_of_each_group_whether_it_is_past_the_message(
    server: EmbeddedServer, command: Command
) -> None:
    send(server, command, "tracked", b"a", b"b", b"c")
    for group, offset in (("past", "3"), ("before", "1")):
        command("group", "create", group)
        command("group", "reset", group, "--to", offset, "--topic", "tracked", "--yes")
    message = there(command, "tracked")[2]
    told = {
        one["group"]: one for one in command("message", "track", str(message["offset_id"]), "--json").json
    }
    assert (told["past"]["state"], told["past"]["before"]) == ("PASSED", 0)
    assert (told["before"]["state"], told["before"]["before"]) == ("WAITING", 1)
    by_unique_id = ("message", "track", str(message["id"]), "--topic", "tracked")
    assert ["past", "past", "it", "0", "0"] in command(*by_unique_id).rows


def test_who_does_not_subscribe_to_its_tag_has_not_wanted_it(
    server: EmbeddedServer, command: Command
) -> None:
    send(server, command, "tagged", b"a")
    with PushConsumer(
        server.nameserver, group="others", listener=lambda messages: None, start_from="first"
    ) as consumer:
        consumer.subscribe("tagged", "us")
        (message,) = there(command, "tagged")

        def state() -> str:
            told = command("message", "track", str(message["offset_id"]), "--json").json
            return next((one["state"] for one in told if one["group"] == "others"), "")

        wait_until(lambda: state() == "FILTERED", PATIENCE_SECONDS, "the group is past it")


def test_consuming_directly_needs_a_member_that_can(server: EmbeddedServer, command: Command) -> None:
    send(server, command, "direct", b"a")
    (message,) = there(command, "direct")
    words = ("message", "consume", str(message["offset_id"]), "--group", "directed")
    command("group", "create", "directed")
    assert "no member of directed is connected to broker-a" in command(*words, code=1).err


# ---- copies


def test_a_resent_message_is_a_copy_with_a_new_id(server: EmbeddedServer, command: Command) -> None:
    send(server, command, "original", b"body", source="web")
    (message,) = there(command, "original")
    words = ("message", "resend", str(message["offset_id"]))
    assert "Nothing was sent" in command(*words, "--preview").err
    assert "--yes" in command(*words, code=2).err
    assert len(there(command, "original")) == 1
    sent = command(*words, "--yes", "--json").json
    _, copy = there(command, "original")
    assert copy["id"] == sent["id"] != message["id"]
    assert (copy["body"], copy["tag"], copy["keys"]) == ("body", "eu", ["42"])
    assert dict(copy["properties"])["source"] == "web"  # type: ignore[call-overload]


@pytest.mark.parametrize("flag", ["--preview", "--yes"])
def test_a_copy_goes_to_no_topic_that_is_not_there(
    server: EmbeddedServer, command: Command, flag: str
) -> None:
    topic = f"orders{flag}"
    misspelt = topic.replace("orders", "odrers")
    send(server, command, topic, b"body")
    (message,) = there(command, topic)
    words = ("message", "resend", str(message["offset_id"]), "--to", misspelt, flag)
    assert f"did you mean {topic}?" in command(*words, code=4).err
    assert misspelt not in command("topic", "list").out


def test_a_copy_has_no_property_that_would_delay_it_or_that_others_have_written() -> None:
    properties = {"TAGS": "eu", "DELAY": "3", "TIMER_DELIVER_MS": "1", "UNIQ_KEY": "A", "source": "web"}
    assert copy_of(sample(properties=properties), "elsewhere").properties == {"source": "web"}


def test_a_body_that_nobody_can_read_is_not_copied() -> None:
    with pytest.raises(MessageIllegal, match="does not unpack"):
        copy_of(sample(body_error="bad zlib"), "elsewhere")


# ---- dead letters


def letter(**properties: str) -> StoredMessage:
    return sample(topic="%DLQ%g", properties=properties)


def test_a_dead_letter_goes_to_its_group_alone_or_to_its_topic() -> None:
    again = letter_again(letter(RETRY_TOPIC="orders"), "g", to_topic=False)
    assert (again.topic, dict(again.properties)) == ("%RETRY%g", {"RETRY_TOPIC": "orders"})
    everybody = letter_again(letter(RETRY_TOPIC="orders"), "g", to_topic=True)
    assert (everybody.topic, dict(everybody.properties)) == ("orders", {})
    with pytest.raises(MessageIllegal, match="which topic"):
        letter_again(letter(), "g", to_topic=True)


def test_a_preview_shows_the_dead_letters_and_sends_nothing(server: EmbeddedServer, command: Command) -> None:
    command("group", "create", "mourners")
    send(server, command, "%DLQ%mourners", b"one", b"two", RETRY_TOPIC="lost")
    shown = command("message", "replay", "mourners", "--preview")
    assert [row[3] for row in shown.rows] == ["lost", "lost"]
    assert "2 dead letters would go to the group mourners alone. Nothing was sent" in shown.err
    told = command("message", "replay", "%DLQ%mourners", "--limit", "1", "--preview", "--json").json
    assert told == {
        "group": "mourners",
        "preview": True,
        "letters": 1,
        "topics": {"lost": 1},
        "sent": 0,
    }
    assert "--yes" in command("message", "replay", "mourners", code=2).err
    assert "no dead letters" in command("message", "replay", "mourners", "--key", "7", code=4).err
    assert "no dead letters" in command("message", "replay", "mourners", "--since", "1ms", code=4).err


def test_replayed_letters_reach_the_group_as_messages_of_their_old_topic(
    server: EmbeddedServer, command: Command
) -> None:
    send(server, command, "found")
    command("group", "create", "finders")
    send(server, command, "%DLQ%finders", b"one", b"two", RETRY_TOPIC="found")
    got: list[tuple[str, bytes]] = []
    with PushConsumer(
        server.nameserver,
        group="finders",
        listener=lambda messages: got.extend((message.topic, message.body) for message in messages),
    ) as consumer:
        consumer.subscribe("found")
        told = command("message", "replay", "finders", "--yes", "--json").json
        assert told["sent"] == 2
        wait_until(lambda: len(got) == 2, PATIENCE_SECONDS, "both are delivered")
    assert sorted(got) == [("found", b"one"), ("found", b"two")]
    assert there(command, "found") == []  # nobody else gets them


def test_to_the_topic_means_to_everybody(server: EmbeddedServer, command: Command) -> None:
    send(server, command, "public")
    command("group", "create", "loud")
    send(server, command, "%DLQ%loud", b"one", b"two", RETRY_TOPIC="public")
    command("message", "replay", "loud", "--to-topic", "--limit", "1", "--rate", "1000", "--yes")
    assert [message["body"] for message in there(command, "public")] == ["one"]


def test_a_replay_that_ends_early_says_how_to_go_on(
    server: EmbeddedServer, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(server, command, "early")
    command("group", "create", "halved")
    send(server, command, "%DLQ%halved", b"one", RETRY_TOPIC="early")
    send(server, command, "%DLQ%halved", b"two")  # of no topic
    said = command("message", "replay", "halved", "--to-topic", "--yes", code=1).err
    assert "1 of 2 were sent" in said
    assert "--since 20" in said
    begin, skip = said.partition("--since ")[2].split()[:3:2]
    left = command(
        "message", "replay", "halved", "--since", begin, "--skip", skip, "--preview", "--json"
    ).json
    assert (left["letters"], left["topics"]) == (1, {"?": 1})


def test_who_has_no_dead_letters_is_told_apart_from_who_is_not_there(command: Command) -> None:
    command("group", "create", "lively")
    for name in ("lively", "%DLQ%lively", "%RETRY%lively"):
        assert "lively has no dead letters" in command("message", "replay", name, code=4).err
    assert "has a group 'nobody-here'" in command("message", "replay", "nobody-here", code=4).err


def test_the_letters_of_several_queues_come_in_the_order_of_their_deaths(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    died = {0: [10, 40, 40], 1: [20, 30, 40]}

    async def one_by_one(servers: object, place: Place, at: int, count: int) -> list[StoredMessage]:
        times = died[place.queue.queue_id][at : at + 1]
        return [sample(queue_offset=QueueOffset(at), store_timestamp_ms=ms) for ms in times]

    async def order(skip: int) -> list[int]:
        spans = [Span(Place(MessageQueue("%DLQ%g", BROKER, queue), "a:1"), 0, 3) for queue in died]
        servers = AdminConnection("127.0.0.1:1")
        return [one.store_timestamp_ms async for one in letters_in(servers, spans, skip=skip)]

    monkeypatch.setattr("bolide.admin.replay.messages_from", one_by_one)
    assert asyncio.run(order(0)) == [10, 20, 30, 40, 40, 40]
    assert asyncio.run(order(4)) == [40, 40]


def test_a_python_consumer_is_handed_one_message(server: EmbeddedServer, command: Command) -> None:
    """AD-05."""
    send(server, command, "asked", b"a")
    (message,) = there(command, "asked")
    got: list[bytes] = []

    def listener(messages: list[StoredMessage]) -> Later | None:
        got.extend(message.body for message in messages)
        return None if len(got) == 1 else Later("once is enough")

    with PushConsumer(server.nameserver, group="pythons", listener=listener) as consumer:
        words = ("message", "consume", str(message["offset_id"]), "--group", "pythons")

        def is_member() -> bool:
            return "pythons" in command("group", "list").out and bool(
                command("group", "members", "pythons", "--json").json["members"]
            )

        command("topic", "create", "quiet", "--queues", "1")
        consumer.subscribe("quiet")
        wait_until(is_member, PATIENCE_SECONDS, "the consumer is a member")
        command(*words)
        assert got == [b"a"]
        said = command(*words, code=1)
    assert "once is enough" in said.out + said.err
