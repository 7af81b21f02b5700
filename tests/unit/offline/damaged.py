"""A small store with everything in it, stopped, and ways to damage its files."""

import shutil
from pathlib import Path

import pytest

from bolide.offline.verify import Examination, verify
from bolide.store.disk_os import OsDisk
from bolide.store.index_file import IndexSizes
from tests.unit.store.stage import SEGMENT_BYTES, HeldClock, killed, message, opened, put

INDEX = IndexSizes(slots=50, entries=200)
TOPICS = ("orders", "payments")
MESSAGES = 40


def make(root: Path, *, clean: bool = True, count: int = MESSAGES) -> None:
    """Two topics with two queues each, an index, and tables; times a second apart."""
    clock = HeldClock()
    store = opened(root, clock=clock, index=INDEX)
    for number in range(count):
        clock.ms += 1000
        properties = b"UNIQ_KEY\x01U%d\x02KEYS\x01k%d\x02TAGS\x01t%d\x02" % (number, number % 7, number % 3)
        body = b"body of message %05d" % number
        put(store, message(TOPICS[number % 2], body, number // 2 % 2, properties=properties))
    write_tables(root)
    if clean:
        store.close()
    else:
        killed(store)


def write_tables(root: Path) -> None:
    version = '"dataVersion":{"counter":3,"stateVersion":0,"timestamp":1700000000000}'
    topic = (
        '{"attributes":{},"order":false,"perm":6,"readQueueNums":2,"topicFilterType":"SINGLE_TAG",'
        '"topicName":"NAME","topicSysFlag":0,"writeQueueNums":2}'
    )
    topics = ",".join(f'"{name}":{topic.replace("NAME", name)}' for name in TOPICS)
    texts = {
        "topics.json": f'{{{version},"topicConfigTable":{{{topics}}}}}',
        "consumerOffset.json": f'{{{version},"offsetTable":{{"orders@billing":{{0:7,1:10}}}}}}',
        "subscriptionGroup.json": f'{{{version},"subscriptionGroupTable":{{"billing":{{"groupName":"billing"}}}}}}',
    }
    for name, text in texts.items():
        for suffix in ("", ".bak"):
            (root / "config" / (name + suffix)).write_text(text)


def examine(root: Path) -> Examination:
    return verify(OsDisk(), str(root))


def write_at(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def segment(root: Path, number: int = 0) -> Path:
    return root / "commitlog" / f"{number * SEGMENT_BYTES:020d}"


def index_file(root: Path) -> Path:
    (path,) = [path for path in (root / "index").iterdir() if path.name.isdigit()]
    return path


def queue_file(root: Path, topic: str = "orders", queue_id: int = 0, number: int = 0) -> Path:
    return root / "consumequeue" / topic / str(queue_id) / f"{number * 200:020d}"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made once; tests damage copies."""
    root = tmp_path_factory.mktemp("original")
    make(root)
    return root


@pytest.fixture
def root(original: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "store"
    shutil.copytree(original, copy)
    return copy
