"""Topics that nobody created: what a send to one, or a member of a group, makes of them.

Pure.  Whoever asks keeps the topic that comes out, if it is a new one.
"""

from dataclasses import replace

from bolide.model import names
from bolide.model.errors import TopicNotFound
from bolide.model.limits import TOPIC_QUEUES_MAX
from bolide.model.topic import UNIT_SUBSCRIPTION, Permission, TopicConfig


def topic_for_send(
    name: str, template: TopicConfig | None, queues: int, *, auto_create: bool, sys_flag: int = 0
) -> TopicConfig:
    """The topic for a send to one that is missing; `TopicNotFound` when it may not be created.

    A topic inherits from the template that the producer names (`TBW102` unless it says otherwise) if that exists and
    has the inherit bit; with automatic creation off, `TBW102` lends nothing.  A retry topic is created in any case: a
    failed message must not be lost because its group has no member on this broker.
    """
    names.check_topic(name)
    if template is not None and template.inherited and (auto_create or template.name != names.DEFAULT_TOPIC):
        count = max(1, min(queues, template.write_queues))
        perm = template.perm & ~int(Permission.INHERIT)  # an IntFlag would drop bits it does not know
        return TopicConfig(name, count, count, perm, template.filter_type, sys_flag)
    if name.startswith(names.RETRY_PREFIX):
        return TopicConfig(name, 1, 1, sys_flag=sys_flag)
    raise TopicNotFound(
        f"the topic {name!r} does not exist on this broker and is not created on demand; create it first"
    )


def topic_for_retry(
    group: str, known: TopicConfig | None, queues: int, *, order: bool = False, unit_mode: bool = False
) -> TopicConfig:
    """The retry topic of a group that gets a member, from the one it has if any: its order follows the group's."""
    if known is None:
        count = max(1, min(queues, TOPIC_QUEUES_MAX))
        sys_flag = UNIT_SUBSCRIPTION if unit_mode else 0
        return TopicConfig(names.retry_topic(group), count, count, sys_flag=sys_flag, order=order)
    return known if known.order == order else replace(known, order=order)


def topic_for_dead_letters(group: str) -> TopicConfig:
    """Where the dead letters of a group go: one queue, to be read by whoever looks into them."""
    return TopicConfig(names.dead_letter_topic(group), 1, 1)
