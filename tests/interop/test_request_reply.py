"""Questions with replies: Java producers ask, Java consumers answer, and the broker brings the two together."""

from collections.abc import Iterator

import pytest

from tests.interop.stage import Stage
from tests.peers.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.needs("java", "mvn")

REQUESTER_PATIENCE_MS = 2_000


@pytest.fixture
def topic(stage: Stage) -> str:
    return stage.topic(queues=2)


@pytest.fixture
def replier(stage: Stage, topic: str) -> Iterator[str]:
    name = stage.name("replier")
    group = stage.name("repliers")
    stage.witness.ask("reply", name=name, topic=topic, group=group, nameserver=stage.nameserver, size=8192)
    yield name
    stage.witness.ask("stop", name=name)


def test_each_request_gets_the_reply_to_it(stage: Stage, topic: str, replier: str) -> None:
    """RR-01: a request returns the replier's body by its correlation id."""
    name = stage.name("requester")
    answer = stage.witness.ask("request", name=name, topic=topic, count=20, nameserver=stage.nameserver)
    assert answer["errors"] == []
    assert answer["replies"] == [f"re: {name}-{number:06d}" for number in range(20)]
    events = stage.witness.events(replier, "replied")
    assert {event["result"] for event in events} == {"SEND_OK"}


def test_a_request_that_nobody_answers_ends_with_its_time_and_a_late_reply_fails(
    stage: Stage, topic: str
) -> None:
    """RR-01: no replier: timeout."""
    answer = stage.witness.ask(
        "request",
        name=stage.name("requester"),
        topic=topic,
        timeout=REQUESTER_PATIENCE_MS,
        nameserver=stage.nameserver,
    )
    assert answer["replies"] == []
    (error,) = answer["errors"]
    assert "RequestTimeoutException" in error
    name, group = stage.name("replier"), stage.name("repliers")
    stage.witness.ask("reply", name=name, topic=topic, group=group, nameserver=stage.nameserver)
    try:
        wait_until(
            lambda: bool(stage.witness.events(name, "replied")),
            PATIENCE_SECONDS,
            lambda: "nobody has replied",
        )
    finally:
        stage.witness.ask("stop", name=name)
    assert "Exception" in stage.witness.events(name, "replied")[0]["result"]
