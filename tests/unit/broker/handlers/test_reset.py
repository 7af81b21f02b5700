"""Groups that are moved: to a time, to an offset, to where another group is."""

import asyncio
import logging
import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from bolide.broker.handlers import reset as reset_module
from bolide.model import java_json, names
from bolide.model.errors import (
    ConsumerNotOnline,
    GroupNotFound,
    InvalidRequest,
    PermissionDenied,
    RequestError,
    TooBusy,
    TopicNotFound,
)
from bolide.model.numbers import INT64_MAX
from bolide.model.topic import GroupConfig, Subscription
from bolide.wire.bodies.group import ConsumerData, HeartbeatData
from bolide.wire.bodies.queue import queue_from_key
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from tests.unit.broker.handlers.desk import Desk
from tests.unit.broker.handlers.test_large import ask_counting
from tests.unit.net.stage import eventually
from tests.unit.net.turns import counted_by_turn


@pytest.fixture
def orders(desk: Desk) -> Desk:
    """Two queues, ten messages in the first one, a second apart; a group that has consumed them all."""
    desk.topic("orders", 2)
    for _ in range(10):
        desk.write("orders", 0)
        desk.clock.ms += 1_000
    desk.groups.put(GroupConfig("billing"))
    desk.ask(15, consumerGroup="billing", topic="orders", queueId=0, commitOffset=10)
    return desk


def reset(desk: Desk, **fields: object) -> dict[int, int]:
    asked: dict[str, Any] = {"topic": "orders", "group": "billing", "timestamp": 0, "isForce": True}
    answer = desk.ask(222, **{**asked, **fields})
    return offsets_in(answer.body)


def offsets_in(body: bytes) -> dict[int, int]:
    """By queue, of the answer to 222 or the body of 220."""
    told = java_json.loads(body, dialect_length_max=None)["offsetTable"]
    return {queue_from_key(key).queue_id: at for key, at in told.items()}


def offset(desk: Desk, queue_id: int = 0) -> int | None:
    return desk.offsets.query("billing", "orders", queue_id)


def join(desk: Desk, link: str = "10.0.0.7:4000", client_id: str = "one") -> None:
    consumer = ConsumerData("billing", subscriptions=(Subscription("orders", "*"),))
    desk.ask(34, HeartbeatData(client_id, consumers=(consumer,)).encode(), by=link)


def pull(desk: Desk, at: int, **fields: object) -> tuple[int, int, str]:
    asked: dict[str, Any] = {"consumerGroup": "billing", "topic": "orders", "queueId": 0, "queueOffset": at}
    asked |= {"maxMsgNums": 32}
    asked |= {
        "sysFlag": 4,
        "commitOffset": 0,
        "suspendTimeoutMillis": 0,
        "subscription": "*",
        "subVersion": 0,
    }
    answer = desk.ask(11, **{**asked, **fields})
    return answer.code, int(answer.fields["nextBeginOffset"]), answer.remark or ""


def test_a_group_goes_on_at_the_first_message_of_a_time(orders: Desk) -> None:
    """AD-03"""
    assert reset(orders, timestamp=orders.clock.ms - 3_000) == {0: 7, 1: 0}
    assert (offset(orders, 0), offset(orders, 1)) == (7, 0)


def test_the_time_minus_one_is_the_end(orders: Desk) -> None:
    reset(orders)
    assert offset(orders) == 0
    assert reset(orders, timestamp=-1) == {0: 10, 1: 0}
    assert offset(orders) == 10


def test_one_queue_can_be_moved_to_an_offset(orders: Desk) -> None:
    assert reset(orders, queueId=0, offset=4) == {0: 4}
    assert offset(orders) == 4


@pytest.mark.parametrize("wrong", [11, -2])
def test_an_offset_that_the_queue_does_not_have_moves_nothing(orders: Desk, wrong: int) -> None:
    with pytest.raises(RequestError, match="0 to 10"):
        reset(orders, queueId=0, offset=wrong)
    assert offset(orders) == 10


def test_a_queue_below_the_one_that_stands_for_all_moves_nothing(orders: Desk) -> None:
    with pytest.raises(InvalidRequest, match="queueId is -7: a queue, or -1 for all"):
        reset(orders, queueId=-7)
    assert offset(orders) == 10
    assert reset(orders, queueId=-1) == {0: 0, 1: 0}


