"""Many moves of groups at once: who waits costs little, who has gone costs nothing, and nobody crowds others out."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, cast
from unittest import mock

import pytest

from bolide.broker.handlers import reset as reset_module
from bolide.model.errors import TooBusy, TopicNotFound
from bolide.model.limits import LARGE_ANSWERS_MAX, MOVES_MAX
from bolide.model.topic import GroupConfig, Subscription
from bolide.net.budget import Account
from bolide.net.link import Link
from bolide.net.turns import next_turn
from bolide.wire.bodies.group import ConsumerData, HeartbeatData
from bolide.wire.command import Command
from tests.unit.broker.handlers.desk import Desk
from tests.unit.net.stage import eventually
from tests.unit.net.turns import counted_by_turn

WIDE = 3 * reset_module.MOVED_PER_TURN
TOPICS = ("one", "two", "wide")
GREEDY, MODEST = "10.0.0.66:4000", "10.0.0.7:4000"

RESET: dict[str, Any] = {"topic": "wide", "group": "billing", "timestamp": -1, "isForce": True}
CLONE: dict[str, Any] = {"srcGroup": "billing", "destGroup": "copy", "offline": True}


@pytest.fixture
def wide(desk: Desk) -> Desk:
    """A wide topic and two narrow ones, and a group that is at 5 in all their queues."""
    for group in ("billing", "copy"):
        desk.groups.put(GroupConfig(group))
    for topic in TOPICS:
        queues = WIDE if topic == "wide" else 1
        desk.topic(topic, queues)
        for queue_id in range(queues):
            desk.offsets.commit("billing", topic, queue_id, 5, 5)
    return desk


def request(desk: Desk, code: int, by: str, **fields: Any) -> Coroutine[Any, Any, Command | None]:
    """What a request does; it gives None where nothing is answered."""
    texts = {
        name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in fields.items()
    }
    row = desk.broker.registry.find(code)
    assert row is not None
    outcome = row.handler(cast(Link, desk.link(by)), Command(code, texts, language="JAVA", version=493))
    return cast(Coroutine[Any, Any, Command | None], outcome)


def asked(desk: Desk, code: int, by: str, **fields: Any) -> "asyncio.Task[Command | None]":
    return asyncio.create_task(request(desk, code, by, **fields))


@contextmanager
def held_save(desk: Desk) -> Iterator[threading.Event]:
    """The table's file is not written until the event is set."""
    goes_on, save = threading.Event(), desk.offsets.file.save

    def held(*words: Any) -> Any:
        assert goes_on.wait(60)
        return save(*words)

    with mock.patch.object(desk.offsets.file, "save", held):
        try:
            yield goes_on
        finally:
            goes_on.set()


@pytest.mark.parametrize(("code", "fields"), [(222, RESET), (314, CLONE)])
def test_a_move_whose_connection_has_closed_while_it_waited_is_not_made(
    wide: Desk, code: int, fields: dict[str, Any]
) -> None:
    async def main() -> None:
        wide.groups.put(GroupConfig("first"))
        first = asked(wide, 314, MODEST, srcGroup="billing", destGroup="first", offline=True)
        waiting = [asked(wide, code, GREEDY, **fields) for _ in range(20)]
        await next_turn()
        wide.link(GREEDY).close()
        with counted_by_turn(wide.offsets, "reset", lambda group, *_, **__: group != "first") as moved:
            assert await asyncio.gather(*waiting) == [None] * 20
            await first
        assert moved.total == 0

    wide.run(main())


def test_a_clone_that_has_begun_is_whole_though_its_connection_closes(wide: Desk) -> None:
    """A group that goes on elsewhere in some topics, and in others does not, is where nobody wanted it."""

    async def main() -> None:
        clone = asked(wide, 314, MODEST, **CLONE)
        while not wide.offsets.has_committed("copy"):
            await next_turn()
        assert not wide.offsets.offsets_of("copy", "wide")
        wide.link(MODEST).close()
        await clone

    wide.run(main())
    for topic in TOPICS:
        assert wide.offsets.offsets_of("copy", topic) == wide.offsets.offsets_of("billing", topic)


