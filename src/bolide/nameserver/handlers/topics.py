"""Topic lists, and what operators do with topics: codes 205, 206, 216, 224, 304, 311, 312, 313, 327."""

from collections.abc import Awaitable

from bolide.model.errors import RequestError
from bolide.nameserver.state import NameServerState
from bolide.net.link import Link
from bolide.wire.bodies.route import TopicList
from bolide.wire.command import Command
from bolide.wire.headers.route import (
    AddPermAnswer,
    BrokerNameRequest,
    ClusterRequest,
    DeleteTopicRoute,
    WipePermAnswer,
)


async def wipe_write_permission(state: NameServerState, link: Link, request: Command) -> Command:
    header = BrokerNameRequest.decode(request.fields)
    async with state.changes.turn(request):
        count = state.routes.wipe_write_permission(header.broker_name)
    return request.answer(fields=WipePermAnswer(count).encode())


async def add_write_permission(state: NameServerState, link: Link, request: Command) -> Command:
    header = BrokerNameRequest.decode(request.fields)
    async with state.changes.turn(request):
        count = state.routes.add_write_permission(header.broker_name)
    return request.answer(fields=AddPermAnswer(count).encode())


async def delete(state: NameServerState, link: Link, request: Command) -> Command:
    header = DeleteTopicRoute.decode(request.fields)
    async with state.changes.turn(request):
        state.routes.delete_topic(header.topic, header.cluster_name)
    return request.answer()


def list_all(state: NameServerState, link: Link, request: Command) -> Awaitable[Command | None]:
    if not state.config.enable_all_topic_list:
        raise RequestError("the list of all topics is switched off here (enableAllTopicList)")
    return _listed(state, link, request, state.routes.all_topics())


def list_of_cluster(state: NameServerState, link: Link, request: Command) -> Awaitable[Command | None]:
    _check_lists(state)
    cluster = ClusterRequest.decode(request.fields).cluster
    return _listed(state, link, request, state.routes.topics_of_cluster(cluster))


def list_system(state: NameServerState, link: Link, request: Command) -> Awaitable[Command | None]:
    _check_lists(state)
    return _listed(state, link, request, state.routes.system_topics())


def list_unit(state: NameServerState, link: Link, request: Command) -> Awaitable[Command | None]:
    _check_lists(state)
    return _listed(state, link, request, state.routes.unit_topics())


def list_unit_subscription(state: NameServerState, link: Link, request: Command) -> Awaitable[Command | None]:
    _check_lists(state)
    return _listed(state, link, request, state.routes.unit_subscription_topics())


def list_unit_subscription_without_unit(
    state: NameServerState, link: Link, request: Command
) -> Awaitable[Command | None]:
    _check_lists(state)
    return _listed(state, link, request, state.routes.unit_subscription_topics_without_unit())


def _listed(
    state: NameServerState, link: Link, request: Command, topics: TopicList
) -> Awaitable[Command | None]:
    return state.large_answers.make(link, request, topics.pieces())


def _check_lists(state: NameServerState) -> None:
    if not state.config.enable_topic_list:
        raise RequestError("topic lists are switched off here (enableTopicList)")
