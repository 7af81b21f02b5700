"""`bolide group …` against a real server: what it shows is so, and nothing moves without a yes."""

import pytest

from bolide import Message, MessageQueue, Producer, PullConsumer, PushConsumer
from bolide.admin.connection import AdminConnection
from bolide.admin.groups import GroupMembers
from bolide.cli.group_reset import parse_target
from bolide.cli.spans import format_span
from bolide.model.errors import ConfigError
from bolide.testing import EmbeddedServer
from bolide.wire.bodies.connection import SubscriptionDifference
from tests.peers.waiting import PATIENCE_SECONDS, wait_until
from tests.unit.cli.conftest import Command

NOW_MS = 1_800_000_000_000
BROKER = "broker-a"


def fill(server: EmbeddedServer, command: Command, topic: str, *counts: int) -> None:
    """So many messages into each queue."""
    command("topic", "create", topic, "--queues", str(len(counts)))
    with Producer(server.nameserver, group="tests") as producer:
        for queue_id, count in enumerate(counts):
            for number in range(count):
                producer.send(Message(topic, b"%d" % number), queue=MessageQueue(topic, BROKER, queue_id))


def offsets(server: EmbeddedServer, topic: str, group: str) -> list[int | None]:
    with PullConsumer(server.nameserver, group=group) as consumer:
        return [consumer.committed_offset(queue) for queue in sorted(consumer.queues(topic))]


@pytest.fixture
def server(bolide_module_server: EmbeddedServer) -> EmbeddedServer:
    return bolide_module_server


# ---- settings


def test_groups_are_created_changed_listed_and_deleted(command: Command) -> None:
    created = command("group", "create", "life", "--retries", "3", "--json").json
    assert created == {"group": "life", "brokers": [BROKER]}
    command("group", "update", "life", "--no-consume", "--retry-queues", "2")
    assert command("group", "describe", "life", "--json").json["settings"] == {
        BROKER: {
            "consume": False,
            "broadcast": True,
            "orderly": False,
            "retries": 3,
            "retry_queues": 2,
            "timeout_minutes": 15,
        }
    }
    assert ["life", "0", "0"] in command("group", "list").rows
    assert command("group", "delete", "life", "--yes", "--json").json["brokers"] == [BROKER]
    assert "life" not in [row["group"] for row in command("group", "list", "--json").json]


def test_creating_what_exists_changes_nothing(command: Command) -> None:
    command("group", "create", "twice", "--retries", "5")
    assert "bolide group update twice" in command("group", "create", "twice", code=1).err
    assert "left as it is" in command("group", "create", "twice", "--if-not-exists").err
    settings = command("group", "describe", "twice", "--json").json["settings"]
    assert settings[BROKER]["retries"] == 5


def test_system_groups_are_listed_on_request_only(command: Command) -> None:
    assert "TOOLS_CONSUMER" not in command("group", "list").out
    assert "TOOLS_CONSUMER" in command("group", "list", "--system").out


@pytest.mark.parametrize(
    "words",
    [
        ["describe", "raeders"],
        ["members", "raeders"],
        ["lag", "raeders"],
        ["update", "raeders", "--retries", "1"],
        ["delete", "raeders", "--yes"],
        ["reset", "raeders", "--to", "latest", "--yes"],
        ["clone-offsets", "raeders", "readers", "--yes"],
    ],
    ids=lambda words: words[0],
)
def test_every_command_names_the_group_that_may_be_meant(words: list[str], command: Command) -> None:
    command("group", "create", "readers", "--if-not-exists")
    assert "did you mean readers?" in command("group", *words, code=4).err


def test_nothing_to_change_is_wrong_usage(command: Command) -> None:
    command("group", "create", "idle", "--if-not-exists")
    assert "--retries" in command("group", "update", "idle", code=2).err


# ---- how far


def test_lag_is_told_in_messages_and_in_time(server: EmbeddedServer, command: Command) -> None:
    fill(server, command, "late", 5, 2)
    command("group", "create", "slow")
    command("group", "reset", "slow", "--to", "offset:2", "--topic", "late", "--yes")
    (lag,) = command("group", "lag", "slow", "--json").json
    assert (lag["topic"], lag["behind"]) == ("late", 3)
    assert [(queue["offset"], queue["end"], queue["behind"]) for queue in lag["queues"]] == [
        (2, 5, 3),
        (2, 2, 0),
    ]
    assert lag["waits_ms"] == lag["queues"][0]["waits_ms"] > 0
    assert lag["queues"][1]["waits_ms"] == 0
    ((group, topic, queues, behind, *waiting),) = command("group", "lag", "slow").rows
    assert (group, topic, queues, behind) == ("slow", "late", "2", "3")
    assert waiting[1] == "s"
    assert "behind by 3 messages and" in command("group", "describe", "slow").out


