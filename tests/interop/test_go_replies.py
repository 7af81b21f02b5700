"""The Go client 2.1.2: requests with replies."""

import pytest

from tests.interop.stage import BareStage
from tests.peers.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.needs("go")

COUNT = 10


def test_each_request_gets_the_reply_to_it(go: BareStage) -> None:
    """RR-01."""
    topic = go.topic(queues=2)
    replier = go.consume(topic, go.name("repliers"), reply=True)
    replier.wait_queues(topic, 2)
    name = go.name("requester")
    answer = go.witness.ask(
        "request", name=name, topic=topic, count=COUNT, nameserver=go.nameserver, seconds=PATIENCE_SECONDS
    )
    assert answer["errors"] == []
    assert answer["replies"] == [f"re: {name}-{number:06d}" for number in range(COUNT)]
    assert go.witness.events(replier.name, "unanswered") == []
