"""What is known of routes follows the name servers, whichever of them answer and whichever topics they still have."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from random import Random

from bolide.client.routes import RouteCache
from bolide.model.names import DEFAULT_TOPIC
from bolide.net.caller import Caller
from bolide.net.clock import SystemClock
from tests.unit.client.scripted import HOST, ScriptedNameServer, cluster


@asynccontextmanager
async def cache_of(*nameservers: str) -> AsyncIterator[RouteCache]:
    """One that begins with the first name server."""
    caller = Caller(SystemClock())
    try:
        yield RouteCache(caller, nameservers, _First())
    finally:
        await caller.close()


class _First(Random):
    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        return 0


async def _asked(cache: RouteCache, topics: Sequence[str]) -> None:
    for topic in topics:
        await cache.route(topic)


def test_a_topic_that_is_gone_does_not_keep_its_broker_at_the_old_address() -> None:
    async def scenario() -> None:
        async with cluster() as c, cache_of(c.nameserver.address) as cache:
            for topic in ("stays", "goes"):
                c.create(topic, 1)
            await _asked(cache, ("stays", "goes"))
            (broker,) = c.brokers
            before, broker.address = broker.address, f"{HOST}:1"
            del c.nameserver.topics["goes"]
            assert await cache.refresh()
            assert cache.address(broker.name) == f"{HOST}:1"
            assert cache.addresses(masters_only=False) == [f"{HOST}:1"]
            broker.address = before
            assert await cache.refresh()
            assert cache.address(broker.name) == before

    asyncio.run(scenario())


def test_of_two_routes_the_one_that_was_asked_for_last_says_where_a_broker_is() -> None:
    """Also when that is the one that says what it has said before."""

    async def scenario() -> None:
        async with cluster() as c, cache_of(c.nameserver.address) as cache:
            for topic in ("stays", "goes"):
                c.create(topic, 1)
            (broker,) = c.brokers
            address = broker.address
            await _asked(cache, ["stays"])
            broker.address = f"{HOST}:1"  # for a moment, in which the other route is asked for
            await _asked(cache, ["goes"])
            assert cache.address(broker.name) == f"{HOST}:1"
            del c.nameserver.topics["goes"]
            broker.address = address
            assert await cache.refresh()
            assert cache.address(broker.name) == address
            assert not await cache.refresh()

    asyncio.run(scenario())


def test_brokers_that_no_route_names_any_more_are_forgotten() -> None:
    async def scenario() -> None:
        async with cluster(brokers=2) as c, cache_of(c.nameserver.address) as cache:
            old, new = c.brokers
            c.nameserver.topics["orders"] = [(old, 1, 6)]
            await _asked(cache, ["orders"])
            c.nameserver.topics["orders"] = [(new, 1, 6)]
            assert await cache.refresh()
            assert cache.addresses(masters_only=False) == [new.address]

    asyncio.run(scenario())


def test_a_topic_that_does_not_exist_yet_follows_the_brokers_that_would_create_it() -> None:
    async def scenario() -> None:
        async with cluster(brokers=2) as c, cache_of(c.nameserver.address) as cache:
            old, new = c.brokers
            c.nameserver.topics[DEFAULT_TOPIC] = [(old, 1, 7)]
            for topic in ("orders", "bills"):
                route, is_borrowed = await cache.route_for_sending(topic)
                assert (list(route.brokers), is_borrowed) == ([old.name], True)
            c.nameserver.topics[DEFAULT_TOPIC] = [(new, 1, 7)]
            assert await cache.refresh()
            for topic in ("orders", "bills"):
                route, is_borrowed = await cache.route_for_sending(topic)
                assert (list(route.brokers), is_borrowed) == ([new.name], True)
            assert cache.addresses(masters_only=False) == [new.address]
            assert not await cache.refresh()

    asyncio.run(scenario())


def test_a_borrowed_route_stays_in_use_while_nobody_creates_topics() -> None:
    async def scenario() -> None:
        async with cluster() as c, cache_of(c.nameserver.address) as cache:
            c.create(DEFAULT_TOPIC, 1)
            borrowed = await cache.route_for_sending("orders")
            del c.nameserver.topics[DEFAULT_TOPIC]
            assert not await cache.refresh()
            assert await cache.route_for_sending("orders") == borrowed
            c.create("orders", 1)
            assert await cache.refresh()
            assert (await cache.route_for_sending("orders"))[1] is False

    asyncio.run(scenario())


def test_questions_side_by_side_all_find_the_name_server_that_answers() -> None:
    """They meet the one that is down at the same moment."""

    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            c.create("more", 1)
            other = ScriptedNameServer()
            other.topics = c.nameserver.topics
            await other.start()
            async with cache_of(c.nameserver.address, other.address) as cache:
                await _asked(cache, ["orders"])
                await c.nameserver.stop()
                changed, route = await asyncio.gather(cache.refresh(), cache.route("more"))
                assert (changed, list(route.brokers)) == (False, [c.brokers[0].name])
                before = len(other.seen)
                await cache.refresh()
                assert len(other.seen) == before + 2, "and stay with it"
            await other.stop()

    asyncio.run(scenario())
