"""The table of groups: create, change, delete, describe."""

from collections.abc import Awaitable, Iterator
from dataclasses import replace

from bolide.broker.config_lists import judging, put_each
from bolide.broker.part import Part, Work, every
from bolide.broker.state import BrokerState
from bolide.model import java_json
from bolide.model.addresses import host_of
from bolide.model.config_json import group_as_json, group_from_json
from bolide.model.errors import InvalidRequest, PermissionDenied
from bolide.model.limits import CONFIG_BYTES_MAX, TOPIC_QUEUES_MAX
from bolide.model.names import SYSTEM_GROUPS, check_group
from bolide.model.steps import slices
from bolide.model.topic import GroupConfig
from bolide.net.link import Link
from bolide.net.registry import Handler, bound
from bolide.net.turns import Slices, in_turns
from bolide.rules.topic_creation import topic_for_retry
from bolide.wire.bodies.admin import decode_group_list
from bolide.wire.bodies.members import parse_object
from bolide.wire.bodies.topic import alter_attributes
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from bolide.wire.headers.group import DeleteGroup, GroupConfigRequest

SWEEP_S = 60.0
LOOKED_AT_PER_TURN = 512


class Groups(Part):
    """In a crowded table, groups go that nobody would miss: without settings, offsets and members, they are made
    again when somebody comes for them.  Where groups are not made on demand, all of them stay."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._unused: set[str] = set()  # when they were looked at last
        self._look: Iterator[None] = iter(())
        self._looking = Slices(self._look_on)

    def handlers(self) -> dict[RequestCode, Handler]:
        return bound(
            self._state,
            {
                RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: update_group,
                RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: update_groups,
                RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: all_groups,
                RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: one_group,
                RequestCode.DELETE_SUBSCRIPTIONGROUP: delete_group,
            },
        )

    def work(self) -> list[Work]:
        return [("unused groups", every(SWEEP_S, self.forget_unused))]

    def close(self) -> None:
        self._looking.close()

    def forget_unused(self) -> None:
        """Whoever was unused the last time, and still is: a client may be between its pull and its first commit."""
        if not self._looking.is_going:
            if self._state.settings.now.auto_create_group and self._state.groups.is_crowded:
                self._look = self._look_at([group.name for group in self._state.groups])
            else:
                self._unused.clear()
        self._looking.go()

    def _look_on(self) -> bool:
        for _ in self._look:
            return True
        return False

    def _look_at(self, names: list[str]) -> Iterator[None]:
        """In steps: some groups, or some topics that one of them has read."""
        for some in slices(names, LOOKED_AT_PER_TURN):
            unused = {name for name in some if _is_unused(self._state, name)}
            for name in unused & self._unused:
                yield from self._state.offsets.dropping_pulls(name)
                if _is_unused(self._state, name):  # nobody has come for it meanwhile
                    _forget(self._state, name)
            self._unused.difference_update(some)
            self._unused.update(name for name in unused if name in self._state.groups)
            yield


def update_group(state: BrokerState, link: Link, request: Command) -> Command:
    """200: create or change a group.  Attributes come as changes to those it has: `+key` sets, `-key` removes."""
    if len(request.body) > CONFIG_BYTES_MAX:
        raise InvalidRequest(f"the group has {len(request.body)} bytes; {CONFIG_BYTES_MAX} are allowed")
    config = group_from_json(parse_object(request.body, "the group"))
    state.groups.put(_altered(config, state.groups.get(config.name)), host_of(link.remote))
    return request.answer()


async def update_groups(state: BrokerState, link: Link, request: Command) -> Command:
    """225: several at once.  All are looked at before the first one is made, so that a mistake makes none.

    Only a table that becomes full stops it midway, or somebody who changes one of them meanwhile.
    """
    groups, host = state.groups, host_of(link.remote)
    judged = await in_turns(judging(decode_group_list(request.body), _altered, groups.get))
    await put_each(judged, _altered, groups.get, lambda config: groups.put(config, host))
    return request.answer()


def _altered(config: GroupConfig, known: GroupConfig | None) -> GroupConfig:
    """The group as it is to be, from what was sent of it."""
    check_group(config.name)
    if not 0 <= config.retry_queues <= TOPIC_QUEUES_MAX:
        raise InvalidRequest(f"retryQueueNums is {config.retry_queues}; 0 to {TOPIC_QUEUES_MAX} are allowed")
    attributes = alter_attributes({} if known is None else known.attributes, config.attributes)
    return replace(config, attributes=attributes)


def all_groups(state: BrokerState, link: Link, request: Command) -> Awaitable[Command | None]:
    """201: in one piece, also to clients that would take it in parts."""
    return state.large_answers.make(link, request, state.groups.answer_pieces)


def one_group(state: BrokerState, link: Link, request: Command) -> Command:
    """352.  Asking for a group does not create it, other than in the original."""
    name = GroupConfigRequest.decode(request.fields).group
    return request.answer(body=java_json.dumps(group_as_json(state.groups.require(name))))


def delete_group(state: BrokerState, link: Link, request: Command) -> Command | Awaitable[Command]:
    """207: forget the group, and its offsets when asked to.  A group that is not there is no error."""
    header = DeleteGroup.decode(request.fields)
    if header.group_name in SYSTEM_GROUPS:
        raise PermissionDenied(f"{header.group_name} is the broker's own, and stays")
    state.groups.delete(header.group_name)
    return (
        _answer_without_offsets(state, request, header.group_name)
        if header.clean_offset
        else request.answer()
    )


async def _answer_without_offsets(state: BrokerState, request: Command, group: str) -> Command:
    await in_turns(state.offsets.dropping_group(group))
    return request.answer()


def _is_unused(state: BrokerState, name: str) -> bool:
    return (
        state.groups.is_as_made(name)
        and state.clients.group(name) is None
        and not state.offsets.has_committed(name)
    )


def _forget(state: BrokerState, name: str) -> None:
    """Its retry topic goes with it, if that is as it was made and was never written to."""
    made = topic_for_retry(name, None, GroupConfig(name).retry_queues, order=False, unit_mode=False)
    if state.topics.get(made.name) == made and not any(
        state.store.queues.find(made.name, queue_id) for queue_id in range(made.queues)
    ):
        state.topics.delete(made.name)
        state.remover.forget(made.name)
    state.groups.delete(name)
    state.offsets.drop_group(name)