def test_a_queue_a_topic_and_a_group_have_to_exist(orders: Desk) -> None:
    with pytest.raises(InvalidRequest, match="no queue 2"):
        reset(orders, queueId=2)
    with pytest.raises(TopicNotFound):
        reset(orders, topic="nowhere")
    with pytest.raises(GroupNotFound):
        reset(orders, group="nobody")


def test_a_member_that_pulls_elsewhere_is_sent_to_the_new_offset_once(orders: Desk) -> None:
    """AD-03: OFFSET_RESET is code 21 with the next offset; what it commits before that does not count."""
    join(orders)
    reset(orders, timestamp=orders.clock.ms - 3_000)
    orders.ask(15, consumerGroup="billing", topic="orders", queueId=0, commitOffset=10)
    assert offset(orders) == 7
    assert pull(orders, 10) == (21, 7, "OFFSET_RESET")
    assert pull(orders, 7)[:2] == (0, 10)
    orders.ask(15, consumerGroup="billing", topic="orders", queueId=0, commitOffset=10)
    assert offset(orders) == 10


def test_a_member_that_is_there_already_gets_its_messages(orders: Desk) -> None:
    join(orders)
    reset(orders, queueId=0, offset=7)
    assert pull(orders, 7)[:2] == (0, 10)
    assert pull(orders, 10)[0] == 19, "and no second time sent there"


def test_a_group_without_members_begins_at_its_new_offset_without_a_detour(orders: Desk) -> None:
    reset(orders, queueId=0, offset=7)
    join(orders)
    assert pull(orders, 7)[:2] == (0, 10)
    orders.ask(15, consumerGroup="billing", topic="orders", queueId=0, commitOffset=10)
    assert offset(orders) == 10


def test_a_new_reset_takes_the_place_of_one_that_nobody_has_heard_of(orders: Desk) -> None:
    join(orders)
    reset(orders, queueId=0, offset=7)
    reset(orders, queueId=0, offset=2)
    assert pull(orders, 10) == (21, 2, "OFFSET_RESET")


def test_an_offset_that_is_set_when_all_members_are_gone_counts_though_none_has_heard_of_a_reset(
    orders: Desk,
) -> None:
    join(orders)
    reset(orders, queueId=0, offset=2)
    orders.ask(15, consumerGroup="billing", topic="orders", queueId=0, commitOffset=10)
    assert offset(orders) == 2, "a member's"
    orders.lose("10.0.0.7:4000")
    orders.ask(15, consumerGroup="billing", topic="orders", queueId=0, commitOffset=7)
    assert offset(orders) == 7
    join(orders)
    assert pull(orders, 7)[:2] == (0, 10), "and nobody is sent to where the reset was"


