"""What any broker may have stored can be given back, given up or passed over: no message stops a queue for good."""

import logging
from typing import Any

import pytest
import zstandard

from bolide.aio import MessageQueue
from bolide.client import returns
from bolide.client.returns import Returns
from bolide.machines import consumer as machine
from bolide.machines import orderly as ordered
from bolide.model.message import PROPERTIES_BYTES_MAX, SysFlag
from bolide.model.numbers import INT32_MAX, INT32_MIN
from bolide.model.pairs import parse_properties
from bolide.record.compress import unpack_body
from bolide.wire.codes import ResponseCode
from tests.unit.client.consuming import Collector, consumer_of, on_cluster
from tests.unit.client.scripted import Cluster, wait_for


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bolide.client.orderly.SUSPEND_MS", 30)
    monkeypatch.setattr(machine, "RETRY_PAUSE_MS", 50)
    monkeypatch.setattr(ordered, "RETRY_PAUSE_MS", 50)


def test_a_message_that_counts_less_than_no_retry_asks_for_the_delay_of_a_first_one() -> None:
    """Apache's brokers add the count to the first level, and would bring it again at once."""

    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        collector.fail_on[b"x"] = 1
        broker.store("orders", 0, b"x", times=INT32_MIN)
        async with await consumer_of(c, collector, start_from="first"):
            await wait_for(lambda: broker.sent_back, "the message sent back")
        assert broker.sent_back[0].delay_level == 3

    on_cluster(scenario)


@pytest.mark.parametrize("times", [INT32_MAX, INT32_MAX - 1])
def test_a_message_with_the_largest_count_comes_again_to_an_orderly_listener_without_a_limit(
    times: int,
) -> None:
    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        collector.fail_on[b"x"] = 3
        broker.store("orders", 0, b"x", times=times)
        broker.store("orders", 0, b"behind")
        async with await consumer_of(c, collector, orderly=True, start_from="first"):
            await wait_for(lambda: collector.bodies == [b"x", b"behind"], "both")
        assert (broker.sent_back, broker.sends) == ([], [])
        assert collector.messages[0].reconsume_times == INT32_MAX

    on_cluster(scenario)


