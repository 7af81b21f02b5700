"""Delayed messages beside one that was lost: in its place in their queue stands a copy of a neighbour's entry.

Recovery and `store repair` put it there (`store/recover.py` says why).  It is nobody's message.
"""

import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from bolide.model.names import SCHEDULE_TOPIC
from bolide.record.layout import QUEUE_OFFSET_AT
from bolide.store.queue_entry import ENTRY, ENTRY_BYTES
from tests.unit.broker.clean_stage import TwoClocks
from tests.unit.broker.test_delay import SECOND_MS, Scene, play
from tests.unit.broker.test_delay_crash import image_of

COUNT = 6
WRONG_BIT = 1 << 6
HOUR: Mapping[str, str] = {"messageDelayLevel": "3600s"}


async def send_all(scene: Scene) -> None:
    """So much else before that a number with the bit may be true."""
    for number in range(20):
        await scene.send(bytes(1000), 0, 1000 + number, queue_id=1)
    for number in range(COUNT):
        await scene.send(b"%d" % number, 1, number)


def damage_number(image: Path, log_offset: int) -> None:
    """Of the delayed message there, and the queues are to be made again from the log."""
    (segment,) = (image / "commitlog").iterdir()
    data = bytearray(segment.read_bytes()[: log_offset + QUEUE_OFFSET_AT + 8])
    data[-1] ^= WRONG_BIT
    with segment.open("r+b") as file:
        file.write(data)
    shutil.rmtree(image / "consumequeue")
    (image / "checkpoint").unlink(missing_ok=True)


@pytest.mark.parametrize("damaged", [0, 2, 3])
def test_a_delayed_message_whose_number_came_to_harm_makes_no_other_early_or_come_twice(
    tmp_path: Path, damaged: int
) -> None:
    root, clock = tmp_path / "store", TwoClocks()
    images: list[tuple[Path, int]] = []

    async def life(scene: Scene) -> None:
        await send_all(scene)
        images.append((image_of(root), scene.entry(1, damaged)[0]))

    async def afterwards(scene: Scene) -> None:
        scene.live(5 * SECOND_MS)
        assert await scene.arrived() == []
        scene.live(3600 * SECOND_MS)
        assert await scene.arrived() == [b"%d" % number for number in range(COUNT) if number != damaged]

    play(root, life, HOUR, clock)
    damage_number(*images[0])
    play(images[0][0], afterwards, HOUR, clock)


def test_what_came_from_behind_a_lost_one_does_not_come_again_after_a_kill(tmp_path: Path) -> None:
    """The file says that nothing was delivered; of two entries one message can have come."""
    root, clock = tmp_path / "store", TwoClocks()
    images: list[tuple[Path, int]] = []
    again: list[Path] = []

    async def life(scene: Scene) -> None:
        await send_all(scene)
        images.append((image_of(root), scene.entry(1, 2)[0]))

    async def afterwards(scene: Scene) -> None:
        scene.live(3600 * SECOND_MS)
        again.append(image_of(images[0][0]))
        assert len(await scene.arrived()) == COUNT - 1

    async def after_a_kill(scene: Scene) -> None:
        scene.live(SECOND_MS)
        assert Counter(await scene.arrived()) == Counter(b"%d" % number for number in (0, 1, 3, 4, 5))

    play(root, life, HOUR, clock)
    damage_number(*images[0])
    play(images[0][0], afterwards, HOUR, clock)
    assert not (again[0] / "config" / "delayOffset.json").exists()
    play(again[0], after_a_kill, HOUR, clock)


@pytest.mark.parametrize("code", [116, 0, -5])
@pytest.mark.parametrize("place", [0, 2])
def test_an_entry_that_leads_to_another_s_message_delivers_nothing(
    tmp_path: Path, place: int, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever it says about when: as it was left by former versions, and by repairs."""
    clock = TwoClocks()

    async def afterwards(scene: Scene) -> None:
        scene.live(5 * SECOND_MS)
        assert await scene.arrived() == []
        scene.live(3600 * SECOND_MS)
        assert await scene.arrived() == [b"%d" % number for number in range(COUNT) if number != place]

    play(tmp_path, send_all, HOUR, clock)
    (path,) = (tmp_path / "consumequeue" / SCHEDULE_TOPIC / "0").iterdir()
    with path.open("r+b") as file:
        file.seek((place + 1) * ENTRY_BYTES)
        log_offset, size, _ = ENTRY.unpack(file.read(ENTRY_BYTES))
        file.seek(place * ENTRY_BYTES)
        file.write(ENTRY.pack(log_offset, size, code))
    play(tmp_path, afterwards, HOUR, clock)
    assert f"messages from {place} on are damaged or not where they should be" in caplog.text
