"""What every broker has from the start, as the original has it."""

from bolide.rules.built_in_topics import built_in_topics


def test_a_new_broker_has_the_topics_of_the_original_and_that_for_what_is_given_up() -> None:
    topics = built_in_topics("DefaultCluster", "broker-a", template_queues=8)
    shapes = {config.name: (config.read_queues, config.write_queues, config.perm) for config in topics}
    assert shapes == {
        "SELF_TEST_TOPIC": (1, 1, 6),
        "BenchmarkTest": (1024, 1024, 6),
        "DefaultCluster": (16, 16, 7),
        "broker-a": (1, 1, 7),
        "OFFSET_MOVED_EVENT": (1, 1, 6),
        "SCHEDULE_TOPIC_XXXX": (18, 18, 6),
        "DefaultCluster_REPLY_TOPIC": (1, 1, 6),
        "RMQ_SYS_TRANS_HALF_TOPIC": (1, 1, 6),
        "RMQ_SYS_TRANS_OP_HALF_TOPIC": (1, 1, 6),
        "TRANS_CHECK_MAX_TIME_TOPIC": (1, 1, 6),
        "rmq_sys_wheel_timer": (1, 1, 6),
        "rmq_sys_REVIVE_LOG_DefaultCluster": (8, 8, 6),
        "rmq_sys_SYNC_BROKER_MEMBER_broker-a": (1, 1, 1),
        "TBW102": (8, 8, 7),
    }


def test_without_automatic_creation_there_is_no_template() -> None:
    topics = {config.name for config in built_in_topics("C", "b", template_queues=0)}
    assert "TBW102" not in topics
    assert len(topics) == 13
