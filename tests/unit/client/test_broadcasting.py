"""Broadcasting: every member gets everything, and keeps its own place in a file."""

import logging
from pathlib import Path

import pytest

from bolide.aio import ClientError, MessageQueue, PushConsumer
from bolide.client.offsets import decode_offsets, encode_offsets
from bolide.wire.codes import RequestCode
from tests.unit.client.consuming import Collector, on_cluster
from tests.unit.client.scripted import Cluster, wait_for


async def member(c: Cluster, collector: Collector, folder: Path, name: str | None = None) -> PushConsumer:
    consumer = PushConsumer(
        c.nameserver.address,
        group="g",
        listener=collector,
        broadcasting=True,
        start_from="first",
        offsets_dir=folder,
        instance_name=name,
    )
    await consumer.subscribe("orders")
    return consumer


def test_every_member_gets_every_message_and_brokers_keep_no_offset(tmp_path: Path) -> None:
    """CO-02."""

    async def scenario(c: Cluster) -> None:
        broker = c.brokers[0]
        for number in range(40):
            broker.store("orders", number % 4, b"%d" % number)
        first, second = Collector(), Collector()
        one, two = await member(c, first, tmp_path, "one"), await member(c, second, tmp_path, "two")
        async with one, two:
            await wait_for(lambda: len(first.bodies) == len(second.bodies) == 40, "all for both")
            assert one.queues == two.queues
            assert len(one.queues) == 4, "and not the retry topic's"
        assert broker.offsets == {}
        assert RequestCode.GET_CONSUMER_LIST_BY_GROUP not in broker.seen
        models = {beat["consumerDataSet"][0]["messageModel"] for beat in broker.heartbeats}  # type: ignore[index]
        assert models == {"BROADCASTING"}

    on_cluster(scenario)


def test_a_process_that_is_started_again_goes_on_where_it_was(tmp_path: Path) -> None:
    """CO-02: in the original's place and form; the name of the instance is the same again."""

    async def scenario(c: Cluster) -> None:
        broker, before, after = c.brokers[0], Collector(), Collector()
        for number in range(5):
            broker.store("orders", 2, b"%d" % number)
        async with await member(c, before, tmp_path):
            await wait_for(lambda: len(before.bodies) == 5, "the first five")
        path = tmp_path / "127.0.0.1@DEFAULT" / "g" / "offsets.json"
        assert '{"brokerName":"broker-0","queueId":2,"topic":"orders"}:5' in path.read_text()
        broker.store("orders", 2, b"5")
        async with await member(c, after, tmp_path):
            await wait_for(lambda: after.bodies == [b"5"], "the one that is new")
        assert decode_offsets(path.read_bytes())[MessageQueue("orders", "broker-0", 2)] == 6
        assert decode_offsets(path.with_name("offsets.json.bak").read_bytes())

    on_cluster(scenario)


def test_when_the_file_is_damaged_its_copy_is_used_and_without_one_it_is_said(tmp_path: Path) -> None:
    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        for number in range(5):
            broker.store("orders", 0, b"%d" % number)
        folder = tmp_path / "127.0.0.1@DEFAULT" / "g"
        folder.mkdir(parents=True)
        queue = MessageQueue("orders", "broker-0", 0)
        (folder / "offsets.json").write_bytes(b"{torn")
        (folder / "offsets.json.bak").write_bytes(encode_offsets({queue: 4}))
        async with await member(c, collector, tmp_path):
            await wait_for(lambda: collector.bodies == [b"4"], "what the copy has left")
        for name in ("offsets.json", "offsets.json.bak"):
            (folder / name).write_bytes(b"{torn")
        with pytest.raises(ClientError, match="no readable copy is left"):
            await (await member(c, collector, tmp_path)).start()

    on_cluster(scenario)


def test_a_failed_message_is_dropped_with_a_line_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """CO-02."""

    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        collector.fail_on[b"1"] = 1000
        for number in range(3):
            broker.store("orders", 0, b"%d" % number)
        async with await member(c, collector, tmp_path):
            await wait_for(lambda: collector.bodies == [b"0", b"2"], "the others")
        assert collector.sizes == [1, 1, 1]
        assert (broker.sent_back, broker.sends) == ([], [])

    with caplog.at_level(logging.WARNING):
        on_cluster(scenario)
    assert "from offset 1; nobody brings them again" in caplog.text


def test_a_file_of_the_original_is_read() -> None:
    """As fastjson writes it: queues as keys, over several lines."""
    text = (
        '{\n\t"offsetTable":{{\n\t\t\t"brokerName":"broker-a",\n\t\t\t"queueId":3,\n\t\t\t"topic":"T"\n\t\t}:12,'
        '{\n\t\t\t"brokerName":"broker-a",\n\t\t\t"queueId":1,\n\t\t\t"topic":"T"\n\t\t}:5\n\t}\n}'
    )
    expected = {MessageQueue("T", "broker-a", 3): 12, MessageQueue("T", "broker-a", 1): 5}
    assert decode_offsets(text.encode()) == expected
    assert decode_offsets(encode_offsets(expected)) == expected


def test_in_order_too(tmp_path: Path) -> None:
    async def scenario(c: Cluster) -> None:
        broker, collector = c.brokers[0], Collector()
        collector.fail_on[b"1"] = 1
        for number in range(4):
            broker.store("orders", 0, b"%d" % number)
        consumer = PushConsumer(
            *(c.nameserver.address,),
            group="g",
            listener=collector,
            broadcasting=True,
            orderly=True,
            start_from="first",
            offsets_dir=tmp_path,
        )
        await consumer.subscribe("orders")
        async with consumer:
            await wait_for(lambda: len(collector.bodies) == 4, "all")
        assert collector.bodies == [b"0", b"1", b"2", b"3"]
        assert broker.lock_requests == 0

    on_cluster(scenario)


def files_in(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("**/*") if path.is_file()]


def test_a_folder_that_cannot_be_written_to_is_said_at_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    said = "the offsets of g cannot be stored, so a start begins as if it were the first"

    async def scenario(c: Cluster) -> None:
        async with await member(c, Collector(), tmp_path):
            assert said not in caplog.text
            assert files_in(tmp_path) == []
        async with await member(c, Collector(), Path("/proc/nowhere")):
            assert said in caplog.text

    on_cluster(scenario)
