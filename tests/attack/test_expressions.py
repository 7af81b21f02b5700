"""SQL expressions of strangers: long, deep, slow to judge, and asked of messages made for them.

An expression takes memory by its length, and a pull does a bounded amount of work, whatever it asks for.
"""

import pytest

from bolide.model.limits import EXAMINED_BYTES_MAX, SQL_LENGTH_MAX
from bolide.model.topic import Subscription
from bolide.rules.filters import SQL
from bolide.wire.bodies.group import ClientCheck
from tests.attack.stage import ask_all, frame, grows_at_most, strangers, takes_messages
from tests.peers import frames
from tests.peers.server import Together

PULL, CHECK_CLIENT = 11, 46
FOUND, NOT_MATCHED, PARSE_FAILED = 0, 20, 23
TOPIC = "expressions"
PROPERTIES_BYTES = 30_000

pytestmark = pytest.mark.usefixtures("bystander")


@pytest.fixture(scope="module", autouse=True)
def topic(server: Together) -> None:
    takes_messages(server, TOPIC)


def check(expression: str) -> bytes:
    subscription = Subscription(TOPIC, expression, expression_type=SQL)
    return frame(CHECK_CLIENT, {}, ClientCheck("c", "g", subscription).encode())


def nested(levels: int, name: str) -> str:
    expression = name
    for _ in range(levels):
        expression = f"-({expression} BETWEEN 1 AND 2)"
    return f"{expression} IS NULL"


def test_what_is_nested_takes_no_more_memory_than_its_length(server: Together) -> None:
    """Of each level the one below was kept twice: twenty such requests took 1 GiB."""
    with strangers(server.broker, 1) as (connection,), grows_at_most(server, 20):
        requests = [check(nested(15, f"a{number}")) for number in range(200)]
        assert {answer["code"] for answer in ask_all(connection, b"".join(requests))} == {0}


@pytest.mark.parametrize(
    "expression",
    [
        "a IN (" + ", ".join(["'x'"] * SQL_LENGTH_MAX) + ")",
        "(" * 4000,
        " OR ".join(["a = 1"] * 300),
        "'" * 4001,
    ],
    ids=["long", "deep", "many", "quotes"],
)
def test_an_expression_that_would_cost_much_is_refused_with_words(server: Together, expression: str) -> None:
    with strangers(server.broker, 1) as (connection,):
        (answer,) = ask_all(connection, check(expression))
    assert answer["code"] == PARSE_FAILED
    assert len(answer["remark"]) < 300


def test_a_pull_looks_through_messages_made_to_be_slow_a_few_at_a_time(server: Together) -> None:
    terms = 30
    expression = " OR ".join(["a CONTAINS 'xxxxxxxxy'"] * terms)
    with frames.Connection(server.broker) as connection:
        first = frames.readable(server.broker, TOPIC, 1)
        fields = frames.send_fields(TOPIC) | {"i": "a\x01" + "x" * PROPERTIES_BYTES}
        for _ in range(20):
            assert connection.ask(frames.SEND_MESSAGE_V2, fields, b"x").code == FOUND
        asked = {
            **{"consumerGroup": "TOOLS_CONSUMER", "topic": TOPIC, "queueId": "0", "queueOffset": str(first)},
            **{"maxMsgNums": "32", "sysFlag": "4", "commitOffset": "0", "suspendTimeoutMillis": "0"},
            **{"subVersion": "0", "subscription": expression, "expressionType": SQL},
        }
        answer = connection.ask(PULL, asked)
    passed = int(answer.fields["nextBeginOffset"]) - first
    assert answer.code == NOT_MATCHED
    assert 0 < passed <= EXAMINED_BYTES_MAX // (terms * PROPERTIES_BYTES) + 1 < 20
