"""Messages with a delay level: where they wait, and when and how they come."""

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from bolide.broker.app import Broker
from bolide.broker.deliveries import Deliveries
from bolide.broker.handlers.delay import Delays
from bolide.model import java_json
from bolide.model.names import SCHEDULE_TOPIC
from bolide.model.response_code import ResponseCode
from bolide.record.decode import decode_messages
from bolide.record.stored import StoredMessage
from bolide.store.new_message import Appended, NewMessage
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from tests.unit.broker.clean_stage import TwoClocks
from tests.unit.broker.stage import (
    batch_of,
    bodies_of,
    properties_of,
    pull_request,
    send_request,
    serving,
)
from tests.unit.net.stage import Wire, eventually

SECOND_MS = 1000
MINUTE_MS = 60 * SECOND_MS


class Scene:
    """A broker on a clock of the test's own, and one connection."""

    def __init__(self, broker: Broker, wire: Wire, clock: TwoClocks) -> None:
        self.broker, self.wire, self.clock = broker, wire, clock

    @property
    def deliveries(self) -> Deliveries:
        return self.broker.part(Delays).deliveries

    async def send(self, body: bytes, level: object, number: int = 1, **changes: Any) -> Command:
        properties = properties_of(number, TAGS="t", DELAY=str(level))
        self.wire.send(send_request(body, number, **{"properties": properties, **changes}))
        answer = await self.wire.next()
        self.clock.live(1)  # for the sender its delay begins when the millisecond of its send is over
        return answer

    async def arrived(self, topic: str = "T", queue_id: int = 0) -> list[bytes]:
        self.wire.send(pull_request(topic=topic, queue_id=queue_id))
        return bodies_of(await self.wire.next())

    async def messages(self, topic: str = "T", queue_id: int = 0) -> list[StoredMessage]:
        self.wire.send(pull_request(topic=topic, queue_id=queue_id))
        return list(decode_messages((await self.wire.next()).body, "broker-a"))

    def deliver(self) -> None:
        """Whatever is due, now instead of a moment later."""
        while self.deliveries.deliver_some():
            pass

    def live(self, ms: int) -> None:
        self.clock.live(ms)
        self.deliver()

    def entry(self, level: int, offset: int = 0) -> tuple[int, int, int]:
        queue = self.broker.state.store.queues.find(SCHEDULE_TOPIC, level - 1)
        assert queue is not None
        entry = queue.entry(offset)
        assert entry is not None
        return entry


def play(
    root: Path,
    act: Callable[[Scene], Coroutine[None, None, None]],
    settings: Mapping[str, str] | None = None,
    clock: TwoClocks | None = None,
) -> None:
    clock = clock or TwoClocks()

    async def run() -> None:
        async with serving(root, settings, clock=clock) as (broker, wire):
            scene = Scene(broker, wire, clock)
            await eventually(lambda: scene.deliveries.is_ready)
            await act(scene)

    asyncio.run(run())


def told(root: Path) -> Any:
    return java_json.loads((root / "config" / "delayOffset.json").read_bytes())


# ---- waiting and coming


def test_a_delayed_message_comes_when_it_is_due_and_not_before(tmp_path: Path) -> None:
    """DE-01: level 3 is ten seconds."""

    async def act(scene: Scene) -> None:
        answer = await scene.send(b"later", 3)
        assert (answer.code, answer.fields["queueId"], answer.fields["queueOffset"]) == (0, "0", "0")
        scene.live(10 * SECOND_MS - 1)
        assert await scene.arrived() == []
        scene.live(1)
        assert await scene.arrived() == [b"later"]

    play(tmp_path, act)


def test_who_sent_at_the_end_of_a_millisecond_waits_for_the_whole_delay(tmp_path: Path) -> None:
    """DE-01: a delay that was counted from the beginning of that millisecond would be over too soon for the sender."""

    async def act(scene: Scene) -> None:
        before_ms = scene.clock.wall_ms
        await scene.send(b"later", 3)
        scene.clock.wall_ms = before_ms
        scene.live(10 * SECOND_MS)
        assert await scene.arrived() == []
        scene.live(1)
        assert await scene.arrived() == [b"later"]

    play(tmp_path, act)


