"""enabledAppendPropCRC and forceVerifyPropCRC, as clients see them."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bolide.record.checksum import ABSENT, SOUND, record_checksum
from bolide.record.decode import decode_messages
from bolide.wire.command import Command
from tests.unit.broker.stage import batch_of, bodies_of, properties_of, pull_request, send_request, serving
from tests.unit.store.stage import records_of

ON = {"enabledAppendPropCRC": "true"}
OWN = "__CRC32#\x010000000000\x02"
OWN_PAIR: Any = {"__CRC32#": "0000000000"}


def asked(root: Path, settings: Mapping[str, str], *requests: Command) -> list[Command]:
    """Each request's answer, from one broker."""

    async def main() -> list[Command]:
        async with serving(root, settings) as (_, wire):
            return [await wire.ask(request) for request in requests]

    return asyncio.run(main())


@pytest.mark.parametrize(("settings", "state"), [({}, ABSENT), (ON, SOUND)], ids=["off", "on"])
def test_the_setting_seals_what_is_sent_on_every_way_in(
    tmp_path: Path, settings: Mapping[str, str], state: int
) -> None:
    """Plain ones, a batch, and one with a property that only the general path takes."""
    requests = [
        send_request(b"plain", 1, tag="TagA"),
        send_request(batch_of(b"one", b"two"), 2, code=320, batch=True),
        send_request(b"general", 3, properties=properties_of(3) + OWN),
    ]
    *answers, pull = asked(tmp_path, settings, *requests, pull_request(0, 9))
    assert [answer.code for answer in answers] == [0, 0, 0]
    assert bodies_of(pull) == [b"plain", b"one", b"two", b"general"]
    assert [record_checksum(record) for record in records_of(pull.body)] == [state] * 4
    assert decode_messages(pull.body, "broker-a")[0].tags == "TagA"


def test_a_checksum_that_a_client_sends_along_is_not_stored(tmp_path: Path) -> None:
    """A client that forwards a message with all its properties brings the checksum of another record."""
    requests = [
        send_request(b"single", 1, properties=properties_of(1) + OWN),
        send_request(batch_of(b"item", number=2, **OWN_PAIR), 2, code=320, batch=True),
    ]
    pull = asked(tmp_path, {}, *requests, pull_request(0, 9))[-1]
    assert bodies_of(pull) == [b"single", b"item"]
    assert b"__CRC32#" not in pull.body


def test_the_checksum_counts_for_the_limit_of_the_properties(tmp_path: Path) -> None:
    added = len("MSG_REGION\x01DefaultRegion\x02TRACE_ON\x01true\x02CLUSTER\x01DefaultCluster\x02")
    text = properties_of(1).replace("WAIT\x01true\x02", "")
    room = 32767 - added - len(text)
    for settings, used in (({}, 0), (ON, 20)):
        for extra, code in ((0, 0), (1, 13)):
            padding = "K\x01" + "v" * (room - used - 3 + extra) + "\x02"
            (answer,) = asked(tmp_path, settings, send_request(b"x", 1, properties=text + padding))
            assert answer.code == code, answer.remark


def test_where_all_must_have_one_older_messages_are_kept_but_not_handed_out(tmp_path: Path) -> None:
    asked(tmp_path, {}, send_request(b"old", 1))
    strict = ON | {"forceVerifyPropCRC": "true"}
    _, pull = asked(tmp_path, strict, send_request(b"new", 2), pull_request(0, 9))
    assert bodies_of(pull) == [b"new"]
    (pull,) = asked(tmp_path, {}, pull_request(0, 9))
    assert bodies_of(pull) == [b"old", b"new"]