def test_who_has_consumed_everything_waits_for_nothing(server: EmbeddedServer, command: Command) -> None:
    fill(server, command, "done", 2)
    command("group", "create", "quick")
    command("group", "reset", "quick", "--to", "latest", "--topic", "done", "--yes")
    assert command("group", "lag", "quick").rows == [["quick", "done", "1", "0", "-"]]
    assert "no message is ready for it" in command("group", "describe", "quick").out


def test_members_are_shown_with_version_and_subscriptions(server: EmbeddedServer, command: Command) -> None:
    fill(server, command, "watched", 1)
    command("group", "create", "watchers")
    assert "no member of watchers" in command("group", "members", "watchers").err
    with PushConsumer(server.nameserver, group="watchers", listener=lambda messages: None) as consumer:
        consumer.subscribe("watched", "a || b")

        def is_there() -> bool:
            found = command("group", "describe", "watchers", "--json").json
            return bool(found["members"]) and bool(found["subscriptions"])

        wait_until(is_there, PATIENCE_SECONDS, "the member is seen")
        found = command("group", "members", "watchers", "--json").json
        (member,) = found["members"]
        assert (member["language"], member["version"], member["brokers"]) == ("PYTHON", "5.4.0", [BROKER])
        assert {"topic": "watched", "expression": "a || b", "type": "TAG"} in found["subscriptions"]
        assert found["message_model"] == "CLUSTERING"
        shown = command("group", "describe", "watchers").out
        assert "1 member" in shown
        assert "a || b" in shown


def test_members_that_want_different_messages_are_said_aloud(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    command("group", "create", "divided")
    told = (
        SubscriptionDifference(("one",), (("orders", "a"),)),
        SubscriptionDifference(("two",), (("orders", "b"),)),
    )

    async def members(servers: AdminConnection, group: str) -> GroupMembers:
        return GroupMembers((), {}, told)

    monkeypatch.setattr("bolide.admin.groups.group_members", members)
    shown = command("group", "describe", "divided", "--json")
    assert shown.json["differences"] == [
        {"topic": "orders", "wanted": [{"by": ["one"], "what": "a"}, {"by": ["two"], "what": "b"}]}
    ]
    said = command("group", "describe", "divided").err
    for words in ("want different messages of orders", "a: one", "b: two", "a group each"):
        assert words in said


# ---- where to


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("earliest", (0, None, False)),
        ("beginning", (0, None, False)),
        ("latest", (None, None, True)),
        ("end", (None, None, True)),
        ("17", (17, None, False)),
        ("offset:1700000000", (1_700_000_000, None, False)),
        ("1700000000", (None, 1_700_000_000_000, False)),
        ("-10m", (None, NOW_MS - 600_000, False)),
        ("10m", (None, NOW_MS - 600_000, False)),
        ("2026-01-31T10:00:00Z", (None, 1_769_853_600_000, False)),
    ],
)
def test_a_place_to_go_on_is_a_word_an_offset_or_a_moment(
    text: str, told: tuple[int | None, int | None, bool]
) -> None:
    target = parse_target(text, NOW_MS)
    assert (target.offset, target.moment_ms, target.is_end) == told


def test_a_place_that_is_none_is_refused_with_those_that_are() -> None:
    with pytest.raises(ConfigError, match="earliest, latest"):
        parse_target("somewhere", NOW_MS)


def test_a_preview_shows_every_queue_and_changes_nothing(server: EmbeddedServer, command: Command) -> None:
    fill(server, command, "previewed", 5, 3)
    command("group", "create", "careful")
    command("group", "reset", "careful", "--to", "2", "--topic", "previewed", "--yes")
    shown = command("group", "reset", "careful", "--to", "earliest", "--preview")
    assert shown.rows == [
        ["previewed", BROKER, "0", "2", "0", "2", "0"],
        ["previewed", BROKER, "1", "2", "0", "2", "0"],
    ]
    assert "4 messages again, 0 messages skipped. Nothing was changed" in shown.err
    told = command("group", "reset", "careful", "--to", "latest", "--preview", "--json").json
    assert (told["again"], told["skipped"], told["preview"]) == (0, 4, True)
    assert offsets(server, "previewed", "careful") == [2, 2]


def test_a_reset_moves_all_queues_or_one_and_wants_a_yes(server: EmbeddedServer, command: Command) -> None:
    fill(server, command, "moved", 4, 4)
    command("group", "create", "movers")
    refused = command("group", "reset", "movers", "--to", "latest", "--topic", "moved", code=2)
    assert "8 messages skipped" in refused.err
    assert "--yes" in refused.err
    assert offsets(server, "moved", "movers") == [None, None]
    command("group", "reset", "movers", "--to", "latest", "--topic", "moved", "--yes")
    assert offsets(server, "moved", "movers") == [4, 4]
    command("group", "reset", "movers", "--to", "1", "--topic", "moved", "--queue", "1", "--yes")
    assert offsets(server, "moved", "movers") == [4, 1]
    command("group", "reset", "movers", "--to", "1h", "--yes")
    assert offsets(server, "moved", "movers") == [0, 0]
    command("group", "reset", "movers", "--to", "99", "--yes")  # no queue is so long
    assert offsets(server, "moved", "movers") == [4, 4]


