"""What the driver does for each kind of work.

Each is a generator: what comes before its `yield` prepares, what comes behind it is measured.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

from bolide.model import java_json
from bolide.model.config_json import group_as_json
from bolide.model.topic import GroupConfig
from bolide.net.caller import Caller
from bolide.wire.bodies.properties import format_settings
from bolide.wire.bodies.route import decode_kv_table
from bolide.wire.codes import RequestCode as Code
from bolide.wire.headers.group import ConsumeStatsRequest, GroupConfigRequest, GroupRequest, UnregisterClient
from bolide.wire.headers.offset import UpdateGroupOffset
from bolide.wire.headers.topic import TopicRequest, UpdateTopic
from bolide.wire.schema import Header
from tests.bench.callbacks.driver import CROWD_GROUP, PLAIN, Driver, until
from tests.bench.callbacks.scene import (
    BUSY,
    DOOMED,
    QUEUES,
    QUIET,
    READS_ALL,
    SEGMENT_BYTES,
    SHARED,
    WIDE,
    WIDE_QUEUES,
)
from tests.bench.sides import Untrustworthy

CONNECTIONS = 64
MESSAGES = 500
TIMES = 5
ROLLS = 3
LARGE_BODY = b"x" * 16 * 1024
HOLD_MS = 20_000
HOLD_BRIEFLY_MS = 5_000
SILENCE_MS = 130_000
"""More than clients, connections and brokers may be silent."""

Work = Callable[[Driver], AsyncIterator[None]]


async def sends(driver: Driver) -> AsyncIterator[None]:
    yield
    await _send_all(driver, PLAIN)


async def odd_sends(driver: Driver) -> AsyncIterator[None]:
    yield
    await _send_all(driver, "")


async def _send_all(driver: Driver, properties: str) -> None:
    queues = [number % QUEUES for number in range(MESSAGES)]
    members = driver.crowd[:CONNECTIONS]
    await asyncio.gather(*(driver.send(BUSY, queues, by=one, properties=properties) for one in members))


async def new_queues(driver: Driver) -> AsyncIterator[None]:
    yield
    names = driver.scene.topic_names
    for start in range(0, len(names), MESSAGES):
        await asyncio.gather(*(driver.send(name, [0]) for name in names[start : start + MESSAGES]))


async def pulls(driver: Driver) -> AsyncIterator[None]:
    yield

    async def read(member: Caller) -> None:
        for offset in range(0, MESSAGES, 32):
            if (answer := await driver.pull(member, BUSY, offset)).code != 0:
                raise Untrustworthy(f"a pull from {offset}: code {answer.code} {answer.remark}")

    await asyncio.gather(*map(read, driver.crowd[:CONNECTIONS]))


async def wake(driver: Driver) -> AsyncIterator[None]:
    held = await driver.hold(HOLD_MS)
    yield
    await driver.send(QUIET, [0])
    if any(answer.code != 0 for answer in await held):
        raise Untrustworthy("a held pull was answered without the message")


async def sweep(driver: Driver) -> AsyncIterator[None]:
    held = await driver.hold(HOLD_BRIEFLY_MS)
    yield
    await held


async def roll(driver: Driver) -> AsyncIterator[None]:
    before = await _segment(driver)
    yield
    await driver.send(BUSY, [0] * (ROLLS * SEGMENT_BYTES // len(LARGE_BODY)), body=LARGE_BODY)
    if (rolls := await _segment(driver) - before) < ROLLS:
        raise Untrustworthy(f"{rolls} rolls instead of {ROLLS}")


async def _segment(driver: Driver) -> int:
    """The number of the segment that is written to."""
    state = decode_kv_table((await driver.ask(Code.GET_BROKER_RUNTIME_INFO)).body)
    return int(state["commitLogMaxOffset"]) // SEGMENT_BYTES


async def create_topic(driver: Driver) -> AsyncIterator[None]:
    yield
    for number in range(TIMES):
        await driver.ask(Code.UPDATE_AND_CREATE_TOPIC, UpdateTopic(f"new-{number}"))


async def delete_topic(driver: Driver) -> AsyncIterator[None]:
    await driver.send(DOOMED, range(WIDE_QUEUES))
    yield
    await driver.ask(Code.DELETE_TOPIC_IN_BROKER, TopicRequest(DOOMED))


async def dump_topics(driver: Driver) -> AsyncIterator[None]:
    yield
    topic = UpdateTopic(QUIET, read_queues=QUEUES, write_queues=QUEUES, order=True)
    await driver.written("topics.json", lambda: driver.ask(Code.UPDATE_AND_CREATE_TOPIC, topic))


async def dump_groups(driver: Driver) -> AsyncIterator[None]:
    yield
    group = java_json.dumps(group_as_json(GroupConfig(READS_ALL, retry_queues=2)))
    await driver.written(
        "subscriptionGroup.json",
        lambda: driver.ask(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=group),
    )


async def dump_offsets(driver: Driver) -> AsyncIterator[None]:
    yield
    offset = UpdateGroupOffset(READS_ALL, SHARED, 1, 0)
    await driver.written("consumerOffset.json", lambda: driver.ask(Code.UPDATE_CONSUMER_OFFSET, offset))


async def registration(driver: Driver) -> AsyncIterator[None]:
    """The broker's permission masks that of every topic, so the whole table is told."""
    yield
    for permission in ("4", "6"):
        await _change(driver, brokerPermission=permission)


