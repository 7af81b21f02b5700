"""A group in the middle of its retries, while its store goes from the original to ours and back."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.stage import Stage
from tests.peers import java
from tests.peers.apache import Apache
from tests.peers.bolide import Bolide
from tests.peers.server import Broker, NameServer, ServerKind
from tests.peers.waiting import PATIENCE_SECONDS, wait_until
from tests.peers.witness import Fields, Witness

pytestmark = pytest.mark.needs("java", "mvn")

SETTINGS = {"messageDelayLevel": " ".join(["1s"] * 18), "cleanFileForciblyEnable": "false"}
LIMIT = 3


@pytest.fixture(params=java.VERSIONS, ids=lambda version: f"apache-{version}")
def witness(request: pytest.FixtureRequest, witnesses: Callable[[str], Witness]) -> Witness:
    """Clients of the same version as the original server."""
    return witnesses(request.param)


def test_retries_go_on_from_broker_to_broker_until_the_message_is_dead(
    witness: Witness, tmp_path: Path
) -> None:
    """One attempt at each stop: what waits for its retry, or lies in the retry topic, is brought by the next broker.

    The last broker buries it, and each attempt that was made at ours is in its history.
    """
    nameserver = NameServer(Bolide(), tmp_path / "nameserver").start()
    stage = Stage(witness, nameserver.address)
    kinds: list[ServerKind] = [Apache(witness.version), Bolide(), Apache(witness.version), Bolide()]
    topic, group = stage.name("topic"), stage.name("group")
    sent: list[str] = []
    tries: list[int] = []
    dead: list[Fields] = []
    broker = None
    try:
        for at, kind in enumerate(kinds):
            broker = Broker(kind, tmp_path / "broker", "broker-a", [nameserver], SETTINGS).start()
            if at == 0:
                sent = stage.produce(topic, 1).finish(first_contact_may_fail=True).bodies
            consumer = stage.consume(topic, group, fails=at + 1, reconsume=LIMIT)
            wait_until(lambda: consumer.received, PATIENCE_SECONDS, f"{kind.name} brings nothing")  # noqa: B023
            if at < len(kinds) - 1:
                consumer.stop()  # the message is sent back by then, the offset perhaps only on its way
                place, behind = (topic, 1) if at == 0 else (f"%RETRY%{group}", at)
                wait_until(
                    lambda: sum(row["committed"] for row in stage.offsets_of_group(place, group)) == behind,  # noqa: B023
                    PATIENCE_SECONDS,
                    f"{kind.name} has no offset of {place}",
                )
            tries += [one["tries"] for one in witness.events(consumer.name, "message")]
            if at == len(kinds) - 1:
                finder = stage.consume(f"%DLQ%{group}", stage.name("undertaker"))
                wait_until(lambda: finder.received, PATIENCE_SECONDS, "no dead letter")  # noqa: B023
                dead = witness.events(finder.name, "message")
            stage.close()
            broker.stop()
    finally:
        if broker is not None:
            broker.kill()
        nameserver.stop()
    assert tries == list(range(LIMIT + 1))
    ((letter),) = dead
    assert (letter["body"], letter["tries"]) == (sent[0], LIMIT + 1)
    properties = letter["properties"]
    assert properties["RETRY_TOPIC"] == topic
    assert [entry.split()[2] for entry in properties["BOLIDE_ATTEMPTS"].split("; ")] == ["4", "dead"]