def test_it_comes_by_itself_and_wakes_who_waits(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path, {"messageDelayLevel": "0s 1s"}) as (_, wire):
            wire.send(send_request(b"now", 1), pull_request(0, 2))
            await wire.next(), await wire.next()
            wire.send(pull_request(1, 7, flags=6, wait_ms=15_000))
            wire.send(send_request(b"soon", 8, properties=properties_of(8, DELAY="1")))
            answers = {answer.opaque: answer for answer in (await wire.next(), await wire.next())}
            assert bodies_of(answers[7]) == [b"soon"]

    asyncio.run(run())


def test_it_waits_in_the_queue_of_its_level_with_its_time_in_the_entry(tmp_path: Path) -> None:
    """DE-02."""

    async def act(scene: Scene) -> None:
        await scene.send(b"x", 5, queue_id=2)
        (waiting,) = await scene.messages(SCHEDULE_TOPIC, 4)
        assert waiting.properties["REAL_TOPIC"] == "T"
        assert waiting.properties["REAL_QID"] == "2"
        assert waiting.properties["DELAY"] == "5"
        assert scene.entry(5)[2] == waiting.store_timestamp_ms + MINUTE_MS

    play(tmp_path, act)


def test_what_comes_is_the_message_as_it_was_sent(tmp_path: Path) -> None:
    """DE-04: it still has its level, as in the original, and does not wait again."""

    async def act(scene: Scene) -> None:
        await scene.send(b"body", 1, queue_id=3, flag=0, reconsume_times=2, born_timestamp_ms=77)
        (waiting,) = await scene.messages(SCHEDULE_TOPIC, 0)
        scene.live(SECOND_MS)
        (came,) = await scene.messages("T", 3)
        assert (came.body, came.reconsume_times, came.born_timestamp_ms) == (b"body", 2, 77)
        assert came.properties == waiting.properties
        assert came.born_host == waiting.born_host
        assert came.store_timestamp_ms == waiting.store_timestamp_ms + SECOND_MS + 1
        scene.live(7200 * SECOND_MS)
        assert await scene.arrived("T", 3) == [b"body"]

    play(tmp_path, act)


