"""Values that no setting, topic, group or offset can have: each is refused in words, and costs nobody anything later.

The last test is the point of all others: a broker that was asked for all of this stops cleanly, starts again, and is
known to its name server as before.
"""

import json

import pytest

from tests.peers import frames
from tests.peers.frames import Answer, Connection, send_fields
from tests.peers.server import Together
from tests.peers.waiting import PATIENCE_SECONDS, wait_until

UPDATE_TOPIC, UPDATE_SETTINGS, GET_SETTINGS, UPDATE_OFFSET, PULL = 17, 25, 26, 15, 11
UPDATE_GROUP, GET_GROUP, DELETE_GROUP = 200, 352, 207
SUCCESS, INVALID = 0, 29
HUGE = "1" + "0" * 400
MORE_THAN_64_BITS = (HUGE, "4" + "0" * 35, str(2**63), "-" + HUGE)


def ask(server: Together, code: int, fields: dict[str, str] | None = None, body: bytes = b"") -> Answer:
    with Connection(server.broker) as connection:
        return connection.ask(code, fields, body)


def settings_of(server: Together) -> dict[str, str]:
    lines = ask(server, GET_SETTINGS).body.decode().splitlines()
    return dict(line.split("=", 1) for line in lines)


def is_routed(server: Together, topic: str) -> bool:
    with Connection(server.nameserver) as connection:
        return connection.ask(frames.GET_ROUTE, {"topic": topic}).code == SUCCESS


def make_topic(server: Together, topic: str, **fields: str) -> Answer:
    given = {"topic": topic, "readQueueNums": "4", "writeQueueNums": "4", "perm": "6"}
    return ask(
        server, UPDATE_TOPIC, given | {"defaultTopic": "TBW102", "topicFilterType": "SINGLE_TAG"} | fields
    )


# ---- settings: rule 1 --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", MORE_THAN_64_BITS)
@pytest.mark.parametrize(
    "key",
    [
        *("flushIntervalCommitLog", "flushCommitLogThoroughInterval", "flushConsumeQueueThoroughInterval"),
        *("syncFlushTimeout", "deleteCommitLogFilesInterval", "deleteConsumeQueueFilesInterval"),
        *("redeleteHangedFileInterval", "fileReservedTime", "shortPollingTimeMills", "deleteFileBatchMax"),
        *("maxTransferBytesOnMessageInMemory", "maxTransferCountOnMessageInDisk", "brokerPermission"),
    ],
)
def test_a_setting_of_more_than_64_bits_is_refused(server: Together, key: str, value: str) -> None:
    before = settings_of(server)
    answer = ask(server, UPDATE_SETTINGS, body=f"{key}={value}".encode())
    assert answer.code == INVALID
    assert key in answer.remark
    assert len(answer.remark) < 300, "what was given is not given back"
    assert settings_of(server) == before


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("flushIntervalCommitLog", "3600000"),
        ("deleteCommitLogFilesInterval", str(2**31)),
        ("shortPollingTimeMills", "30000"),
        ("maxTransferBytesOnMessageInMemory", str(2**30)),
        ("maxTransferCountOnMessageInMemory", str(2**31 - 1)),
    ],
)
def test_nor_does_background_work_sleep_for_ever_or_an_answer_grow_without_bound(
    server: Together, key: str, value: str
) -> None:
    assert ask(server, UPDATE_SETTINGS, body=f"{key}={value}".encode()).code == INVALID


def test_the_largest_pull_that_can_be_set_fits_a_frame(server: Together) -> None:
    """Method: 40 messages of 1 MiB, and a reader that asks for everything; before, such a pull was 229 MiB."""
    with Connection(server.broker) as connection:
        for _ in range(40):
            assert (
                connection.ask(frames.SEND_MESSAGE_V2, send_fields("Large"), bytes(1024**2)).code == SUCCESS
            )
        largest = b"maxTransferBytesOnMessageInMemory=8388608\nmaxTransferCountOnMessageInMemory=32768"
        assert connection.ask(UPDATE_SETTINGS, body=largest).code == SUCCESS
        header = {"consumerGroup": "TOOLS_CONSUMER", "topic": "Large", "queueId": "0", "queueOffset": "0"}
        header |= {"maxMsgNums": str(2**31 - 1), "sysFlag": "4", "subscription": "*", "commitOffset": "0"}
        answer = connection.ask(PULL, header | {"suspendTimeoutMillis": "0", "subVersion": "0"})
        assert answer.code == SUCCESS
        assert 7 * 1024**2 < len(answer.body) <= 8 * 1024**2


def test_a_held_pull_is_answered_whatever_was_set(server: Together) -> None:
    with Connection(server.broker) as connection:
        short = b"longPollingEnable=false\nshortPollingTimeMills=1"
        assert connection.ask(UPDATE_SETTINGS, body=short).code == SUCCESS
        assert make_topic(server, "Empty").code == SUCCESS
        header = {"consumerGroup": "TOOLS_CONSUMER", "topic": "Empty", "queueId": "0", "queueOffset": "0"}
        header |= {"maxMsgNums": "32", "sysFlag": "6", "subscription": "*", "commitOffset": "0"}
        answer = connection.ask(PULL, header | {"suspendTimeoutMillis": str(2**63 - 1), "subVersion": "0"})
        assert answer.code == 19
        assert connection.ask(UPDATE_SETTINGS, body=b"longPollingEnable=true").code == SUCCESS


