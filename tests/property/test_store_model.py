"""The store against a dictionary: whatever happens to it, every queue is one order and loses nothing.

Method: random runs of sends, single and batched appends, write-behinds, checkpoints, clean stops and kills on tiny
files; after each step what readers get must be what a plain list per queue holds.
"""

import random
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from bolide.store.store import MessageStore
from bolide.wire.frame import FrameReader, Intake
from bolide.wire.send_run import SendRun
from tests.unit.store.stage import V4, bodies, killed, make_durable, message, opened
from tests.unit.wire.stage import send_frame

TOPICS = ("T", "Other")
QUEUES = 2
RUN_MAX = 4


class Model:
    """What the store must hold, and the store itself."""

    def __init__(self, root: Path, seed: int) -> None:
        self._root = root
        self._random = random.Random(seed)
        self._number = 0
        self.queues: dict[tuple[str, int], list[bytes]] = {(t, q): [] for t in TOPICS for q in range(QUEUES)}
        self.store = opened(root)

    def step(self) -> None:
        action = self._random.choice(
            (self.run, self.run, self.run, self.single, self.batch, self.checkpoint, self.restart, self.kill)
        )
        action()
        if self._random.random() < 0.3:
            self.write_behind()

    def run(self) -> None:
        """Sends as the broker appends them; what needs the general path gets it, in its turn."""
        chosen = [self._message() for _ in range(self._random.randint(1, RUN_MAX))]
        data = b"".join(send_frame(0, body, b=topic, e=str(queue)) for topic, queue, body in chosen)
        reader = FrameReader(Intake(65536), hot=True)
        reader.writable()[: len(data)] = data
        reader.received(len(data))
        run = reader.next()
        assert isinstance(run, SendRun)
        assert run.count == len(chosen)
        lanes = [self.store.lane(topic.decode(), QUEUES, QUEUES) for topic in run.topics]
        first = 0
        while first < run.count:
            first, needs_general_path = self.store.append_run(
                run.rows, run.log_offsets, run.buffer, run.properties, lanes, first, run.count, V4
            )
            assert not needs_general_path
        self._took(chosen)

    def single(self) -> None:
        topic, queue, body = self._message()
        self.store.append([message(topic, body, queue)])
        self._took([(topic, queue, body)])

    def batch(self) -> None:
        topic, queue, _ = self._message()
        items = [self._message()[2] for _ in range(3)]
        self.store.append([message(topic, body, queue) for body in items])
        self._took([(topic, queue, body) for body in items])

    def write_behind(self) -> None:
        self.store.write_behind(self.store.take_touched())

    def checkpoint(self) -> None:
        make_durable(self.store)

    def restart(self) -> None:
        self.store.close()
        self._open()

    def kill(self) -> None:
        killed(self.store)
        self._open()

    def _open(self) -> None:
        self.store = opened(self._root)

    def _message(self) -> tuple[str, int, bytes]:
        self._number += 1
        body = b"%06d" % self._number + bytes(self._random.choice((0, 10, 100, 200)))
        return self._random.choice(TOPICS), self._random.randrange(QUEUES), body

    def _took(self, messages: list[tuple[str, int, bytes]]) -> None:
        for topic, queue, body in messages:
            self.queues[topic, queue].append(body)


def held_by(store: MessageStore) -> dict[tuple[str, int], list[bytes]]:
    return {(topic, queue): bodies(store, topic, queue) for topic in TOPICS for queue in range(QUEUES)}


@given(st.integers(0, 2**32))
@settings(max_examples=25)
def test_a_store_holds_what_a_list_per_queue_holds(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        model = Model(Path(folder), seed)
        for _ in range(25):
            model.step()
            assert held_by(model.store) == model.queues
        model.store.close()