def test_without_the_broker_s_own_reset_members_are_told(
    orders: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """220, as in 4.x: the offsets as a map, to C++ clients as a list; the broker stores nothing."""
    orders.change(useServerSideResetOffset="false")
    with pytest.raises(ConsumerNotOnline, match="useServerSideResetOffset"):
        reset(orders)
    join(orders)
    told: list[Command] = []
    monkeypatch.setattr(orders.link("10.0.0.7:4000"), "notify", told.append)
    assert reset(orders, timestamp=orders.clock.ms - 3_000) == {0: 7, 1: 0}
    assert offset(orders) == 10
    (command,) = (one for one in told if one.code == 220)
    assert offsets_in(command.body) == {0: 7, 1: 0}


def _heard(told: list[str], client_id: str, command: Command) -> None:
    if command.code == RequestCode.RESET_CONSUMER_CLIENT_OFFSET:  # and not that there are other members now
        told.append(client_id)


def test_no_member_is_told_while_one_would_not_hear_it_and_undo_the_move(
    orders: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.change(useServerSideResetOffset="false")
    told: list[str] = []
    for link, client_id in (("10.0.0.7:4000", "one"), ("10.0.0.8:4000", "two")):
        join(orders, link, client_id)
        heard = partial(_heard, told, client_id)
        monkeypatch.setattr(orders.link(link), "notify", heard)
    orders.link("10.0.0.8:4000").is_congested = True
    with pytest.raises(TooBusy, match=r"1 of 2 members .* none was told: .*\(two\)"):
        reset(orders)
    assert told == []
    orders.link("10.0.0.8:4000").is_congested = False
    reset(orders)
    assert told == ["one", "two"]


def test_unless_forced_members_are_never_told_to_skip(orders: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    orders.change(useServerSideResetOffset="false")
    join(orders)
    monkeypatch.setattr(orders.link("10.0.0.7:4000"), "notify", lambda command: None)
    orders.ask(15, consumerGroup="billing", topic="orders", queueId=0, commitOffset=3)
    assert reset(orders, timestamp=-1, isForce=False)[0] == 3
    assert reset(orders, timestamp=-1, isForce=True)[0] == 10


def test_a_group_gets_the_offsets_of_another_one(orders: Desk) -> None:
    orders.groups.put(GroupConfig("copy"))
    assert orders.ask(314, srcGroup="billing", destGroup="copy", topic="orders", offline=True).code == 0
    assert orders.offsets.query("copy", "orders", 0) == 10
    with pytest.raises(GroupNotFound, match="nobody"):
        orders.ask(314, srcGroup="billing", destGroup="nobody", topic="orders", offline=True)


def test_topics_that_an_online_group_does_not_read_are_not_cloned(orders: Desk) -> None:
    orders.topic("other", 1)
    orders.write("other", 0, 3)
    orders.ask(15, consumerGroup="billing", topic="other", queueId=0, commitOffset=3)
    orders.groups.put(GroupConfig("copy"))
    join(orders)
    orders.ask(314, srcGroup="billing", destGroup="copy", offline=False)
    assert orders.offsets.query("copy", "orders", 0) == 10
    assert orders.offsets.query("copy", "other", 0) is None


def test_correction_offsets_are_the_least_of_all_groups_but_those_filtered(orders: Desk) -> None:
    for group, at in (("slow", 2), ("slower", 1), ("fast", 9)):
        orders.groups.put(GroupConfig(group))
        orders.ask(15, consumerGroup=group, topic="orders", queueId=0, commitOffset=at)

    def least(compare: str, filtered: str = "") -> int:
        body = orders.ask(308, topic="orders", compareGroup=compare, filterGroups=filtered).body
        return int(java_json.loads(body)["correctionOffsets"]["0"])

    assert least("fast") == 1
    assert least("fast", "slower") == 2
    assert least("slower", "slower") == INT64_MAX, "it is behind all others"


def test_no_request_moves_the_offsets_of_the_broker_s_own_group(orders: Desk) -> None:
    own, half = names.TRANSACTIONS_GROUP, names.HALF_TOPIC
    orders.groups.find(own, auto_create=True)
    orders.offsets.commit(own, half, 0, 3, 3)
    with pytest.raises(PermissionDenied, match="half messages"):
        reset(orders, group=own, topic=half, timestamp=-1)
    with pytest.raises(PermissionDenied, match="half messages"):
        orders.ask(314, srcGroup="billing", destGroup=own, topic="", offline=True)
    with pytest.raises(PermissionDenied, match="half messages"):
        orders.ask(15, consumerGroup=own, topic=half, queueId=0, commitOffset=0)
    with pytest.raises(PermissionDenied, match="broker's own"):
        orders.ask(207, groupName=own, cleanOffset=True)
    assert orders.offsets.offsets_of(own, half) == {0: 3}
    assert orders.offsets.offsets_of(own, "orders") == {}


def test_offsets_that_were_cloned_are_in_the_file_when_the_answer_comes(orders: Desk) -> None:
    orders.groups.put(GroupConfig("audit"))
    orders.ask(314, srcGroup="billing", destGroup="audit", topic="orders", offline=True)
    path = Path(orders.config.root) / "config" / "consumerOffset.json"
    assert java_json.loads(path.read_bytes())["offsetTable"]["orders@audit"] == {"0": 10}


WIDE = 3 * reset_module.MOVED_PER_TURN


@pytest.fixture
def wide(orders: Desk) -> Desk:
    """Two topics with many queues, and a group that has committed in each of them."""
    orders.groups.put(GroupConfig("copy"))
    for topic in ("wide", "wider"):
        orders.topic(topic, WIDE)
        for queue_id in range(WIDE):
            orders.offsets.commit("billing", topic, queue_id, 5, 5)
    return orders


def weigh_reset(group: str, topic: str, offsets: Mapping[int, int], **_: object) -> int:
    return len(offsets)


def test_the_queues_of_a_wide_topic_are_reset_a_slice_per_turn(wide: Desk) -> None:
    fields = {"topic": "wide", "group": "billing", "timestamp": -1, "isForce": True}
    answer, moved = ask_counting(wide, wide.offsets, "reset", 222, weigh_reset, **fields)
    assert len(offsets_in(answer.body)) == moved.total == WIDE
    assert moved.most <= reset_module.MOVED_PER_TURN
    assert set(wide.offsets.offsets_of("billing", "wide").values()) == {0}


def test_the_offsets_of_all_topics_are_cloned_a_slice_per_turn(wide: Desk) -> None:
    fields = {"srcGroup": "billing", "destGroup": "copy", "offline": True}
    answer, moved = ask_counting(wide, wide.offsets, "reset", 314, weigh_reset, **fields)
    assert answer.code == 0
    assert moved.total == 2 * WIDE + 1
    assert moved.most <= reset_module.MOVED_PER_TURN
    for topic in ("wide", "wider", "orders"):
        assert wide.offsets.offsets_of("copy", topic) == wide.offsets.offsets_of("billing", topic)


def test_moves_that_come_together_are_made_one_after_the_other(wide: Desk) -> None:
    """Or a group would be at some offsets of one of them, and at some of the other."""
    wide.groups.put(GroupConfig("other"))
    for queue_id in range(WIDE):
        wide.offsets.commit("other", "wide", queue_id, 3, 3)

    async def main() -> int:
        with counted_by_turn(wide.offsets, "reset", weigh_reset) as moved:
            clones = (
                wide.asked(314, srcGroup=source, destGroup="copy", topic="wide", offline=True)
                for source in ("billing", "other", "billing", "other")
            )
            await asyncio.gather(*clones)
        return moved.most

    assert wide.run(main()) <= reset_module.MOVED_PER_TURN
    assert len(set(wide.offsets.offsets_of("copy", "wide").values())) == 1


def test_resets_that_come_together_share_a_save(orders: Desk) -> None:
    """Writing the table takes as long as the table is large, and each waits for it."""

    all_have_come = threading.Event()
    save = orders.offsets.file.save

    def slow_save(*words: Any) -> Any:
        assert all_have_come.wait(60)
        return save(*words)

    async def main() -> int:
        with (
            mock.patch.object(orders.offsets.file, "save", slow_save),
            counted_by_turn(orders.offsets.file, "save") as saves,
            counted_by_turn(orders.state.files, "saved") as waiting,
        ):
            resets = [
                asyncio.ensure_future(
                    orders.asked(222, topic="orders", group="billing", timestamp=-1, isForce=True)
                )
                for _ in range(40)
            ]
            await eventually(lambda: waiting.total == 40)
            all_have_come.set()
            await asyncio.gather(*resets)
        return saves.total

    assert orders.run(main()) <= 2, "one that was being written, one for who came meanwhile"


def test_a_group_that_is_deleted_while_it_is_moved_leaves_no_offsets(wide: Desk) -> None:
    async def main() -> None:
        clone = asyncio.create_task(
            wide.asked(314, srcGroup="billing", destGroup="copy", topic="wide", offline=True)
        )
        await eventually(lambda: wide.offsets.has_committed("copy"))
        await wide.asked(207, groupName="copy", cleanOffset=True)
        await clone

    wide.run(main())
    assert not wide.offsets.has_committed("copy")


def test_correction_offsets_are_compared_a_slice_per_turn(
    wide: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reset_module, "COMPARED_PER_TURN", 100)
    fields = {"topic": "wide", "compareGroup": "nobody", "filterGroups": ""}
    answer, compared = ask_counting(wide, reset_module, "_lower", 308, None, **fields)
    told = java_json.loads(answer.body, dialect_length_max=None)["correctionOffsets"]
    assert (len(told), set(told.values())) == (WIDE, {5})
    assert compared.total == WIDE
    assert compared.most <= 100


def test_resets_are_not_a_line_each_in_the_log(orders: Desk, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        for _ in range(5):
            reset(orders)
    assert caplog.text.count("has reset the group") == 1
