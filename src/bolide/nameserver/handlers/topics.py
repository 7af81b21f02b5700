"""Topic lists, and what operators do with topics: codes 205, 206, 216, 224, 304, 311, 312, 313, 327."""

from collections.abc import Awaitable, Callable, Iterator

from bolide.model.errors import RequestError
from bolide.model.steps import Steps
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


def wipe_write_permission(state: NameServerState, link: Link, request: Command) -> Awaitable[Command]:
    return state.changes.make(link, request, _wiping(state, request))


def _wiping(state: NameServerState, request: Command) -> Steps[Command]:
    header = BrokerNameRequest.decode(request.fields)
    count = yield from state.routes.wiping_write_permission(header.broker_name)
    return request.answer(fields=WipePermAnswer(count).encode())


def add_write_permission(state: NameServerState, link: Link, request: Command) -> Awaitable[Command]:
    return state.changes.make(link, request, _adding(state, request))


def _adding(state: NameServerState, request: Command) -> Steps[Command]:
    header = BrokerNameRequest.decode(request.fields)
    count = yield from state.routes.adding_write_permission(header.broker_name)
    return request.answer(fields=AddPermAnswer(count).encode())


def delete(state: NameServerState, link: Link, request: Command) -> Awaitable[Command]:
    header = DeleteTopicRoute.decode(request.fields)

    def forget() -> Command:
        state.routes.delete_topic(header.topic, header.cluster_name)
        return request.answer()

    return state.changes.do(link, request, forget)


def list_all(state: NameServerState, link: Link, request: Command) -> Awaitable[Command | None]:
    if not state.config.enable_all_topic_list:
        raise RequestError("the list of all topics is switched off here (enableAllTopicList)")
    return _listed(state, link, request, state.routes.all_topics)


def list_of_cluster(state: NameServerState, link: Link, request: Command) -> Awaitable[Command | None]:
    _check_lists(state)
    cluster = ClusterRequest.decode(request.fields).cluster
    return _listed(state, link, request, lambda: state.routes.topics_of_cluster(cluster))


def list_system(state: NameServerState, link: Link, request: Command) -> Awaitable[Command | None]:
    _check_lists(state)
    return state.large_answers.make(link, request, lambda: state.routes.system_topics().pieces())


def list_unit(state: NameServerState, link: Link, request: Command) -> Awaitable[Command | None]:
    _check_lists(state)
    return _listed(state, link, request, state.routes.unit_topics)


def list_unit_subscription(state: NameServerState, link: Link, request: Command) -> Awaitable[Command | None]:
    _check_lists(state)
    return _listed(state, link, request, state.routes.unit_subscription_topics)


def list_unit_subscription_without_unit(
    state: NameServerState, link: Link, request: Command
) -> Awaitable[Command | None]:
    _check_lists(state)
    return _listed(state, link, request, state.routes.unit_subscription_topics_without_unit)


def _listed(
    state: NameServerState, link: Link, request: Command, listing: Callable[[], Steps[TopicList]]
) -> Awaitable[Command | None]:
    return state.large_answers.make(link, request, lambda: _pieces(listing()))


def _pieces(listing: Steps[TopicList]) -> Iterator[bytes]:
    """Nothing yet while topics are looked for, then the list."""
    while True:
        try:
            next(listing)
        except StopIteration as end:
            topics: TopicList = end.value
            break
        yield b""
    yield from topics.pieces()


def _check_lists(state: NameServerState) -> None:
    if not state.config.enable_topic_list:
        raise RequestError("topic lists are switched off here (enableTopicList)")
