"""One side of the comparison: a server with some content, the same on both sides, and clients that are there."""

import json
import re
import time
from pathlib import Path

from tests.interop.mqadmin.cases import Case
from tests.interop.stage import Stage
from tests.peers import java
from tests.peers.server import CLUSTER, ServerKind, Together
from tests.peers.waiting import PATIENCE_SECONDS, wait_until
from tests.peers.witness import Witness

BROKER_NAME = "broker-a"
ENDLESS_MILLIS = 1_500
SHOWS_SECONDS = 20.0
TRIES = 4
"""A busy server loses a request now and then, and a client a message that it only sends for its trace."""

_LOST = re.compile(r"Remoting(?:SendRequest|Timeout|TooMuchRequest)Exception")

TOPIC, MESSAGES = "orders", 8
GROUP, OFFLINE = "readers", "sleepers"
TICKS, MAKERS = "ticks", "makers"


class Side:
    """A name server, a broker `broker-a`, and in it

    - the topic `orders` with two messages with keys and tags in each of its four queues,
    - the group `readers`, online, which has consumed them, and `sleepers`, which had and is gone,
    - a producer of the group `makers`, which goes on.
    """

    def __init__(self, kind: ServerKind, witness: Witness, home: Path) -> None:
        self._witness = witness
        self._server = Together(kind, home / "server", {"brokerName": BROKER_NAME}).start()
        self._stage = Stage(witness, self._server.nameserver)
        self._files = home / "files"
        self._files.mkdir(parents=True)
        self._names: dict[str, str] = {
            "broker": self._server.broker,
            "name": BROKER_NAME,
            "cluster": CLUSTER,
            "files": str(self._files),
            "topic": TOPIC,
            "group": GROUP,
            "offline": OFFLINE,
            "of_topic": "" if witness.version == java.CLASSIC else f"-t {TOPIC}",
        }
        self._write_lists()
        self._fill()

    def end(self) -> None:
        self._stage.close()
        self._server.kill()  # the original's orderly stop takes ten seconds and more

    def run(self, case: Case) -> str:
        """What the lines of a case have printed, or written; errors too."""
        lines = case.lines if self._witness.version == java.CLASSIC else case.lines + case.lines_of_5
        for _ in range(TRIES if case.until else 1):
            printed = [self._run(line, case) for line in lines]
            deadline = time.monotonic() + SHOWS_SECONDS
            while not re.search(case.until, printed[-1]) and time.monotonic() < deadline:
                printed[-1] = self._run(lines[-1], case)
            if re.search(case.until, printed[-1]):
                break
        if case.writes and (written := self._files / case.writes).exists():
            return written.read_text()
        return "\n".join(printed)

    def _run(self, line: str, case: Case) -> str:
        for _ in range(TRIES):
            printed = self._run_once(line, case)
            if not _LOST.search(printed):
                break
        return printed

    def _run_once(self, line: str, case: Case) -> str:
        options = {"millis": ENDLESS_MILLIS} if case.endless else {}
        answer = self._witness.ask(
            "admin", line=f"{line.format(**self._names)} -n {self._server.nameserver}", **options
        )
        printed: str = answer["output"] + answer["errors"]
        if case.remember and (found := re.search(case.remember, printed)):
            self._names["found"] = found[1]
        for own, common in ((self._server.nameserver, "NAMESERVER"), (self._server.broker, "BROKER")):
            printed = printed.replace(own, common)
        return printed

    def _fill(self) -> None:
        stage = self._stage
        for topic, queues in ((TOPIC, 4), (TICKS, 1), ("made", 1), ("traced", 1)):
            stage.update_topic(topic, read=queues, write=queues)
        options = {"prefix": "order", "mode": "ordered", "orders": 4}  # the same message in the same place
        stage.produce(TOPIC, MESSAGES, keys=True, tags="red,blue", group="once", **options).finish()
        first = stage.admin(f"queryMsgByOffset -t {TOPIC} -b {BROKER_NAME} -i 1 -o 0")
        for name, pattern in (("placed", r"OffsetID:\s+(\w+)"), ("unique", r"UNIQ_KEY=(\w+)")):
            found = re.search(pattern, first)
            assert found, f"the first message has no {name}: {first}"
            self._names[name] = found[1]
        consumers = {group: stage.consume(TOPIC, group) for group in (GROUP, OFFLINE)}
        stage.produce(TICKS, rate=1, group=MAKERS).wait_sent(1)
        for group, consumer in consumers.items():
            consumer.wait_received(MESSAGES)
            if group == OFFLINE:
                consumer.stop()
            else:
                self._names["client"] = consumer.client_id
            self._wait_committed(group)

    def _wait_committed(self, group: str) -> None:
        def everything() -> bool:
            printed = self._stage.admin(f"consumerProgress -g {group}")
            numbers = [line.split()[3:5] for line in printed.splitlines() if line.startswith(TOPIC)]
            return sum(int(consumed) for _, consumed in numbers) == MESSAGES

        wait_until(everything, PATIENCE_SECONDS, f"{group} has not committed")

    def _write_lists(self) -> None:
        topics = [{"topicName": f"listed-{n}", "readQueueNums": n, "writeQueueNums": n} for n in (1, 2)]
        (self._files / "topics.json").write_text(json.dumps(topics))
        groups = [{"groupName": f"listed-group-{n}", "retryMaxTimes": n} for n in (1, 2)]
        (self._files / "groups.json").write_text(json.dumps(groups))
