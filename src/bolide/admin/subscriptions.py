"""Members of one group that want different messages: who wants what.

A broker has one set of subscriptions for a group, and the newest heartbeat wins: members that expect another one lose
messages, and nobody is told.  bolide's brokers compare the members and tell (203).  Others do not; but each of them
hears the members in its own order, so brokers that have different subscriptions show it too.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from bolide.admin.groups import GroupMembers
from bolide.model.topic import TAG, Subscription


@dataclass(frozen=True, slots=True)
class Difference:
    """What is wanted of one topic, and by whom; None: nothing."""

    topic: str
    wanted: Mapping[str | None, tuple[str, ...]]


def differences(members: GroupMembers) -> list[Difference]:
    """By topic, where not all want the same."""
    told: dict[str, Mapping[str, str]] = {
        client_id: dict(one.subscriptions)
        for one in members.differences
        if one.subscriptions is not None
        for client_id in one.client_ids
    }
    by_broker = {
        f"as {broker} has it": {one.topic: _expression(one) for one in view.subscriptions}
        for broker, view in members.views.items()
    }
    return compare(told) or compare(by_broker)


def compare(wants: Mapping[str, Mapping[str, str]]) -> list[Difference]:
    """The topics of which not everybody wants the same, given what each one wants of each topic."""
    found: list[Difference] = []
    for topic in sorted({topic for wanted in wants.values() for topic in wanted}):
        speakers: dict[str | None, list[str]] = {}
        for speaker, wanted in wants.items():
            speakers.setdefault(wanted.get(topic), []).append(speaker)
        if len(speakers) > 1:
            found.append(Difference(topic, {what: tuple(who) for what, who in speakers.items()}))
    return found


def _expression(subscription: Subscription) -> str:
    """What is wanted, the same for the same tags in another order."""
    if subscription.expression_type == TAG:
        return " || ".join(sorted(subscription.tags)) or subscription.expression
    return f"{subscription.expression_type}: {subscription.expression}"
