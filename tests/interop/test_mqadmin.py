"""The original's own administration tool, of both versions, command by command."""

import re

import pytest

from tests.interop.stage import Stage
from tests.peers.server import CLUSTER, Together
from tests.peers.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.needs("java", "mvn")


def _broker_name(stage: Stage, server: Together) -> str:
    """The name under which the shared broker stands in the cluster list."""
    for line in stage.admin("clusterList").splitlines():
        if line.startswith(CLUSTER) and server.broker in line:
            return line.split()[1]
    raise AssertionError("clusterList does not show the broker")


def test_cluster_list_shows_the_broker_with_its_address_and_version(stage: Stage, server: Together) -> None:
    (row,) = (line.split() for line in stage.admin("clusterList").splitlines() if line.startswith(CLUSTER))
    cluster, _, broker_id, address, version = row[:5]
    assert (cluster, broker_id, address) == (CLUSTER, "0", server.broker)
    assert re.fullmatch(r"V\d+_\d+_\d+(_\w+)?", version)


def test_topic_list_shows_a_new_topic(stage: Stage) -> None:
    topic = stage.topic()
    assert topic in stage.admin("topicList").split()


def test_topic_route_shows_queues_permission_and_address(stage: Stage, server: Together) -> None:
    topic = stage.topic(queues=6)
    route = re.sub(r"\s", "", stage.admin(f"topicRoute -t {topic}"))
    assert f'0:"{server.broker}"' in route or f'"0":"{server.broker}"' in route
    for part in ('"readQueueNums":6', '"writeQueueNums":6', '"perm":6', f'"cluster":"{CLUSTER}"'):
        assert part in route


def test_topic_status_shows_the_bounds_of_every_queue(stage: Stage) -> None:
    topic = stage.topic(queues=4)
    stage.produce(topic, 40).finish()
    rows = [line.split() for line in stage.admin(f"topicStatus -t {topic}").splitlines()]
    bounds = {row[1]: (row[2], row[3]) for row in rows if len(row) >= 4 and row[1].isdigit()}
    assert bounds == {str(queue): ("0", "10") for queue in range(4)}


def test_update_topic_on_one_broker_changes_queue_numbers_and_permission(
    stage: Stage, server: Together
) -> None:
    """TP-02."""
    topic = stage.topic(queues=4)
    printed = stage.admin(f"updateTopic -b {server.broker} -t {topic} -r 9 -w 7 -p 4")
    assert "success" in printed
    wait_until(lambda: stage.route_numbers(topic) == {(9, 7)}, PATIENCE_SECONDS, "the route does not change")
    assert '"perm":4' in re.sub(r"\s", "", stage.admin(f"topicRoute -t {topic}"))


def test_delete_topic_removes_it_from_broker_and_name_server(stage: Stage) -> None:
    topic = stage.topic()
    stage.produce(topic, 10).finish()
    assert "success" in stage.admin(f"deleteTopic -c {CLUSTER} -t {topic}")
    wait_until(
        lambda: topic not in stage.admin("topicList").split(), PATIENCE_SECONDS, f"{topic} is still listed"
    )


def test_a_deleted_topic_created_again_starts_empty(stage: Stage) -> None:
    topic = stage.topic(queues=2)
    stage.produce(topic, 10).finish()
    stage.admin(f"deleteTopic -c {CLUSTER} -t {topic}")
    wait_until(
        lambda: topic not in stage.admin("topicList").split(), PATIENCE_SECONDS, f"{topic} is still listed"
    )
    stage.update_topic(topic, read=2, write=2)
    assert {(row["min"], row["max"]) for row in stage.offsets(topic)} == {(0, 0)}


@pytest.mark.parametrize("command", ["cleanExpiredCQ", "cleanUnusedTopic", "deleteExpiredCommitLog"])
def test_cleaning_commands_succeed_and_leave_what_is_not_expired(
    command: str, stage: Stage, server: Together
) -> None:
    topic = stage.topic(queues=2)
    stage.produce(topic, 10).finish()
    assert "success" in stage.admin(f"{command} -b {server.broker} -c {CLUSTER}").lower()
    assert {(row["min"], row["max"]) for row in stage.offsets(topic)} == {(0, 5)}


def test_broker_status_shows_the_keys_operators_read(stage: Stage, server: Together) -> None:
    status = stage.admin(f"brokerStatus -b {server.broker}")
    keys = {line.split(":")[0].strip() for line in status.splitlines() if ":" in line}
    wanted = {
        *("brokerVersionDesc", "bootTimestamp", "putTps", "getTotalTps", "msgPutTotalTodayNow"),
        *(
            "commitLogMinOffset",
            "commitLogMaxOffset",
            "runtime",
            "commitLogDiskRatio",
            "putMessageTimesTotal",
        ),
    }
    assert not wanted - keys, f"brokerStatus lacks {sorted(wanted - keys)}"


def test_get_broker_config_shows_what_the_broker_runs_with(stage: Stage, server: Together) -> None:
    config = stage.admin(f"getBrokerConfig -b {server.broker}")
    values = dict(line.split("=", 1) for line in config.replace(" ", "").splitlines() if "=" in line)
    port = server.broker.rpartition(":")[2]
    assert values["listenPort"] == port
    assert values["brokerClusterName"] == CLUSTER
    assert values["flushDiskType"] == "ASYNC_FLUSH"
    assert values["brokerPermission"] == "6"


def test_a_key_value_pair_can_be_written_and_deleted(stage: Stage) -> None:
    key = stage.name("key")
    assert "success" in stage.admin(f"updateKvConfig -s shelf -k {key} -v value-1")
    assert "success" in stage.admin(f"deleteKvConfig -s shelf -k {key}")


def test_write_permission_can_be_wiped_and_given_back(stage: Stage, server: Together) -> None:
    """Producers see every topic of the broker without its write bit, then with it again."""
    topic, broker = stage.topic(), _broker_name(stage, server)

    def permission() -> str:
        route = stage.admin(f"topicRoute -t {topic}")
        return "".join(re.findall(r'"perm":\s*(\d)', route))

    def is_wiped() -> bool:
        """A registration with news brings the permission back, as with the original."""
        assert "] OK," in stage.admin(f"wipeWritePerm -b {broker}")
        return permission() == "4"

    try:
        wait_until(
            is_wiped,
            PATIENCE_SECONDS,
            lambda: f"the write permission is still there: {stage.admin(f'topicRoute -t {topic}')}",
        )
    finally:
        printed = stage.admin(f"addWritePerm -b {broker}")
    assert "] OK," in printed
    wait_until(lambda: permission() == "6", PATIENCE_SECONDS, "the write permission does not come back")
    stage.produce(topic, 4).finish()
