"""The broker among its name servers."""

import asyncio
from pathlib import Path

from bolide.model.topic import TopicConfig
from bolide.nameserver.config import NameServerConfig
from bolide.wire.codes import RequestCode
from tests.unit.broker.stage import serving as broker_serving
from tests.unit.nameserver.stage import eventually, serving


def test_a_topic_with_an_order_configuration_becomes_an_ordered_one_and_stays_it(tmp_path: Path) -> None:
    """The configuration comes with the answer to a registration; topics that it does not name are left alone."""

    async def main() -> None:
        async with serving(NameServerConfig(return_order_topics=True)) as stage:
            put = {"namespace": "ORDER_TOPIC_CONFIG", "key": "steps", "value": "broker-a:4"}
            await stage.ask(RequestCode.PUT_KV_CONFIG, put)
            async with broker_serving(tmp_path, {"namesrvAddr": stage.address}) as (broker, _):
                topics = broker.state.topics
                for name in ("steps", "others"):
                    topics.put(TopicConfig(name, 4, 4))
                topics.put(TopicConfig("by-hand", 4, 4, order=True))
                await broker.state.known_everywhere()
                topics.delete("others")  # which takes the whole table to tell, and an answer to that
                await eventually(lambda: topics.require("steps").order)
                assert topics.require("by-hand").order
                await stage.ask(RequestCode.DELETE_KV_CONFIG, put)
                topics.put(TopicConfig("more", 4, 4))
                await broker.state.known_everywhere()
                assert topics.require("steps").order
                assert not topics.require("more").order

    asyncio.run(main())
