"""Where things are: codes 105 and 106."""

from collections.abc import Awaitable
from dataclasses import replace

from bolide.model.errors import RequestError, TopicNotFound
from bolide.nameserver.kv import ORDER_TOPICS
from bolide.nameserver.state import NameServerState
from bolide.net.link import Link
from bolide.wire.bodies.route import VERSION_STANDARD_JSON, TopicRoute
from bolide.wire.command import Command
from bolide.wire.headers.route import RouteRequest

BROKERS_AT_ONCE = 64
"""The route of a topic on more brokers is made piece by piece."""


def route(state: NameServerState, link: Link, request: Command) -> Command | Awaitable[Command | None]:
    """A topic's route, in the JSON that the asking client can read."""
    _check_ready(state)
    if not request.fields.get("topic"):
        raise TopicNotFound("the request names no topic")
    header = RouteRequest.decode(request.fields)
    found = _found(state, header.topic)
    standard = header.accept_standard_json_only or request.version >= VERSION_STANDARD_JSON
    if len(found.brokers) > BROKERS_AT_ONCE:
        return state.large_answers.make(
            link, request, lambda: _found(state, header.topic).pieces(bare_keys=not standard)
        )
    return request.answer(body=found.encode(bare_keys=not standard))


def cluster_info(state: NameServerState, link: Link, request: Command) -> Awaitable[Command | None]:
    return state.large_answers.make(link, request, lambda: state.routes.cluster_info().pieces())


def _found(state: NameServerState, topic: str) -> TopicRoute:
    found = state.routes.route(topic)
    if state.config.order_message_enable:
        found = replace(found, order_config=state.kv.try_get(ORDER_TOPICS, topic))
    return found


def _check_ready(state: NameServerState) -> None:
    """A name server that has just started knows few brokers yet; it may be told to keep quiet until it does."""
    if not state.config.need_wait_for_service:
        return
    ready_ms = state.started_ms + state.config.wait_seconds_for_service * 1000
    if state.clock.monotonic_ms() < ready_ms:
        raise RequestError("the name server has just started and waits for its brokers")
