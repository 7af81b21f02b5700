"""Messages by key and by id, asked by the original's own administration tool of both versions (check-list AD-01)."""

import re
from pathlib import Path

import pytest

from bolide import Message, Producer, SendReceipt
from tests.interop.stage import Stage
from tests.peers import java
from tests.peers.waiting import PATIENCE_MS

pytestmark = pytest.mark.needs("java", "mvn")


def sent(stage: Stage, topic: str, *messages: Message) -> list[SendReceipt]:
    with Producer(stage.nameserver, group=stage.name("group"), timeout_ms=PATIENCE_MS) as producer:
        return [producer.send(message) for message in messages]


def test_messages_are_found_by_key(stage: Stage) -> None:
    """Both words of a message find it; a key of the same hash does not."""
    topic = stage.topic()
    receipts = sent(
        stage,
        topic,
        *(Message(topic, b"%d" % number, tags="TagA", keys=["Aa", f"k{number}"]) for number in range(3)),
        Message(topic, b"other", keys=["BB"]),
    )
    for key, wanted in (("Aa", receipts[:3]), ("k1", receipts[1:2]), ("BB", receipts[3:]), ("none", [])):
        printed = stage.admin(f"queryMsgByKey -t {topic} -k {key}")
        assert sorted(re.findall(r"^([0-9A-F]{32})\b", printed, re.MULTILINE)) == sorted(
            receipt.message_id for receipt in wanted
        ), printed


def test_a_message_is_found_by_its_unique_key(stage: Stage) -> None:
    """Asked once: this command keeps its client, which is closed after the first time."""
    topic = stage.topic()
    _, receipt, _ = sent(stage, topic, *(Message(topic, b"%d" % number, keys=["k"]) for number in range(3)))
    printed = asked(stage, f"queryMsgByUniqueKey -t {topic} -i {receipt.message_id}")
    assert shown(printed, "Queue Offset") == str(receipt.queue_offset), printed
    assert shown(printed, "Queue ID") == str(receipt.queue.queue_id)
    assert f"UNIQ_KEY={receipt.message_id}" in shown(printed, "Properties")


def test_a_message_is_found_by_its_offset_id(stage: Stage) -> None:
    topic = stage.topic()
    (receipt,) = sent(stage, topic, Message(topic, b"body", tags="TagA", keys=["k"]))
    where = f" -t {topic}" if stage.witness.version == java.LATEST else ""
    printed = asked(stage, f"queryMsgById -i {receipt.offset_message_id}{where}")
    assert shown(printed, "OffsetID") == receipt.offset_message_id, printed
    assert shown(printed, "Topic") == topic
    assert shown(printed, "Tags") == "[TagA]"


def asked(stage: Stage, line: str) -> str:
    """What the tool printed; it also leaves the body in a file, which is not wanted."""
    printed = stage.admin(line)
    if path := shown(printed, "Message Body Path"):
        Path(path).unlink(missing_ok=True)
    return printed


def shown(printed: str, name: str) -> str:
    """The value that a tool printed behind a name."""
    found = re.search(rf"^\s*{name}:\s*(.*?)\s*$", printed, re.MULTILINE)
    return found[1] if found else ""
