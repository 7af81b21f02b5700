"""What a broker has stored can be sent back, or buried, however long its properties are."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from bolide.broker.app import Broker
from bolide.model.message import PROPERTIES_BYTES_MAX
from tests.unit.broker.stage import properties_of
from tests.unit.broker.test_retry import _raw, failed, last, play, sent_again, sent_back
from tests.unit.net.stage import Wire


def with_filler(size: int, **pairs: str) -> bytes:
    """Properties of so many bytes, nearly all of them one value."""
    text = properties_of(1, TAGS="red", **pairs, filler="x").encode()
    return text.replace(b"filler\x01x", b"filler\x01" + b"x" * (size - len(text) + 1))


@pytest.mark.parametrize("seals", ["true", "false"])
@pytest.mark.parametrize(("level", "topic"), [(0, "%RETRY%billing"), (-1, "%DLQ%billing")])
def test_a_message_without_room_comes_again_without_its_longest_property_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, level: int, topic: str, seals: str
) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        offset = failed(broker, properties=with_filler(32_740, mine="kept"))
        assert (await wire.ask(sent_back(offset, level))).code == 0
        one = last(broker)
        assert (one.topic, one.body, one.tags) == (topic, b"body", "red")
        assert (one.properties["RETRY_TOPIC"], one.properties["mine"]) == ("orders", "kept")
        assert "filler" not in one.properties
        name, size = one.properties["BOLIDE_LEFT_OUT"].split()
        assert (name, int(size) > 32_000) == ("filler", True)
        assert "BOLIDE_ATTEMPTS" in one.properties
        assert f"7F0000010000{1:020X}" in caplog.text
        assert "filler" in caplog.text

    play(tmp_path, act, {"enabledAppendPropCRC": seals})


def test_a_property_stays_as_long_as_there_is_room_through_all_retries(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        pairs = with_filler(32_500, DELAY="3")
        for times in range(17):
            offset = failed(
                broker, properties=pairs, times=times, topic="orders" if times == 0 else "%RETRY%billing"
            )
            assert (await wire.ask(sent_back(offset))).code == 0
            assert "filler" in last(broker).properties
            pairs = _raw(broker)
        assert last(broker).topic == "%DLQ%billing"

    play(tmp_path, act)


def test_a_message_gives_way_once_and_then_has_room_for_all_its_retries(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        pairs = with_filler(PROPERTIES_BYTES_MAX, other="y" * 15_000)
        for times in range(17):
            offset = failed(
                broker, properties=pairs, times=times, topic="orders" if times == 0 else "%RETRY%billing"
            )
            assert (await wire.ask(sent_back(offset))).code == 0
            kept = last(broker).properties
            assert {"filler", "other"} & kept.keys() == {"other"}
            assert kept["BOLIDE_LEFT_OUT"].startswith("filler 17")
            pairs = _raw(broker)
        assert last(broker).topic == "%DLQ%billing"

    play(tmp_path, act)


@pytest.mark.parametrize(
    "properties",
    [
        b"a\x01" + b"\xff" * 32_700 + b"\x02",
        b"KEYS\x01" + b"k" * 32_700 + b"\x02",
        b"RETRY_TOPIC\x01" + b"k" * 32_700 + b"\x02",
        b"UNIQ_KEY\x01" + b"k" * 32_700 + b"\x02",
        b"x" * 32_767,
        b"a\x01b\x02" * 8_191,
        b"RETRY_TOPIC\x01a\x02" * 2_300,
    ],
)
@pytest.mark.parametrize("level", [0, -1])
def test_whatever_was_stored_is_taken_back(tmp_path: Path, properties: bytes, level: int) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        assert (await wire.ask(sent_back(failed(broker, properties=properties), level))).code == 0
        assert last(broker).body == b"body"

    play(tmp_path, act)


@pytest.mark.parametrize("settings", [{}, {"brokerClusterName": "c" * 120, "regionId": "r" * 250}])
@pytest.mark.parametrize(("times", "topic"), [(1, "%RETRY%billing"), (3, "%DLQ%billing")])
@pytest.mark.parametrize("size", [32_300, 32_500, 32_600, 32_700, PROPERTIES_BYTES_MAX, 40_000])
def test_a_client_that_sends_a_failed_message_itself_is_not_refused_for_its_properties(
    tmp_path: Path, times: int, topic: str, size: int, settings: Mapping[str, str]
) -> None:
    """Apache's ordered consumers know no other way, and try it for ever."""

    async def act(broker: Broker, wire: Wire) -> None:
        request = sent_again(times, 2, pairs={"DELAY": "3", "mine": "kept"})
        text = request.fields["i"]
        long = text + "filler\x01" + "x" * (size - len(text) - 8) + "\x02"
        answer = await wire.ask(replace(request, fields={**request.fields, "i": long}))
        assert answer.code == 0, answer.remark
        one = last(broker)
        assert (one.topic, one.reconsume_times, one.properties["mine"]) == (topic, times, "kept")
        assert ("filler" in one.properties) != ("BOLIDE_LEFT_OUT" in one.properties)
        if size == 32_300 and not settings:
            assert "filler" in one.properties

    play(tmp_path, act, settings)


def test_a_new_message_to_a_retry_topic_is_refused_when_its_properties_are_too_long(tmp_path: Path) -> None:
    """Its sender can be told, and nothing of it is left out."""

    async def act(broker: Broker, wire: Wire) -> None:
        request = sent_again(0, None)
        long = request.fields["i"] + "filler\x01" + "x" * 32_700 + "\x02"
        assert (await wire.ask(replace(request, fields={**request.fields, "i": long}))).code == 13

    play(tmp_path, act)
