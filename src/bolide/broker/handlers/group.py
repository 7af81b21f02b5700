"""The table of groups: create, change, delete, describe."""

from collections.abc import Awaitable
from dataclasses import replace

from bolide.broker.part import Part
from bolide.broker.state import BrokerState
from bolide.model import java_json
from bolide.model.config_json import group_as_json, group_from_json
from bolide.model.errors import GroupNotFound, InvalidRequest
from bolide.model.limits import CONFIG_BYTES_MAX, TOPIC_QUEUES_MAX
from bolide.net.link import Link
from bolide.net.registry import Handler, bound
from bolide.wire.bodies.members import parse_object
from bolide.wire.bodies.topic import alter_attributes
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from bolide.wire.headers.group import DeleteGroup, GroupConfigRequest


class Groups(Part):
    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def handlers(self) -> dict[RequestCode, Handler]:
        return bound(
            self._state,
            {
                RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: update_group,
                RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: all_groups,
                RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: one_group,
                RequestCode.DELETE_SUBSCRIPTIONGROUP: delete_group,
            },
        )


def update_group(state: BrokerState, link: Link, request: Command) -> Command:
    """200: create or change a group.  Attributes come as changes to those it has: `+key` sets, `-key` removes."""
    if len(request.body) > CONFIG_BYTES_MAX:
        raise InvalidRequest(f"the group has {len(request.body)} bytes; {CONFIG_BYTES_MAX} are allowed")
    config = group_from_json(parse_object(request.body, "the group"))
    if not 0 <= config.retry_queues <= TOPIC_QUEUES_MAX:
        raise InvalidRequest(f"retryQueueNums is {config.retry_queues}; 0 to {TOPIC_QUEUES_MAX} are allowed")
    known = state.groups.get(config.name)
    attributes = alter_attributes({} if known is None else known.attributes, config.attributes)
    state.groups.put(replace(config, attributes=attributes))
    return request.answer()


def all_groups(state: BrokerState, link: Link, request: Command) -> Awaitable[Command | None]:
    """201: in one piece, also to clients that would take it in parts."""
    return state.large_answers.make(link, request, state.groups.answer_pieces())


def one_group(state: BrokerState, link: Link, request: Command) -> Command:
    """352.  Asking for a group does not create it, other than in the original."""
    name = GroupConfigRequest.decode(request.fields).group
    config = state.groups.get(name)
    if config is None:
        raise GroupNotFound(f"the group {name[:255]!r} does not exist on this broker")
    return request.answer(body=java_json.dumps(group_as_json(config)))


def delete_group(state: BrokerState, link: Link, request: Command) -> Command:
    """207: forget the group, and its offsets when asked to.  A group that is not there is no error."""
    header = DeleteGroup.decode(request.fields)
    state.groups.delete(header.group_name)
    if header.clean_offset:
        state.offsets.drop_group(header.group_name)
    return request.answer()
