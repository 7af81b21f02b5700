"""Sending over a socket: what is stored, what is answered, what is refused and how it is said."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from bolide.broker.app import Broker
from bolide.model.topic import TopicConfig
from bolide.record.decode import decode_messages
from bolide.record.message_id import parse_offset_id
from bolide.wire.command import COMPACT, Command, encode_frame
from tests.unit.broker.stage import (
    batch_of,
    bodies_of,
    connect,
    fill,
    properties_of,
    pull_request,
    send_request,
    serving,
)
from tests.unit.net.stage import Wire, eventually
from tests.unit.store.stage import WatchedDisk

Act = Callable[[Broker, Wire], Awaitable[None]]


def play(root: Path, act: Act, settings: Mapping[str, str] | None = None, **parts: Any) -> None:
    async def main() -> None:
        async with serving(root, settings, **parts) as (broker, wire):
            await act(broker, wire)

    asyncio.run(main())


def test_an_acknowledgement_says_where_the_message_is(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await wire.ask(send_request(b"first", 1, queue_id=2))
        answer = await wire.ask(send_request(b"second", 2, queue_id=2, tag="TagA"))
        assert (answer.code, answer.opaque, answer.is_response) == (0, 2, True)
        fields = answer.fields
        assert (fields["queueId"], fields["queueOffset"]) == ("2", "1")
        assert fields["transactionId"] == f"7F0000010000{2:020X}"
        assert (fields["MSG_REGION"], fields["TRACE_ON"]) == ("DefaultRegion", "true")
        host, log_offset = parse_offset_id(fields["msgId"])
        assert broker.state.store.reader.read_at(log_offset) is not None
        assert fields["msgId"] != fields["transactionId"]
        assert str(broker.port) in str(host)

    play(tmp_path, act)


def test_answers_have_text_fields_only(tmp_path: Path) -> None:
    """Both ways in: the fast one writes its JSON by hand."""

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 1)
        for request in (send_request(), send_request(sys_flag=8), send_request(code=10)):
            if request.code == 10:
                request.fields = {
                    **{"producerGroup": "g", "topic": "T", "defaultTopic": "TBW102", "sysFlag": "0"},
                    **{"defaultTopicQueueNums": "4", "queueId": "0", "bornTimestamp": "1", "flag": "0"},
                    "properties": properties_of(),
                }
            wire.send(request)
            data = await wire.reader.readexactly(4)
            frame = await wire.reader.readexactly(int.from_bytes(data, "big"))
            head = json.loads(frame[4:])
            assert all(type(value) is str for value in head["extFields"].values())
            assert all(type(head[name]) is int for name in ("code", "flag", "opaque", "version"))
            assert b" " not in frame[4:]

    play(tmp_path, act)


def test_stored_properties_are_the_client_s_and_the_broker_s(tmp_path: Path) -> None:
    """WAIT=true is not worth storing; a missing last separator and a missing key are mended."""

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 1)
        texts = (
            "UNIQ_KEY\x01K\x02WAIT\x01true\x02TAGS\x01A\x02",
            "TAGS\x01A\x02UNIQ_KEY\x01K",
            "TAGS\x01A\x02",
            "UNIQ_KEY\x01K\x02MSG_REGION\x01theirs\x02TAGS\x01A\x02POP_CK\x01x\x02",
            "UNIQ_KEY\x01K\x02TAGS\x01A\x02WAIT\x01false\x02",
        )
        for text in texts:
            assert (await wire.ask(send_request(properties=text))).code == 0
        answer = await wire.ask(pull_request(1))
        for message, text in zip(decode_messages(answer.body, "b"), texts, strict=True):
            added = {
                "MSG_REGION": "DefaultRegion",
                "TRACE_ON": "true",
                "CLUSTER": "DefaultCluster",
                "TAGS": "A",
            }
            stored = dict(message.properties)
            key = stored.pop("UNIQ_KEY")
            assert key == "K" or len(key) == 32
            assert stored.pop("WAIT", "") == ("false" if "false" in text else "")
            assert stored == added

    play(tmp_path, act)


@pytest.mark.parametrize("form", [0, COMPACT])
@pytest.mark.parametrize("code", [10, 310, 320])
def test_every_way_to_write_a_send_stores_the_same_message(tmp_path: Path, code: int, form: int) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 1, queue_id=1)
        request = send_request(b"body", 5, code=code, form=form)
        if code == 10:
            request.fields = {
                **{
                    "producerGroup": "g",
                    "topic": "T",
                    "defaultTopic": "TBW102",
                    "defaultTopicQueueNums": "4",
                },
                **{"queueId": "0", "bornTimestamp": "1"},
                **{"sysFlag": "0", "flag": "7", "properties": properties_of(5)},
            }
        else:
            request.fields["h"] = "7"
        answer = await wire.ask(request)
        assert (answer.code, answer.form, answer.fields["queueOffset"]) == (0, form, "0")
        (message,) = decode_messages((await wire.ask(pull_request())).body, "b")
        assert (message.body, message.flag, message.born_timestamp_ms) == (b"body", 7, 1)
        assert message.message_id == f"7F0000010000{5:020X}"

    play(tmp_path, act)


def test_a_send_with_numbers_as_json_numbers_is_taken(tmp_path: Path) -> None:
    """As Node and C++ write them, without a unique key."""

    async def act(broker: Broker, wire: Wire) -> None:
        fields = {
            "a": "g",
            "b": "T",
            "c": "TBW102",
            "d": 4,
            "e": 0,
            "f": 0,
            "g": 1,
            "h": 0,
            "i": "",
            "k": False,
            "m": False,
            "n": None,
        }
        head = {"code": 310, "language": "JAVA", "version": 121, "opaque": 3, "flag": 0, "extFields": fields}
        header = json.dumps(head).encode()
        wire.send((4 + len(header) + 2).to_bytes(4, "big") + len(header).to_bytes(4, "big") + header + b"hi")
        assert (await wire.next()).code == 0
        (message,) = decode_messages((await wire.ask(pull_request())).body, "b")
        assert message.body == b"hi"
        assert len(message.message_id) == 32

    play(tmp_path, act)


def test_the_order_of_a_connection_is_the_order_of_the_queue(tmp_path: Path) -> None:
    """Plain sends and those that need the general path, mixed in one write."""

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 1)
        requests = []
        for number in range(300):
            request = send_request(b"%d" % number, number)
            if number % 7 == 0:
                request.fields["i"] = "TAGS\x01no key\x02"
            if number % 11 == 0:
                request.form = COMPACT
            requests.append(request)
        wire.send(*requests)
        offsets = {}
        for _ in requests:
            answer = await wire.next()
            offsets[answer.opaque] = int(answer.fields["queueOffset"])
        assert offsets == {number: number + 1 for number in range(300)}
        found: list[bytes] = []
        while len(found) < 300:
            found += bodies_of(await wire.ask(pull_request(1 + len(found))))
        assert found == [b"%d" % number for number in range(300)]

    play(tmp_path, act)


def test_a_batch_is_decided_by_its_field_and_not_by_its_code(tmp_path: Path) -> None:
    """ST-11, and the C++ way: 310 with m=true."""

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 1)
        for code in (310, 320):
            answer = await wire.ask(send_request(batch_of(b"a", b"b", b"c"), code=code, batch=True))
            ids = answer.fields["msgId"].split(",")
            assert len(set(ids)) == 3
            assert all(broker.state.store.reader.read_at(parse_offset_id(one)[1]) for one in ids)
        answer = await wire.ask(send_request(b"not a batch", code=320))
        assert answer.fields["queueOffset"] == "7"
        assert bodies_of(await wire.ask(pull_request(1))) == [
            b"a",
            b"b",
            b"c",
            b"a",
            b"b",
            b"c",
            b"not a batch",
        ]

    play(tmp_path, act)


@pytest.mark.parametrize("plain", [True, False])
def test_a_malformed_batch_is_refused_whole(tmp_path: Path, plain: bool) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 1)
        good = batch_of(b"a", b"b")
        form = 0 if plain else COMPACT
        for body in (good[:-1], good + b"x", b"garbage", bytes(40), good[:3]):
            answer = await wire.ask(send_request(body, batch=True, form=form))
            assert answer.code == 13
            assert answer.remark is not None
            assert "batch" in answer.remark
        assert broker.state.store.reader.queue_range("T", 0) == (0, 1)

    play(tmp_path, act)


LONG = "x" * 128


@pytest.mark.parametrize(
    ("changes", "body", "code", "remark"),
    [
        ({}, b"", 13, "no body"),
        ({}, bytes(4 * 1024 * 1024 + 1), 13, "4194305 bytes; maxMessageSize allows 4194304"),
        ({}, bytes(5 * 1024 * 1024), 13, "maxMessageSize"),
        ({"queue_id": 4}, b"x", 29, "queue 4 does not exist"),
        ({"queue_id": 2**31 - 1}, b"x", 29, "does not exist"),
        ({"queue_id": 2**31}, b"x", 29, "32-bit"),
        ({"sys_flag": 2**40}, b"x", 29, "32-bit"),
        ({"topic": "SCHEDULE_TOPIC_XXXX"}, b"x", 16, "the broker's own"),
        ({"topic": "RMQ_SYS_TRANS_HALF_TOPIC"}, b"x", 16, "the broker's own"),
        ({"topic": "SELF_TEST_TOPIC"}, b"x", 16, "the broker's own"),
        ({"topic": "../../etc/passwd"}, b"x", 29, "contains"),
        ({"topic": "a/b"}, b"x", 29, "contains '/'"),
        ({"topic": "a\0b"}, b"x", 29, "contains"),
        ({"topic": "."}, b"x", 29, "contains '.'"),
        ({"topic": "naïve"}, b"x", 29, "contains"),
        ({"topic": " "}, b"x", 29, "blank"),
        ({"topic": ""}, b"x", 29, "blank"),
        ({"topic": LONG}, b"x", 29, "128 characters long; 127 are allowed"),
        ({"topic": "New", "default_topic": "Unknown"}, b"x", 17, "does not exist"),
        ({"properties": "TIMER_DELAY_SEC\x01soon\x02"}, b"x", 13, "TIMER_DELAY_SEC"),
        ({"topic": "rmq_sys_wheel_timer"}, b"x", 16, "the broker's own"),
        ({"batch": True}, batch_of(b"a", TIMER_DELAY_SEC="3"), 13, "TIMER_DELAY_SEC"),
        ({"properties": "TRAN_MSG\x01true\x02"}, b"x", 13, "transactional"),
        # As the original reads it, Boolean.parseBoolean, and whatever else the message says.
        ({"properties": "TRAN_MSG\x01TRUE\x02"}, b"x", 13, "transactional"),
        ({"properties": "TRAN_MSG\x01false\x02TRAN_MSG\x01tRuE"}, b"x", 13, "transactional"),
        ({"properties": "TRAN_MSG\x01True\x02", "reconsume_times": 3}, b"x", 13, "transactional"),
        ({"properties": "TRAN_MSG\x01TRUE\x02", "batch": True}, batch_of(b"a"), 13, "transactional"),
        ({"batch": True}, batch_of(b"a", TRAN_MSG="TRUE"), 13, "transactional"),
        ({"sys_flag": 4}, b"x", 13, "transactional"),
        ({"sys_flag": 12}, b"x", 13, "transactional"),
        ({"sys_flag": 0x80}, b"x", 13, "batches"),
        ({"properties": "K\x01" + "v" * 32767}, b"x", 13, "properties have"),
        ({"properties": "K\x01" + "v" * 199_998}, b"x", 13, "properties have 200000 characters"),
        ({"batch": True, "properties": "DELAY\x013\x02"}, batch_of(b"a"), 13, "DELAY"),
        ({"batch": True}, batch_of(b"a", DELAY="3"), 13, "DELAY"),
        ({"batch": True, "topic": "%RETRY%g"}, batch_of(b"a"), 13, "retry topic"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, dict | int) else "",
)
def test_what_cannot_be_stored_is_refused_with_its_code_and_words(
    tmp_path: Path, changes: dict[str, Any], body: bytes, code: int, remark: str
) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 1)
        end = broker.state.store.log.end
        answer = await wire.ask(send_request(body, 9, **changes))
        assert (answer.code, answer.opaque) == (code, 9)
        assert remark in (answer.remark or "")
        assert broker.state.store.log.end == end
        assert (await wire.ask(send_request(b"next"))).code == 0

    play(tmp_path, act)


@pytest.mark.parametrize("value", ["false", "yes", "1", "ttrue", "true "])
def test_what_the_original_takes_for_no_half_message_is_stored(tmp_path: Path, value: str) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 1)
        assert (await wire.ask(send_request(properties=properties_of(TRAN_MSG=value)))).code == 0
        batch = batch_of(b"a", TRAN_MSG=value)
        assert (await wire.ask(send_request(batch, batch=True))).code == 0
        assert broker.state.store.reader.queue_range("T", 0) == (0, 3)

    play(tmp_path, act)


def test_no_hostile_name_becomes_a_path(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        for name in ("../../../../tmp/evil", "..", "a/../../b", "/abs", "x" * 5000):
            await wire.ask(send_request(topic=name))
        assert {path.name for path in (tmp_path / "store" / "consumequeue").iterdir()} <= {"T"}

    play(tmp_path / "store", act)
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_bodies_up_to_the_limit_are_stored_whole(tmp_path: Path) -> None:
    """ST-10; a large plain send is followed by others on the same connection."""

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 1)
        body = bytes(range(256)) * (4 * 1024 * 1024 // 256)
        wire.send(send_request(body, 1), send_request(b"small", 2), send_request(body[:300_000], 3))
        assert [(await wire.next()).code for _ in range(3)] == [0, 0, 0]
        assert bodies_of(await wire.ask(pull_request(1))) == [body]
        assert bodies_of(await wire.ask(pull_request(2)))[0] == b"small"

    play(tmp_path, act, {"mappedFileSizeCommitLog": str(8 * 1024 * 1024)})


def test_one_way_sends_are_stored_and_never_answered(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 1)
        wire.send(
            send_request(b"plain", 1, flag=2),
            send_request(b"general", 2, flag=2, properties="TAGS\x01A\x02"),
            send_request(b"", 3, flag=2),
            send_request(b"x", 4, flag=2, queue_id=99),
            send_request(b"batch?", 5, flag=2, batch=True),
            send_request(b"new topic", 6, flag=2, topic="Other"),
        )
        answer = await wire.ask(pull_request(1, 77))
        assert answer.opaque == 77
        assert bodies_of(answer) == [b"plain", b"general"]

    play(tmp_path, act)


def test_a_broker_chooses_among_the_write_queues_when_it_is_asked_to(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        broker.state.topics.put(TopicConfig("Wide", read_queues=8, write_queues=3))
        chosen = {
            (await wire.ask(send_request(topic="Wide", queue_id=-1))).fields["queueId"] for _ in range(12)
        }
        assert chosen == {"0", "1", "2"}
        answer = await wire.ask(send_request(topic="Wide", queue_id=-1, properties="TAGS\x01A\x02"))
        assert answer.fields["queueId"] in chosen
        assert (await wire.ask(send_request(topic="Wide", queue_id=7))).code == 0  # between write and read
        assert (await wire.ask(send_request(topic="Wide", queue_id=8))).code == 29

    play(tmp_path, act)


def test_a_topic_without_queues_to_write_to_costs_an_answer_and_no_more(tmp_path: Path) -> None:
    """The original's tables may hold one; a division by its number of queues would end the process."""

    async def act(broker: Broker, wire: Wire) -> None:
        broker.state.topics._topics["None"] = TopicConfig("None", read_queues=0, write_queues=0)
        broker.state.topics._topics["Read"] = TopicConfig("Read", read_queues=4, write_queues=0)
        for topic in ("None", "Read"):
            for queue_id in (-1, 0, 5):
                await wire.ask(send_request(topic=topic, queue_id=queue_id))
        assert (await wire.ask(send_request())).code == 0

    play(tmp_path, act)


