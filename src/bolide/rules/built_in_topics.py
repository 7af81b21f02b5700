"""The topics that every broker has from the start."""

from bolide.model import names
from bolide.model.topic import Permission, TopicConfig

SCHEDULE_QUEUES = 18
BENCHMARK_QUEUES = 1024
CLUSTER_QUEUES = 16
REVIVE_QUEUES = 8


def built_in_topics(
    cluster: str, broker_name: str, *, template_queues: int, trace_topic: str = ""
) -> list[TopicConfig]:
    """The topics of a new broker.  With fewer than two a name server refuses its first registration.

    Without queues there is no template for topics that a send makes, without a name no topic for traces."""
    template = Permission.READ_WRITE | Permission.INHERIT
    topics = [
        _topic(names.SELF_TEST_TOPIC, 1),
        _topic(names.BENCHMARK_TOPIC, BENCHMARK_QUEUES),
        _topic(cluster, CLUSTER_QUEUES, template),
        _topic(broker_name, 1, template),
        _topic(names.OFFSET_MOVED_TOPIC, 1),
        _topic(names.SCHEDULE_TOPIC, SCHEDULE_QUEUES),
        _topic(names.reply_topic(cluster), 1),
        _topic(names.HALF_TOPIC, 1),
        _topic(names.OP_HALF_TOPIC, 1),
        # The original makes it when it is needed, and then there may be no room for one more.
        _topic(names.TRANS_CHECK_MAX_TOPIC, 1),
        _topic(names.TIMER_TOPIC, 1),
        _topic(f"{names.SYSTEM_TOPIC_PREFIX}REVIVE_LOG_{cluster}", REVIVE_QUEUES),
        _topic(f"{names.SYSTEM_TOPIC_PREFIX}SYNC_BROKER_MEMBER_{broker_name}", 1, Permission.INHERIT),
    ]
    if template_queues:
        topics.append(_topic(names.DEFAULT_TOPIC, template_queues, template))
    if trace_topic:
        topics.append(_topic(trace_topic, 1))
    return topics


def _topic(name: str, queues: int, perm: int = Permission.READ_WRITE) -> TopicConfig:
    return TopicConfig(name, queues, queues, perm)
