"""A disk without room for the small files of the tables: who asked is told, the log says it once, nothing is lost."""

import asyncio
from pathlib import Path

import pytest

from bolide.model.errors import StoreError
from bolide.model.response_code import ResponseCode
from bolide.store.disk import File
from bolide.store.disk_os import OsDisk
from bolide.wire.command import Command
from bolide.wire.headers.topic import UpdateTopic
from tests.unit.broker.stage import ALL, bodies_of, pull_request, send_request, serving


class FullDisk(OsDisk):
    """Has no room for small files, from some moment on."""

    is_full = False

    def create(self, path: str, size: int, *, reserve: bool) -> File:
        if self.is_full and path.endswith(".json.tmp"):
            raise OSError(28, "No space left on device")
        return super().create(path, size, reserve=reserve)


def test_a_disk_that_is_full_for_a_while_costs_a_line_in_the_log_and_no_table(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    disk = FullDisk()

    async def main() -> None:
        async with serving(tmp_path, disk=disk) as (broker, _):
            disk.is_full = True
            broker.state.groups.find("orders", auto_create=True)
            with pytest.raises(
                StoreError, match=r"done, but subscriptionGroup\.json cannot be written: No space"
            ):
                await broker.state.files.saved(broker.state.groups)
            waiting = broker.state.files.written(broker.state.groups)
            with pytest.raises(StoreError):
                await broker.state.files.saved(broker.state.groups)
            assert not waiting.done()
            disk.is_full = False
            await asyncio.wait_for(waiting, 20)

    asyncio.run(main())
    lines = [record.getMessage() for record in caplog.records if "subscriptionGroup" in record.getMessage()]
    assert len(lines) == 2, lines
    assert "No space left" in lines[0]
    assert lines[1].endswith("the trouble has passed, it works again")
    assert b"orders" in (tmp_path / "config" / "subscriptionGroup.json").read_bytes()


@pytest.mark.parametrize("code", [17, 215])
def test_a_topic_made_or_deleted_on_a_full_disk_is_answered(code: int, tmp_path: Path) -> None:
    """Goal: the answer never came, although the topic was there."""
    disk = FullDisk()

    async def main() -> None:
        async with serving(tmp_path, disk=disk) as (broker, wire):
            fields = UpdateTopic("orders", read_queues=1, write_queues=1).encode()
            if code == 215:
                assert (await wire.ask(Command(17, fields))).code == 0
            disk.is_full = True
            answer = await wire.ask(Command(code, fields))
            assert answer.code == ResponseCode.SERVICE_NOT_AVAILABLE
            assert "what was asked for is done, but topics.json cannot be written: No space" in (
                answer.remark or ""
            )
            assert ("orders" in broker.state.topics) == (code == 17)
            disk.is_full = False

    asyncio.run(asyncio.wait_for(main(), 60))
    assert (b"orders" in (tmp_path / "config" / "topics.json").read_bytes()) == (code == 17)


def test_a_drained_broker_needs_no_file_for_that(tmp_path: Path) -> None:
    disk = FullDisk()

    async def main() -> None:
        async with serving(tmp_path, disk=disk) as (_, wire):
            disk.is_full = True
            assert (await wire.ask(Command(25, {}, b"brokerPermission=4"))).code == 0
            disk.is_full = False

    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_message_of_a_new_topic_is_answered_while_topics_json_cannot_be_written(tmp_path: Path) -> None:
    """Goal: the answer never came, so the message was sent again and stored again.  It is stored, and less safe than
    was promised: that is what its sender hears."""
    disk = FullDisk()

    async def main() -> None:
        async with serving(tmp_path, disk=disk) as (broker, wire):
            disk.is_full = True
            for number in range(2):
                answer = await wire.ask(send_request(b"%d" % number, topic="orders"))
                assert (answer.code, answer.fields["queueOffset"]) == (
                    ResponseCode.FLUSH_DISK_TIMEOUT,
                    str(number),
                )
                assert "topics.json cannot be written: No space" in (answer.remark or "")
            assert bodies_of(await wire.ask(pull_request(0, topic="orders", flags=ALL))) == [b"0", b"1"]
            disk.is_full = False
            await broker.state.files.written(broker.state.topics)
            assert (await wire.ask(send_request(topic="orders"))).code == 0

    asyncio.run(asyncio.wait_for(main(), 60))