def test_an_unknown_topic_is_made_from_the_default_topic(tmp_path: Path) -> None:
    """TP-01."""

    async def act(broker: Broker, wire: Wire) -> None:
        assert (await wire.ask(send_request(topic="New"))).code == 0
        assert (await wire.ask(send_request(topic="Many", default_topic_queues=100))).code == 0
        new, many = broker.state.topics.require("New"), broker.state.topics.require("Many")
        assert (new.read_queues, new.write_queues, new.perm) == (4, 4, 6)
        assert many.write_queues == 8  # no more than the default topic has

    play(tmp_path, act)


def test_without_automatic_creation_an_unknown_topic_is_refused(tmp_path: Path) -> None:
    """TP-01, second half."""

    async def act(broker: Broker, wire: Wire) -> None:
        answer = await wire.ask(send_request(topic="New"))
        assert answer.code == 17
        assert "New" in (answer.remark or "")
        assert "New" not in broker.state.topics

    play(tmp_path, act, {"autoCreateTopicEnable": "false"})


def test_a_drained_broker_still_takes_what_comes_but_for_ordered_topics(tmp_path: Path) -> None:
    """As the original does: producers leave when their route says so, and nothing fails in between."""

    async def act(broker: Broker, wire: Wire) -> None:
        broker.state.topics.put(TopicConfig("Ordered", 4, 4, order=True))
        await fill(wire, 1)
        await fill(wire, 1, topic="Ordered")
        broker.state.settings.change({"brokerPermission": "4"})
        assert (await wire.ask(send_request())).code == 0
        answer = await wire.ask(send_request(topic="Ordered"))
        assert answer.code == 16
        assert "takes no messages now" in (answer.remark or "")
        broker.state.settings.change({"brokerPermission": "6"})
        assert (await wire.ask(send_request(topic="Ordered"))).code == 0

    play(tmp_path, act)


