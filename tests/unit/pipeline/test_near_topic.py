"""A read of a topic that nobody has names the one that was meant."""

import asyncio

import pytest

from bolide import Message, Producer
from bolide.model.errors import RouteNotFound
from bolide.pipeline.options import parse_options
from bolide.pipeline.plan import plan_read
from bolide.testing import EmbeddedServer


def test_a_read_of_a_misspelled_topic_names_the_one_that_is_there(
    bolide_module_server: EmbeddedServer,
) -> None:
    server = bolide_module_server
    with Producer(server.nameserver, group="shop") as producer:
        producer.send(Message("orders", b"paid"))

    def planned(topic: str) -> None:
        asyncio.run(plan_read(parse_options({"nameserver": server.nameserver, "subscribe": topic})))

    with pytest.raises(RouteNotFound, match=r"no broker has the topic 'ordres': did you mean orders\?"):
        planned("ordres")
    with pytest.raises(RouteNotFound, match="no broker has the topic 'zzz' "):
        planned("zzz")