@pytest.mark.parametrize("by_members", [False, True])
def test_resets_that_come_together_look_for_their_offsets_one_after_the_other(
    wide: Desk, by_members: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was found for a wide topic takes a megabyte, and who waits has no more than its request."""
    if by_members:
        wide.change(useServerSideResetOffset="false")
        consumer = ConsumerData("billing", subscriptions=(Subscription("wide", "*"),))
        wide.ask(34, HeartbeatData("one", (), (consumer,)).encode(), by="10.0.0.9:4000")
        monkeypatch.setattr(wide.link("10.0.0.9:4000"), "notify", lambda command: None)

    async def main() -> tuple[int, int]:
        with counted_by_turn(wide.store.reader, "queue_range") as looked:
            await asyncio.gather(*(asked(wide, 222, MODEST, **RESET) for _ in range(8)))
        return looked.total, looked.most

    assert wide.run(main()) == (8 * WIDE, reset_module.QUEUES_PER_TURN)


def test_who_waits_to_clone_a_group_has_no_list_of_its_topics(wide: Desk) -> None:
    async def main() -> tuple[int, int]:
        with counted_by_turn(wide.part(reset_module.Resets), "_topics_of") as listed:
            await asyncio.gather(*(asked(wide, 314, MODEST, **CLONE) for _ in range(8)))
        return listed.total, listed.most

    assert wide.run(main()) == (8, 1)


def test_a_host_makes_so_many_moves_wait_and_no_more_and_others_have_room(wide: Desk) -> None:
    async def main() -> None:
        with held_save(wide) as save:
            greedy = [asked(wide, 314, GREEDY, **CLONE, topic="one") for _ in range(2 * MOVES_MAX)]
            await eventually(lambda: sum(task.done() for task in greedy) > MOVES_MAX)
            refused = [task for task in greedy if task.done()]
            for task in refused:
                with pytest.raises(TooBusy, match=r"wait .* try again"):
                    await task
            modest = [asked(wide, 222, MODEST, **RESET) for _ in range(16)]
            save.set()
            for answer in await asyncio.gather(*(task for task in greedy if task not in refused), *modest):
                assert answer is not None
                assert answer.code == 0
        again = await asked(wide, 314, GREEDY, **CLONE, topic="one")
        assert again is not None, "the places are free again"

    wide.run(main())


def test_a_host_waits_for_one_move_of_another_one_and_not_for_all_of_them(wide: Desk) -> None:
    wide.groups.put(GroupConfig("mine"))
    moved: list[str] = []

    async def main() -> None:
        greedy = [asked(wide, 314, GREEDY, **CLONE) for _ in range(8)]
        modest = asked(wide, 314, MODEST, srcGroup="billing", destGroup="mine", offline=True)
        await asyncio.gather(*greedy, modest)

    def seen(group: str, topic: str, *_: object, **__: object) -> int:
        if topic == TOPICS[0]:  # each clone begins with it
            moved.append(group)
        return 1

    async def counted() -> None:
        with counted_by_turn(wide.offsets, "reset", seen):
            await main()

    wide.run(counted())
    assert moved.index("mine") <= 2
    assert moved.count("copy") == 8


@pytest.mark.parametrize(("code", "fields"), [(222, RESET), (314, CLONE)])
def test_a_request_that_gets_no_turn_of_the_loop_holds_up_no_move_of_others(
    wide: Desk, code: int, fields: dict[str, Any]
) -> None:
    """Who has much under way on a connection gets few of them (`net/slice_line.py`), and may be in the middle of it."""

    async def main() -> None:
        held = request(wide, code, GREEDY, **fields)
        held.send(None)
        modest = asked(wide, 222, MODEST, **{**RESET, "group": "copy"})
        await eventually(modest.done)
        assert (await modest) is not None
        held.close()

    wide.run(main())


def test_what_a_reset_has_found_counts_as_kept_for_who_asked_until_it_is_answered(wide: Desk) -> None:
    async def main() -> int:
        account = wide.link(MODEST).account
        with held_save(wide) as save, counted_by_turn(wide.state.files, "saved") as waiting:
            resets = [asked(wide, 222, MODEST, **RESET) for _ in range(4)]
            await eventually(lambda: waiting.total == 4)
            kept = account.kept
            save.set()
            await asyncio.gather(*resets)
        assert account.kept == 0
        return kept

    assert wide.run(main()) >= 4 * WIDE * 64


def test_the_answer_of_a_reset_is_made_as_large_answers_are(wide: Desk) -> None:
    async def main() -> int:
        with counted_by_turn(Account, "charge") as charged:
            answer = await asked(wide, 222, MODEST, **RESET)
        assert answer is not None
        assert len(answer.body) > WIDE
        return charged.most

    assert wide.run(main()) == 1, "a piece in a turn"


def test_a_reset_that_cannot_be_told_of_says_that_it_was_made(wide: Desk) -> None:
    async def main() -> None:
        large = wide.state.large_answers
        with mock.patch.object(large, "make", side_effect=TooBusy(f"{LARGE_ANSWERS_MAX} large answers")):
            await asked(wide, 222, MODEST, **RESET)

    with pytest.raises(TooBusy, match=r"the group is where it was to go.*large answers"):
        wide.run(main())
    assert set(wide.offsets.offsets_of("billing", "wide").values()) == {0}


def test_a_topic_that_is_deleted_while_its_reset_waits_is_not_found(wide: Desk) -> None:
    async def main() -> None:
        clone, reset = asked(wide, 314, MODEST, **CLONE), asked(wide, 222, MODEST, **RESET)
        await next_turn()
        wide.topics.delete("wide")
        await clone
        with pytest.raises(TopicNotFound):
            await reset

    wide.run(main())


def test_a_reset_of_a_topic_that_is_deleted_and_made_again_meanwhile_does_not_move_its_group_in_the_new_one(
    wide: Desk,
) -> None:
    """It would stand where the old one ended, behind all that comes."""
    wide.write("wide", 0, 3)

    async def main() -> None:
        with counted_by_turn(wide.store.reader, "queue_range") as looked:
            reset = asked(wide, 222, MODEST, **RESET)
            while not looked.total:
                await next_turn()
            delete = asked(wide, 215, MODEST, topic="wide")
            await asyncio.gather(
                delete,
                asked(wide, 17, MODEST, topic="wide", readQueueNums=WIDE, writeQueueNums=WIDE, perm=6,
                      defaultTopic="TBW102", topicFilterType="SINGLE_TAG", topicSysFlag=0, order=False),
            )  # fmt: skip
        with pytest.raises(TopicNotFound):
            await reset

    wide.run(main())
    assert "wide" in wide.topics
    assert not wide.offsets.offsets_of("billing", "wide")