def test_a_full_disk_is_said_and_ends_by_itself(tmp_path: Path) -> None:
    disk = WatchedDisk()

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 20, body=bytes(40_000))
        disk.full = True
        assert (await wire.ask(send_request(bytes(40_000)))).code in (0, 14)
        await eventually(lambda: broker.state.store._refusal)  # entries are written some milliseconds later
        refused = await wire.ask(send_request(bytes(40_000)))
        assert refused.code == 14
        assert "No space left" in (refused.remark or "")
        assert (await wire.ask(pull_request(0))).code == 0  # reads go on
        disk.full = False
        broker._behind._begin()
        assert (await wire.ask(send_request(b"after"))).code == 0

    play(tmp_path, act, disk=disk)


def test_nothing_is_lost_over_a_restart(tmp_path: Path) -> None:
    async def first(broker: Broker, wire: Wire) -> None:
        await fill(wire, 700, body=bytes(3000))

    async def second(broker: Broker, wire: Wire) -> None:
        assert broker.state.store.reader.queue_range("T", 0) == (0, 700)
        assert (await wire.ask(send_request())).fields["queueOffset"] == "700"

    play(tmp_path, first)
    play(tmp_path, second)


def test_many_connections_at_once_leave_no_gap_and_no_overlap(tmp_path: Path) -> None:
    """ST-14."""

    async def act(broker: Broker, wire: Wire) -> None:
        wires = [await connect(broker) for _ in range(20)]
        await asyncio.gather(*(fill(one, 100) for one in wires))
        assert broker.state.store.reader.queue_range("T", 0) == (0, 2000)
        seen: list[int] = []
        while len(seen) < 2000:
            answer = await wire.ask(pull_request(len(seen)))
            seen += [message.queue_offset for message in decode_messages(answer.body, "b")]
        assert seen == list(range(2000))

    play(tmp_path, act)


def test_a_client_gone_in_the_middle_of_a_frame_disturbs_nobody(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 1)
        other = await connect(broker)
        frame = encode_frame(send_request(b"x" * 1000))
        other.send(frame + frame[:500])
        await other.next()
        other.close()
        await eventually(lambda: broker.state.store.reader.queue_range("T", 0) == (0, 2))
        assert (await wire.ask(send_request())).code == 0

    play(tmp_path, act)


def test_an_unknown_request_is_answered_with_its_number(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        answer = await wire.ask(Command(9999, opaque=4))
        assert (answer.code, answer.opaque) == (3, 4)
        assert "9999" in (answer.remark or "")

    play(tmp_path, act)


def test_messages_are_counted_one_by_one_also_those_of_a_batch(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await wire.ask(send_request(b"creates the topic"))
        await wire.ask(send_request(batch_of(b"a", b"b", b"c"), batch=True))
        await wire.ask(send_request(b"one"))
        assert broker.state.store.messages_appended == 5

    play(tmp_path, act)
