"""Watch: looks at the group's offsets all the time.  None passes a message that nobody has consumed, unless it has
failed and its broker brings it again."""

from bolide.model.offsets import MessageQueue
from tests.simulation.ledger import Ledger
from tests.simulation.nodes import GROUP, QUEUES, TOPIC, BrokerNode
from tests.simulation.world import Broken, World

LOOK_S = 1.0


async def watch_offsets(world: World, ledger: Ledger, brokers: list[BrokerNode]) -> None:
    """For ever; `Broken` when a member that takes over would miss a message."""
    checked: dict[MessageQueue, int] = {}
    while True:
        await world.sleep(LOOK_S)
        for broker in brokers:
            for number in range(QUEUES) if broker.is_ready else ():
                queue = MessageQueue(TOPIC, broker.name, number)
                offset = broker.broker.state.offsets.query(GROUP, TOPIC, number) or 0
                for passed in range(checked.get(queue, 0), offset):
                    body = ledger.places.get(queue, {}).get(passed)
                    if body is not None and body not in ledger.times_consumed.keys() | ledger.given_back:
                        raise Broken(f"the group is at {offset} in {queue}, and nobody has consumed {body!r}")
                checked[queue] = max(offset, checked.get(queue, 0))