# ---- topics, groups, offsets: rule 2 -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("topicSysFlag", value) for value in (str(2**40), str(2**31), HUGE)),
        *(("perm", value) for value in ("8", "-1", str(2**40), HUGE)),
        *(("readQueueNums", value) for value in ("0", "16385", str(2**31), HUGE)),
        ("topicFilterType", "SINGLE_TAG x"),
        ("attributes", "+a=" + "x" * 30_000),
        ("order", "maybe"),
    ],
)
def test_a_topic_that_could_not_be_read_again_is_refused(server: Together, field: str, value: str) -> None:
    answer = make_topic(server, "Impossible", **{field: value})
    assert (answer.code == INVALID) == (field != "order"), answer.remark
    assert is_routed(server, "Impossible") == (field == "order")


@pytest.mark.parametrize(
    "members",
    [
        {"retryQueueNums": 2**31},
        {"retryMaxTimes": 2**40},
        {"consumeTimeoutMinute": 1.5},
        {"groupSysFlag": True},
        {"brokerId": 2**63},
        {"attributes": {"+a": 1}},
        {"attributes": {"+a": "x" * 70_000}},
        {"unknown": "x" * 70_000},
    ],
)
def test_a_group_that_could_not_be_read_again_is_refused(
    server: Together, members: dict[str, object]
) -> None:
    body = json.dumps({"groupName": "impossible"} | members).encode()
    assert ask(server, UPDATE_GROUP, body=body).code == INVALID
    assert ask(server, GET_GROUP, {"group": "impossible"}).code != SUCCESS


@pytest.mark.parametrize("levels", [65, 600, 1_000, 30_000])
@pytest.mark.parametrize("key", ['"a"', "0"])
def test_nesting_is_bounded_on_input(server: Together, levels: int, key: str) -> None:
    body = b'{"groupName":"deep",%b:%b}' % (key.encode(), b"[" * levels + b"]" * levels)
    assert ask(server, UPDATE_GROUP, body=body).code in (INVALID, 1)
    assert ask(server, GET_GROUP, {"group": "deep"}).code != SUCCESS


def test_attributes_that_come_little_by_little_are_bounded_too(server: Together) -> None:
    taken = 0
    for number in range(8):
        body = json.dumps({"groupName": "greedy", "attributes": {f"+{number}": "x" * 20_000}}).encode()
        taken += ask(server, UPDATE_GROUP, body=body).code == SUCCESS
    assert taken == 3
    assert len(ask(server, GET_GROUP, {"group": "greedy"}).body) < 65_536


@pytest.mark.parametrize("value", [HUGE, str(2**63), "1e400", "1.5", "true"])
def test_an_offset_is_a_number_of_64_bits(server: Together, value: str) -> None:
    assert frames.try_send(server.nameserver, server.broker, "Offsets")
    header = {"consumerGroup": "TOOLS_CONSUMER", "topic": "Offsets", "queueId": "0", "commitOffset": value}
    assert ask(server, UPDATE_OFFSET, header).code == INVALID
    assert ask(server, UPDATE_OFFSET, header | {"commitOffset": "0", "queueId": value}).code == INVALID
    assert ask(server, UPDATE_OFFSET, header | {"commitOffset": str(2**63 - 1)}).code == SUCCESS
    asked = {"consumerGroup": "TOOLS_CONSUMER", "topic": "Offsets", "queueId": "0"}
    kept = ask(server, frames.QUERY_CONSUMER_OFFSET, asked).fields["offset"]
    assert int(kept) == frames.readable(server.broker, "Offsets", 1), "as far as the queue goes"


def test_after_all_of_this_the_broker_stops_cleanly_starts_again_and_is_known(server: Together) -> None:
    assert make_topic(server, "Sound").code == SUCCESS
    (process,) = server.processes
    server.stop()
    assert process.exit_code == 0, process.log_tail()
    assert "Traceback" not in process.log_tail()
    server.start()
    assert is_routed(server, "Sound")
    assert ask(server, DELETE_GROUP, {"groupName": "greedy"}).code == SUCCESS


IMPOSSIBLE = {
    "consumerOffset.json": '{"offsetTable":{"Offsets@TOOLS_CONSUMER":{"0":1e400}}}',
    "topics.json": '{"topicConfigTable":{"Bad":{"topicName":"Bad","topicSysFlag":1099511627776}}}',
    "subscriptionGroup.json": '{"subscriptionGroupTable":{"g":' + "[" * 1_000 + "]" * 1_000 + "}}",
}


def test_files_with_impossible_values_give_way_to_their_backups(server: Together) -> None:
    for number in range(2):  # so that there is a backup of what counts
        assert make_topic(server, "Kept", readQueueNums=str(4 + number)).code == SUCCESS
        group = json.dumps({"groupName": "kept", "retryMaxTimes": number}).encode()
        assert ask(server, UPDATE_GROUP, body=group).code == SUCCESS
        header = {"consumerGroup": "TOOLS_CONSUMER", "topic": "started", "queueId": "0"}
        assert ask(server, UPDATE_OFFSET, header | {"commitOffset": str(number)}).code == SUCCESS
        server.stop()
        if number == 0:
            server.start()
    (config,) = server.home.rglob("config")
    for name, text in IMPOSSIBLE.items():
        (config / name).write_text(text)
    server.start()
    wait_until(lambda: is_routed(server, "Kept"), PATIENCE_SECONDS, "the topic has a route")
    assert ask(server, GET_GROUP, {"group": "kept"}).code == SUCCESS
    said = server.processes[-1].log_tail()
    for name in IMPOSSIBLE:
        assert f"using {config / name}.bak because the file it backs up is damaged" in said
