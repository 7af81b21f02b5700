"""The table of properties, row by row: what a broker does with a send that has one is what its row says."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bolide.model.message import Property
from bolide.model.properties import NOT_STORED, RULES, Rule, Stored
from bolide.record.decode import decode_messages
from tests.unit.broker.stage import batch_of, fill, properties_of, pull_request, send_request, serving

THEIRS = "theirs"
GENERAL_PATH = {"sys_flag": 8}  # committed: not plain, and stored like any other
REFUSED = 13
"""MESSAGE_ILLEGAL."""


def name_of(rule: Rule) -> str:
    return rule.name + "X" if rule.is_family else rule.name


def pair_of(rule: Rule) -> dict[str, Any]:
    return {name_of(rule): value_of(rule)}


def value_of(rule: Rule) -> str:
    return "true" if rule.name == Property.WAIT else THEIRS


@pytest.mark.parametrize("changes", [{}, GENERAL_PATH], ids=["the shortest path", "the general path"])
@pytest.mark.parametrize("rule", RULES, ids=name_of)
def test_what_is_stored_of_a_property_is_what_its_row_says(
    tmp_path: Path, rule: Rule, changes: dict[str, Any]
) -> None:
    async def main() -> None:
        async with serving(tmp_path) as (_, wire):
            await fill(wire, 1)
            sent = properties_of(7, mine="kept", **pair_of(rule))
            answer = await wire.ask(send_request(properties=sent, **changes))
            if rule.schedules:
                assert (answer.code, rule.name in (answer.remark or "")) == (REFUSED, True)
                return
            (message,) = decode_messages((await wire.ask(pull_request(1))).body, "b")
            found = message.properties.get(name_of(rule))
            match rule.stored:
                case Stored.AS_IT_CAME:
                    assert found == value_of(rule)
                case Stored.REPLACED:
                    assert found not in (None, THEIRS)
                case Stored.DROPPED:
                    assert found is None
            assert message.properties["mine"] == "kept"

    asyncio.run(main())


@pytest.mark.parametrize("rule", RULES, ids=name_of)
def test_a_message_of_a_batch_is_treated_by_the_same_rows_but_gets_no_pairs_from_the_broker(
    tmp_path: Path, rule: Rule
) -> None:
    async def main() -> None:
        async with serving(tmp_path) as (_, wire):
            await fill(wire, 1)
            batch = batch_of(b"one", **pair_of(rule))
            answer = await wire.ask(send_request(batch, batch=True))
            if rule.schedules:
                assert answer.code == REFUSED
                return
            (message,) = decode_messages((await wire.ask(pull_request(1))).body, "b")
            kept = None if rule.name in NOT_STORED else value_of(rule)
            assert message.properties.get(name_of(rule)) == kept

    asyncio.run(main())


def test_a_transaction_that_nobody_could_end_is_refused(tmp_path: Path) -> None:
    """It does not name its producer group."""

    async def main() -> None:
        async with serving(tmp_path) as (_, wire):
            await fill(wire, 1)
            half = properties_of(TRAN_MSG="true")
            assert (await wire.ask(send_request(properties=half))).code == REFUSED

    asyncio.run(main())
