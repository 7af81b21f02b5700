"""Large heartbeats: nobody waits for one, and what follows it on its connection comes after it."""

import asyncio
from pathlib import Path

from bolide.model import java_json
from bolide.wire.bodies import group as group_bodies
from bolide.wire.bodies.group import decode_member_ids
from bolide.wire.command import Command
from tests.unit.broker.stage import connect, serving
from tests.unit.net.stage import Wire
from tests.unit.net.turns import counted_by_turn


async def answer_of(wire: Wire) -> Command:
    """The next one; members are told of each other in between."""
    while (answer := await wire.next()).code == 40:
        pass
    return answer


def test_a_large_heartbeat_is_taken_in_steps_before_the_next_frame_of_its_connection(tmp_path: Path) -> None:
    """Four thousand subscriptions took 30 ms in one go, of every turn of the loop."""
    rows = [
        {
            "topic": f"T{number}",
            "subString": "a || b",
            "tagsSet": ["a", "b"],
            "codeSet": [97, 98],
            "subVersion": 7,
        }
        for number in range(4000)
    ]
    consumers = [
        {"groupName": f"g{number}", "subscriptionDataSet": rows[100 * number : 100 * number + 100]}
        for number in range(40)
    ]
    body = java_json.dumps(
        {"clientID": "c", "consumerDataSet": consumers, "producerDataSet": [{"groupName": "p"}]}
    )

    async def run() -> None:
        async with serving(tmp_path) as (broker, wire):
            other = await connect(broker)
            with counted_by_turn(group_bodies, "subscription_from_json") as read:
                wire.send(Command(34, {}, body, opaque=1), Command(38, {"consumerGroup": "g39"}, opaque=2))
                other.send(Command(34, {}, body.replace(b'"c"', b'"d"', 1), opaque=3))
                answers = [await answer_of(wire), await answer_of(wire)]
                assert (await answer_of(other)).code == 0
            assert [(answer.opaque, answer.code) for answer in answers] == [(1, 0), (2, 0)]
            assert "c" in decode_member_ids(answers[1].body)
            clients = broker.state.clients
            assert clients.has_producers("p")
            for number in (0, 17, 39):
                known = clients.group(f"g{number}")
                assert known is not None
                assert len(known.subscriptions) == 100
            assert read.total == 8000
            assert read.most <= 1024

    asyncio.run(run())