def test_a_queue_needs_its_topic_and_must_be_there(server: EmbeddedServer, command: Command) -> None:
    fill(server, command, "narrow", 1)
    command("group", "create", "narrowed")
    assert "--topic" in command("group", "reset", "narrowed", "--to", "0", "--queue", "0", code=2).err
    words = ("group", "reset", "narrowed", "--to", "0", "--topic", "narrow", "--queue", "7", "--yes")
    assert "has no queue 7" in command(*words, code=4).err


def test_a_group_takes_over_the_offsets_of_another(server: EmbeddedServer, command: Command) -> None:
    fill(server, command, "shared", 4, 4)
    command("group", "create", "old")
    command("group", "create", "new")
    command("group", "reset", "old", "--to", "3", "--topic", "shared", "--queue", "1", "--yes")
    shown = command("group", "clone-offsets", "old", "new", "--preview")
    assert shown.rows == [["shared", BROKER, "1", "-", "3", "0", "3"]]
    assert offsets(server, "shared", "new") == [None, None]
    command("group", "clone-offsets", "old", "new", "--yes")
    assert offsets(server, "shared", "new") == [None, 3]
    assert "itself" in command("group", "clone-offsets", "old", "old", code=2).err


def test_a_deleted_group_has_no_offsets_unless_they_are_to_stay(
    server: EmbeddedServer, command: Command
) -> None:
    fill(server, command, "left", 3)
    for keep, expected in (("--keep-offsets", 2), ("--yes", None)):
        command("group", "create", "leaver")
        command("group", "reset", "leaver", "--to", "2", "--topic", "left", "--yes")
        assert "Nothing was changed" in command("group", "delete", "leaver", "--preview").err
        assert "--yes" in command("group", "delete", "leaver", code=2).err
        command("group", "delete", "leaver", keep, "--yes")
        assert offsets(server, "left", "leaver") == [expected]


@pytest.mark.parametrize(
    ("span_ms", "words"), [(59_999, "59 s"), (3_600_000, "1 h"), (86_400_000 + 60_000, "1 d")]
)
def test_a_span_is_told_in_its_largest_units(span_ms: int, words: str) -> None:
    assert format_span(span_ms) == words


def test_members_that_are_connected_go_on_where_the_group_was_moved(
    server: EmbeddedServer, command: Command
) -> None:
    fill(server, command, "again", 3, 3)
    bodies: list[bytes] = []
    with PushConsumer(
        server.nameserver,
        group="online",
        listener=lambda messages: bodies.extend(message.body for message in messages),
        start_from="first",
    ) as consumer:
        consumer.subscribe("again")
        wait_until(lambda: len(bodies) == 6, PATIENCE_SECONDS, "everything is consumed")
        command("group", "reset", "online", "--to", "1", "--topic", "again", "--yes")
        wait_until(lambda: len(bodies) == 10, PATIENCE_SECONDS, "the rest comes again")
    assert sorted(bodies) == sorted(2 * [b"0", b"1", b"1", b"2", b"2"])
    assert offsets(server, "again", "online") == [3, 3]


def test_lag_of_groups_without_an_offset_says_whose(command: Command) -> None:
    for group in ("nowhere-yet", "still-nowhere"):
        command("group", "create", group)
    told = {
        ("nowhere-yet",): "the group nowhere-yet has stored no offset yet",
        ("nowhere-yet", "still-nowhere"): "the groups nowhere-yet, still-nowhere have stored no offset yet",
    }
    for words, said in told.items():
        assert said in command("group", "lag", *words).err
    assert command("group", "lag", "nowhere-yet", "--json").json == []


def test_lag_in_a_topic_that_is_not_there_is_no_success(command: Command) -> None:
    command("group", "create", "lagging")
    assert "has a topic 'nope'" in command("group", "lag", "lagging", "--topic", "nope", code=4).err


def test_watching_at_a_wrong_address_ends_at_once(command: Command) -> None:
    assert "127.0.0.1:1" in command("group", "lag", "--watch", "-n", "127.0.0.1:1", code=3).err


@pytest.mark.parametrize("group", ["CID_RMQ_SYS_TRANS", "CID_RMQ_SYS_OTHER", "TOOLS_CONSUMER"])
def test_a_group_of_the_system_is_not_deleted(command: Command, group: str) -> None:
    assert f"{group} is a group of RocketMQ's own" in command("group", "delete", group, "--yes", code=1).err


def test_a_tail_leaves_no_group_behind(server: EmbeddedServer, command: Command) -> None:
    fill(server, command, "glanced", 1)
    before = command("group", "list", "--json").json
    command("tail", "glanced", "--since", "beginning", "--no-follow")
    assert [row["group"] for row in command("group", "list", "--json").json] == [
        row["group"] for row in before
    ]
