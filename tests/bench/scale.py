"""How much of everything one run does."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Durations are per workload and per side; a round runs every chosen workload once on each side."""

    name: str
    rounds: int
    jvm_warm_seconds: int
    warm_seconds: int
    run_seconds: int
    consume_messages: int
    latency_seconds: int
    starts: int
    topics: int
    idle_connections: int
    recovery_messages: int
    indexed_messages: int
    segment_rolls: int
    passing_topics: int
    scene_topics: int
    scene_groups: int
    held_pulls: int
    attack_seconds: int
    pending_messages: int
    spark_messages: int
    spark_few: int
    spark_many: int
    client_messages: int
    client_sends: int
    client_many: int


FULL = Scale(
    name="full",
    rounds=3,
    jvm_warm_seconds=15,
    warm_seconds=5,
    run_seconds=10,
    consume_messages=1_000_000,
    latency_seconds=30,
    starts=3,
    topics=1_000,
    idle_connections=1_000,
    recovery_messages=8_000_000,
    indexed_messages=5_000_000,
    segment_rolls=10,
    passing_topics=1_000,
    scene_topics=10_000,
    scene_groups=10_000,
    held_pulls=1_000,
    attack_seconds=10,
    pending_messages=10_000_000,
    spark_messages=5_000_000,
    spark_few=1_000_000,
    spark_many=20_000_000,
    client_messages=3_000_000,
    client_sends=4_000,
    client_many=10_000_000,
)
QUICK = Scale(
    name="quick",
    rounds=1,
    jvm_warm_seconds=5,
    warm_seconds=2,
    run_seconds=4,
    consume_messages=200_000,
    latency_seconds=8,
    starts=1,
    topics=200,
    idle_connections=200,
    recovery_messages=1_000_000,
    indexed_messages=500_000,
    segment_rolls=10,
    passing_topics=200,
    scene_topics=10_000,
    scene_groups=10_000,
    held_pulls=1_000,
    attack_seconds=4,
    pending_messages=500_000,
    spark_messages=200_000,
    spark_few=200_000,
    spark_many=4_000_000,
    client_messages=300_000,
    client_sends=1_000,
    client_many=1_000_000,
)
SMOKE = Scale(
    name="smoke",
    rounds=1,
    jvm_warm_seconds=1,
    warm_seconds=1,
    run_seconds=1,
    consume_messages=2_000,
    latency_seconds=1,
    starts=1,
    topics=10,
    idle_connections=10,
    recovery_messages=10_000,
    indexed_messages=10_000,
    segment_rolls=1,
    passing_topics=10,
    scene_topics=100,
    scene_groups=100,
    held_pulls=70,
    attack_seconds=1,
    pending_messages=2_000,
    spark_messages=5_000,
    spark_few=1_000,
    spark_many=20_000,
    client_messages=60_000,
    client_sends=30,
    client_many=10_000,
)