@pytest.mark.parametrize(
    ("way", "options"),
    [("give_up", {"orderly": True, "attempts_max": 0}), ("give_back", {"attempts_max": 5})],
)
def test_messages_come_again_after_an_error_that_nobody_has_foreseen(
    way: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def surprise(*_: object) -> bool:
        raise ZeroDivisionError("nobody has thought of it")

    monkeypatch.setattr(Returns, way, surprise)

    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        collector.fail_on[b"x"] = 2
        broker.store("orders", 0, b"x")
        broker.store("orders", 0, b"behind")
        async with await consumer_of(c, collector, start_from="first", **options):
            await wait_for(lambda: sorted(collector.bodies) == [b"behind", b"x"], "both")
        assert max(message.reconsume_times for message in collector.messages) == 2
        assert broker.offsets["g", "orders", 0] == 2

    on_cluster(scenario)
    told = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert len(told) == 2, "once for each"
    assert "orders" in told[0].message
    assert told[0].exc_info is not None


def test_what_its_broker_does_not_bury_goes_to_the_retry_topic_as_a_copy_that_is_dead() -> None:
    """OR-05."""

    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        broker.refusals = 1
        collector.fail_on[b"1"] = 3
        for number in range(3):
            broker.store("orders", 0, b"%d" % number, b"UNIQ_KEY\x01%d\x02" % number)
        async with await consumer_of(c, collector, orderly=True, start_from="first", attempts_max=2):
            await wait_for(lambda: len(collector.bodies) == 3, "the copy too")
        assert collector.bodies[:2] == [b"0", b"2"]
        (sent,) = broker.sends
        assert (sent.topic, sent.reconsume_times, sent.max_reconsume_times) == ("%RETRY%g", 3, 2)
        properties = parse_properties(sent.properties)
        assert (properties["RETRY_TOPIC"], properties.get("DELAY")) == ("orders", None)
        assert broker.offsets["g", "orders", 0] == 3

    on_cluster(scenario)


@pytest.mark.parametrize("options", [{}, {"orderly": True, "attempts_max": 0}])
@pytest.mark.parametrize(
    ("stored", "told"),
    [(b"a\x01b\x01c\x02", {"a": "b\x01c"}), (b"a\x01" + b"\xff" * 3 + b"\x02", {"a": "\ufffd" * 3})],
)
def test_a_copy_has_the_properties_as_they_were_read_whatever_they_are(
    stored: bytes, told: dict[str, str], options: dict[str, Any]
) -> None:
    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        broker.refusals = 1
        collector.fail_on[b"x"] = 1
        broker.store("orders", 0, b"x", stored)
        async with await consumer_of(c, collector, start_from="first", **options):
            await wait_for(lambda: broker.sends, "the copy")
        assert told.items() <= parse_properties(broker.sends[0].properties).items()

    on_cluster(scenario)


@pytest.mark.parametrize("value", [b"x" * 32_700, b"\xff" * 20_000])
def test_a_copy_that_has_no_room_for_what_a_broker_writes_goes_without_its_longest_property(
    value: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        broker.refusals = 1
        broker.answers = [ResponseCode.MESSAGE_ILLEGAL]
        collector.fail_on[b"x"] = 1
        broker.store("orders", 0, b"x", b"mine\x01kept\x02a\x01" + value + b"\x02")
        async with await consumer_of(c, collector, start_from="first"):
            await wait_for(lambda: collector.bodies == [b"x"], "the copy comes")
        whole, shorter = (parse_properties(one.properties) for one in broker.sends)
        assert "BOLIDE_LEFT_OUT" not in whole
        assert whole.keys() - shorter.keys() == {"a"}
        assert shorter["BOLIDE_LEFT_OUT"].startswith("a ")
        assert len(broker.sends[1].properties.encode()) < PROPERTIES_BYTES_MAX

    on_cluster(scenario)
    assert "without a " in caplog.text


@pytest.mark.parametrize("size", [10_000, 100_000], ids=["on the loop", "in a thread"])
@pytest.mark.parametrize("packed", [True, False])
def test_a_copy_has_the_body_packed_as_it_came(packed: bool, size: int) -> None:
    body = b"body" * (size // 4)
    stored = zstandard.ZstdCompressor().compress(body) if packed else body
    flags = int(SysFlag.COMPRESSED | SysFlag.COMPRESSION_ZSTD) if packed else 0

    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        broker.refusals = 1
        collector.fail_on[body] = 1
        broker.store("orders", 0, stored, sys_flag=flags)
        async with await consumer_of(c, collector, start_from="first"):
            await wait_for(lambda: collector.bodies == [body], "the copy comes")
        assert broker.sends[0].sys_flag == flags
        assert unpack_body(broker.bodies[0], flags) == body
        assert (len(broker.bodies[0]) < len(body)) == packed

    on_cluster(scenario)


FOR_GOOD = [
    (ResponseCode.MESSAGE_ILLEGAL, ""),
    (ResponseCode.SYSTEM_ERROR, "PROPERTIES_SIZE_EXCEEDED"),  # Apache's
    (ResponseCode.SYSTEM_ERROR, "look message by offset failed, 0"),
]


@pytest.mark.parametrize("orderly", [True, False])
@pytest.mark.parametrize("refusal", FOR_GOOD)
@pytest.mark.parametrize("is_too_large", [False, True])
def test_a_message_that_nobody_will_ever_take_is_passed_over_after_its_last_attempt(
    orderly: bool,
    refusal: tuple[int, str],
    is_too_large: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if is_too_large:
        monkeypatch.setattr(returns, "COPY_BYTES_MAX", 2)

    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        broker.refusals, broker.refusal = 1000, refusal
        broker.answers = [ResponseCode.MESSAGE_ILLEGAL] * 1000
        collector.fail_on[b"bad"] = 1000
        broker.store("orders", 2, b"0")
        broker.store("orders", 2, b"bad", b"UNIQ_KEY\x01THE-ID\x02")
        broker.store("orders", 2, b"2")
        options = {"orderly": orderly, "start_from": "first", "attempts_max": 2}
        async with await consumer_of(c, collector, **options) as consumer:
            (held,) = [
                one for one in consumer._assignment.held if one.queue == MessageQueue("orders", "broker-0", 2)
            ]
            await wait_for(lambda: held.commit_offset == 3, "it is passed")
        assert collector.bodies == [b"0", b"2"]
        assert 1000 - collector.fail_on[b"bad"] == 3, "all its attempts"
        assert bool(broker.sends) != is_too_large, (
            "a frame that is too large costs all who read their connection"
        )
        assert broker.offsets["g", "orders", 2] == 3

    on_cluster(scenario)
    (told,) = [one.message for one in caplog.records if one.levelno == logging.ERROR]
    assert all(word in told for word in ("THE-ID", "orders", "offset 1", "passed over"))
    assert not [one.message for one in caplog.records if "dead letters now" in one.message]


@pytest.mark.parametrize("orderly", [True, False])
@pytest.mark.parametrize(
    "refusal", [(ResponseCode.SYSTEM_ERROR, "OS_PAGE_CACHE_BUSY"), (ResponseCode.NO_PERMISSION, "not now")]
)
def test_a_message_that_a_broker_may_take_later_is_not_passed_over(
    orderly: bool, refusal: tuple[int, str], caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        broker.refusals, broker.refusal = 4, refusal
        broker.answers = [ResponseCode.MESSAGE_ILLEGAL] * 1000
        collector.fail_on[b"bad"] = 1000
        broker.store("orders", 0, b"bad")
        options = {"orderly": orderly, "start_from": "first", "attempts_max": 0}
        async with await consumer_of(c, collector, **options):
            await wait_for(lambda: broker.sent_back, "it is taken")
        assert 1000 - collector.fail_on[b"bad"] == 5

    on_cluster(scenario)
    assert not [one for one in caplog.records if one.levelno == logging.ERROR]