def asking(code: Code, header: Header | None = None, *, at_nameserver: bool = False) -> Work:
    async def ask(driver: Driver) -> AsyncIterator[None]:
        if code is Code.GET_TOPIC_STATS_INFO:
            await driver.send(WIDE, range(WIDE_QUEUES))
        yield
        for _ in range(TIMES):
            await driver.ask(code, header, at=driver.nameserver if at_nameserver else None)

    return ask


async def change_setting(driver: Driver) -> AsyncIterator[None]:
    yield
    await _change(driver, flushIntervalCommitLog="501")


async def new_group(driver: Driver) -> AsyncIterator[None]:
    yield
    for number in range(TIMES):
        await driver.join(driver.admin, f"newcomer-{number}", f"new-group-{number}")


async def member_exit(driver: Driver) -> AsyncIterator[None]:
    """One says so, one is simply gone."""
    yield
    leaver, gone = driver.crowd.pop(), driver.crowd.pop()
    header = UnregisterClient(f"member-{len(driver.crowd) + 1}", consumer_group=CROWD_GROUP)
    await driver.ask(Code.UNREGISTER_CLIENT, header, by=leaver)
    await leaver.close()
    await gone.close()


async def retention(driver: Driver) -> AsyncIterator[None]:
    full = sorted((driver.data / "commitlog").iterdir())[:ROLLS]
    yield
    await _change(driver, fileReservedTime="0")
    await driver.ask(Code.DELETE_EXPIRED_COMMITLOG)
    await until(lambda: not any(segment.exists() for segment in full))


async def expiry(driver: Driver) -> AsyncIterator[None]:
    yield
    driver.command(f"later {SILENCE_MS}")
    links = [await member.link(driver.broker) for member in driver.crowd]
    await until(lambda: not any(link.is_open for link in links))


async def _change(driver: Driver, **settings: str) -> None:
    await driver.ask(Code.UPDATE_BROKER_CONFIG, body=format_settings(settings))


WORK: Mapping[str, Work] = {
    "sends": sends,
    "odd_sends": odd_sends,
    "new_queues": new_queues,
    "pulls": pulls,
    "wake": wake,
    "sweep": sweep,
    "roll": roll,
    "create_topic": create_topic,
    "delete_topic": delete_topic,
    "dump_topics": dump_topics,
    "dump_groups": dump_groups,
    "dump_offsets": dump_offsets,
    "register_broker": registration,
    "ask_21": asking(Code.GET_ALL_TOPIC_CONFIG),
    "ask_201": asking(Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG),
    "ask_43": asking(Code.GET_ALL_CONSUMER_OFFSET),
    "ask_202": asking(Code.GET_TOPIC_STATS_INFO, TopicRequest(WIDE)),
    "ask_208": asking(Code.GET_CONSUME_STATS, ConsumeStatsRequest(READS_ALL)),
    "ask_300": asking(Code.QUERY_TOPIC_CONSUME_BY_WHO, TopicRequest(SHARED)),
    "ask_343": asking(Code.QUERY_TOPICS_BY_CONSUMER, GroupConfigRequest(READS_ALL)),
    "ask_305": asking(Code.GET_SYSTEM_TOPIC_LIST_FROM_BROKER),
    "ask_28": asking(Code.GET_BROKER_RUNTIME_INFO),
    "ask_25": change_setting,
    "ask_26": asking(Code.GET_BROKER_CONFIG),
    "ask_38": asking(Code.GET_CONSUMER_LIST_BY_GROUP, GroupRequest(CROWD_GROUP)),
    "ask_203": asking(Code.GET_CONSUMER_CONNECTION_LIST, GroupRequest(CROWD_GROUP)),
    "ask_206": asking(Code.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, at_nameserver=True),
    "new_group": new_group,
    "member_exit": member_exit,
    "retention": retention,
    "expiry": expiry,
}
"""By key of the kind.  The name server's end of a registration comes with the broker's, a checkpoint with retention."""