def test_who_filters_by_tag_finds_what_has_come(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        await scene.send(b"x", 1)
        scene.live(SECOND_MS)
        scene.wire.send(pull_request(tags="t"), pull_request(0, 2, tags="other"))
        assert bodies_of(await scene.wire.next()) == [b"x"]
        assert bodies_of(await scene.wire.next()) == []

    play(tmp_path, act)


@pytest.mark.parametrize("level", [19, 99, 2**31 - 1])
def test_a_level_above_the_highest_acts_as_the_highest(tmp_path: Path, level: int) -> None:
    """DE-03."""

    async def act(scene: Scene) -> None:
        await scene.send(b"x", level)
        (waiting,) = await scene.messages(SCHEDULE_TOPIC, 17)
        assert waiting.properties["DELAY"] == "18"
        assert scene.entry(18)[2] == waiting.store_timestamp_ms + 7200 * SECOND_MS

    play(tmp_path, act)


@pytest.mark.parametrize("level", ["0", "-1"])
def test_a_level_that_is_none_is_no_delay(tmp_path: Path, level: str) -> None:
    async def act(scene: Scene) -> None:
        assert (await scene.send(b"x", level)).code == 0
        assert await scene.arrived() == [b"x"]

    play(tmp_path, act)


@pytest.mark.parametrize("level", ["soon", "1.5", str(2**31), "9" * 30])
def test_a_level_that_is_no_number_is_refused(tmp_path: Path, level: str) -> None:
    async def act(scene: Scene) -> None:
        answer = await scene.send(b"x", level)
        assert answer.code == ResponseCode.MESSAGE_ILLEGAL
        assert "delay level" in str(answer.remark)
        assert "whole number" in str(answer.remark)

    play(tmp_path, act)


def test_properties_with_no_room_for_the_topic_are_refused(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        long = "x" * 32_610
        assert (await scene.send(b"x", 0, properties=properties_of(1, DELAY="0", LONG=long))).code == 0
        answer = await scene.send(b"x", 1, properties=properties_of(1, DELAY="1", LONG=long))
        assert answer.code == ResponseCode.MESSAGE_ILLEGAL
        assert "the message's topic and queue" in str(answer.remark)
        assert (await scene.send(b"x", 1)).code == 0

    play(tmp_path, act)


def test_a_batch_with_a_delay_is_refused(tmp_path: Path) -> None:
    """ST-11."""

    async def act(scene: Scene) -> None:
        body = batch_of(b"a", b"b", DELAY="1")
        scene.wire.send(send_request(body, properties="", code=320, batch=True))
        assert (await scene.wire.next()).code == ResponseCode.MESSAGE_ILLEGAL

    play(tmp_path, act)


def test_messages_of_all_levels_come_in_the_order_of_their_times(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        for number, level in enumerate((5, 1, 4, 2, 3, 1)):
            await scene.send(b"%d" % level, level, number)
        scene.live(MINUTE_MS)
        assert await scene.arrived() == [b"1", b"1", b"2", b"3", b"4", b"5"]

    play(tmp_path, act)


def test_the_longest_overdue_come_first_when_there_are_many(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        numbers = itertools.count()
        for wait_ms, body, count, level in ((0, b"2", 40, 2), (1000, b"1", 32, 1), (1500, b"3", 40, 1)):
            scene.clock.live(wait_ms)
            for _ in range(count):
                await scene.send(body, level, next(numbers))
        scene.live(20 * SECOND_MS)
        came: list[bytes] = []
        while len(came) < 112:
            came += bodies_of(await scene.wire.ask(pull_request(len(came))))
        assert came == [b"1"] * 32 + [b"2"] * 40 + [b"3"] * 40

    play(tmp_path, act, {"messageDelayLevel": "10s 12s"})


def test_while_a_backlog_is_delivered_the_table_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(scene: Scene) -> None:
        for number in range(1, 7):
            await scene.send(b"%d" % number, 1, number)
        monkeypatch.setattr("bolide.broker.deliveries.SLICE_MESSAGES", 1)
        table, deliver_some = scene.broker.part(Delays).table, scene.deliveries.deliver_some
        seen: list[int] = []

        def noted() -> bool:
            seen.append(table.get(1) or 0)
            delivered = deliver_some()
            scene.broker.state.store.sync_now()
            return delivered

        monkeypatch.setattr(scene.deliveries, "deliver_some", noted)
        scene.clock.live(SECOND_MS)
        await eventually(lambda: len(seen) > 6)
        assert [offset for offset in seen if 0 < offset < 6] == [1, 2, 3, 4, 5]

    play(tmp_path, act)


def test_many_that_are_due_at_once_come_in_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def act(scene: Scene) -> None:
        sent = [b"%d" % number + b"x" * (2000 if number % 3 else 100_000) for number in range(150)]
        for number, body in enumerate(sent):
            await scene.send(body, 1, number)
        appended: list[Sequence[NewMessage]] = []
        append = scene.broker.state.door.append

        def noted(messages: Sequence[NewMessage]) -> list[Appended]:
            appended.append(messages)
            return append(messages)

        monkeypatch.setattr(scene.broker.state.door, "append", noted)
        scene.live(SECOND_MS)
        assert [message.body for messages in appended for message in messages] == sent
        assert len(appended) > 5
        assert max(map(len, appended)) <= 32
        assert max(sum(len(one.body) for one in messages) for messages in appended) < 400_000

    play(tmp_path, act, {"mappedFileSizeCommitLog": str(16 * 1024 * 1024)})


# ---- the levels as configured


def test_the_levels_are_as_configured_now_and_after_a_recovery(tmp_path: Path) -> None:
    """Power loss after a minute, or lost queues: each due time is made again from the record."""
    settings = {"messageDelayLevel": "2s 3m 1d"}

    due_ms = [2000, 180_001, 86_400_002]  # one was sent in each millisecond

    async def act(scene: Scene) -> None:
        for level in (1, 2, 3, 4):
            await scene.send(b"%d" % level, level, level)
        assert [scene.entry(level)[2] - stored_ms for level in (1, 2, 3)] == due_ms
        assert scene.entry(3, 1)[2] - stored_ms == 86_400_003

    clock = TwoClocks()
    stored_ms = clock.wall_ms
    play(tmp_path, act, settings, clock)
    for path in (tmp_path / "consumequeue" / SCHEDULE_TOPIC).rglob("*"):
        if path.is_file():
            path.unlink()

    async def again(scene: Scene) -> None:
        assert [scene.entry(level)[2] - stored_ms for level in (1, 2, 3)] == due_ms

    (tmp_path / "abort").write_text("1")
    (tmp_path / "checkpoint").unlink()
    play(tmp_path, again, settings, clock)


def test_what_waits_in_a_level_that_is_no_longer_configured_comes_when_it_was_promised(
    tmp_path: Path,
) -> None:
    clock = TwoClocks()

    async def send(scene: Scene) -> None:
        await scene.send(b"fifth", 5, 1)
        await scene.send(b"second", 2, 2)

    async def look(scene: Scene) -> None:
        """Level 2 was five seconds and would be one now."""
        scene.live(5 * SECOND_MS - 1)
        assert await scene.arrived() == []
        scene.live(1)
        assert await scene.arrived() == [b"second"]
        scene.live(55 * SECOND_MS)
        assert await scene.arrived() == [b"second", b"fifth"]

    play(tmp_path, send, clock=clock)
    play(tmp_path, look, {"messageDelayLevel": "1s 1s"}, clock)


# ---- clocks


def test_a_clock_that_is_set_back_makes_nobody_early_and_nobody_wait_until_it_is_back(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        await scene.send(b"before", 3, 1)
        scene.clock.wall_ms -= 3600 * SECOND_MS
        await scene.send(b"after", 3, 2)
        scene.live(0)
        scene.live(10 * SECOND_MS)
        assert await scene.arrived() == []
        scene.live(1)
        assert await scene.arrived() == [b"before", b"after"]
        await scene.send(b"later", 3, 3)
        scene.live(10 * SECOND_MS - 1)
        assert await scene.arrived() == [b"before", b"after"]
        scene.live(11 * SECOND_MS)
        assert await scene.arrived() == [b"before", b"after", b"later"]

    play(tmp_path, act)


def test_a_clock_that_is_set_forward_makes_due_what_is_due_by_it(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        await scene.send(b"x", 18)
        scene.clock.wall_ms += 7200 * SECOND_MS
        scene.deliver()
        assert await scene.arrived() == [b"x"]

    play(tmp_path, act)


# ---- its file, and figures


def test_a_stop_writes_how_far_each_level_was_delivered(tmp_path: Path) -> None:
    """DE-02: it grows by one with each."""

    async def act(scene: Scene) -> None:
        for number in range(3):
            await scene.send(b"%d" % number, 1, number)
        await scene.send(b"waits", 4, 9)
        scene.live(SECOND_MS)

    play(tmp_path, act)
    assert told(tmp_path)["offsetTable"] == {"1": 3}
    assert told(tmp_path)["dataVersion"].keys() == {"counter", "stateVersion", "timestamp"}
    text = (tmp_path / "config" / "delayOffset.json").read_text()
    assert "\t\t1:3\n" in text


@pytest.mark.parametrize(
    "text",
    [
        '{"offsetTable":{1:2}}',
        '{\n\t"offsetTable":{1:2\n\t}\n}',
        '{"dataVersion":{"counter":7,"stateVersion":0,"timestamp":5},"offsetTable":{1:2}}',
    ],
)
def test_both_forms_of_the_file_are_read(tmp_path: Path, text: str) -> None:
    clock = TwoClocks()

    async def send(scene: Scene) -> None:
        for number in range(3):
            await scene.send(b"%d" % number, 1, number)

    async def look(scene: Scene) -> None:
        scene.live(SECOND_MS)
        assert await scene.arrived() == [b"2"]

    play(tmp_path, send, clock=clock)
    (tmp_path / "config" / "delayOffset.json").write_text(text)
    play(tmp_path, look, clock=clock)


def test_offsets_that_the_queues_do_not_have_are_brought_to_them(tmp_path: Path) -> None:
    clock = TwoClocks()

    async def send(scene: Scene) -> None:
        await scene.send(b"lost to the file", 1, 1)

    async def look(scene: Scene) -> None:
        await scene.send(b"x", 1, 2)
        scene.live(SECOND_MS)
        assert await scene.arrived() == [b"x"]

    play(tmp_path, send, clock=clock)
    (tmp_path / "config" / "delayOffset.json").write_text('{"offsetTable":{1:700,7:3}}')
    play(tmp_path, look, clock=clock)


def test_tools_are_told_how_far_each_level_is(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        await scene.send(b"a", 1, 1)
        await scene.send(b"b", 1, 2)
        scene.live(SECOND_MS)
        await scene.send(b"c", 1, 3)
        await scene.send(b"d", 2, 4)
        figures = scene.broker.part(Delays).figures()
        assert figures == {"scheduleMessageOffset_1": "2,3", "scheduleMessageOffset_2": "0,1"}
        scene.broker.state.store.sync_now()
        await eventually(lambda: scene.broker.part(Delays).table.get(1) == 2)
        scene.wire.send(Command(RequestCode.GET_ALL_DELAY_OFFSET, {}))
        body = java_json.loads((await scene.wire.next()).body)
        assert body["offsetTable"]["1"] == 2

    play(tmp_path, act)
