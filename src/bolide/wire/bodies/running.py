"""What a consumer answers to an operator, passed on by its broker: what it does right now (307), and how a message went
that it was given (309)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bolide.model import java_json, json_pieces
from bolide.model.offsets import MessageQueue
from bolide.model.topic import Subscription
from bolide.wire.bodies.group import subscription_as_json
from bolide.wire.bodies.members import number, parse_answer, text
from bolide.wire.bodies.queue import queue_as_key

MIB = 1024 * 1024


class RunningProperty:
    """Names that operators' tools look for among the settings of a consumer (RocketMQ: ConsumerRunningInfo)."""

    NAMESERVER = "PROP_NAMESERVER_ADDR"
    CONSUME_TYPE = "PROP_CONSUME_TYPE"
    CLIENT_VERSION = "PROP_CLIENT_VERSION"
    ORDERLY = "PROP_CONSUMEORDERLY"
    THREADS = "PROP_THREADPOOL_CORE_SIZE"
    STARTED_MS = "PROP_CONSUMER_START_TIMESTAMP"


class DirectVerdict:
    """How a message went that a listener was given by hand (RocketMQ: CMResult)."""

    SUCCESS = "CR_SUCCESS"
    LATER = "CR_LATER"
    ROLLBACK = "CR_ROLLBACK"
    COMMIT = "CR_COMMIT"
    RAISED = "CR_THROW_EXCEPTION"


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """What a consumer holds of one queue (RocketMQ: ProcessQueueInfo).  Times are by the clock on the wall."""

    commit_offset: int
    messages: int
    size_bytes: int
    first: int
    last: int
    pulled_ms: int
    consumed_ms: int
    locked: bool = False
    locked_ms: int = 0
    uncommitted: int = 0
    is_leaving: bool = False

    def as_json(self) -> dict[str, Any]:
        return {
            "cachedMsgCount": self.messages,
            "cachedMsgMaxOffset": self.last,
            "cachedMsgMinOffset": self.first,
            "cachedMsgSizeInMiB": self.size_bytes // MIB,
            "commitOffset": self.commit_offset,
            "droped": self.is_leaving,
            "lastConsumeTimestamp": self.consumed_ms,
            "lastLockTimestamp": self.locked_ms,
            "lastPullTimestamp": self.pulled_ms,
            "locked": self.locked,
            "transactionMsgCount": self.uncommitted,
            "transactionMsgMaxOffset": 0,
            "transactionMsgMinOffset": 0,
            "tryUnlockTimes": 0,
        }


@dataclass(frozen=True, slots=True)
class TopicFigures:
    """How a group consumes a topic (RocketMQ: ConsumeStatus)."""

    pull_ms: float
    pulled_per_second: float
    call_ms: float
    handled_per_second: float
    failed_per_second: float
    failed_in_an_hour: int

    def as_json(self) -> dict[str, Any]:
        return {
            "consumeFailedMsgs": self.failed_in_an_hour,
            "consumeFailedTPS": self.failed_per_second,
            "consumeOKTPS": self.handled_per_second,
            "consumeRT": self.call_ms,
            "pullRT": self.pull_ms,
            "pullTPS": self.pulled_per_second,
        }


def running_info_pieces(
    properties: Mapping[str, str],
    subscriptions: Iterable[Subscription],
    queues: Iterable[tuple[MessageQueue, QueueFigures]],
    topics: Iterable[tuple[str, TopicFigures]],
    stacks: str,
) -> Iterator[bytes]:
    """The answer to 307 (RocketMQ: ConsumerRunningInfo)."""
    return json_pieces.compact(
        {
            "jstack": stacks,
            "mqPopTable": {},
            "mqTable": json_pieces.Entries((queue_as_key(queue), one.as_json()) for queue, one in queues),
            "properties": dict(properties),
            "statusTable": json_pieces.Entries((topic, one.as_json()) for topic, one in topics),
            "subscriptionSet": [subscription_as_json(one) for one in subscriptions],
            "userConsumerInfo": {},
        }
    )


@dataclass(frozen=True, slots=True)
class DirectResult:
    """RocketMQ: ConsumeMessageDirectlyResult."""

    verdict: str
    """One of CMResult: CR_SUCCESS, CR_LATER, CR_THROW_EXCEPTION and others."""
    remark: str
    took_ms: int
    is_orderly: bool = False
    commits_by_itself: bool = True

    @property
    def is_success(self) -> bool:
        return self.verdict in (DirectVerdict.SUCCESS, DirectVerdict.COMMIT)

    def encode(self) -> bytes:
        return java_json.dumps(
            {
                "autoCommit": self.commits_by_itself,
                "consumeResult": self.verdict,
                "order": self.is_orderly,
                "remark": self.remark,
                "spentTimeMills": self.took_ms,
            }
        )


def decode_direct_result(body: bytes) -> DirectResult:
    members = parse_answer(body, "the result of consuming")
    return DirectResult(
        text(members, "consumeResult"), text(members, "remark"), number(members, "spentTimeMills")
    )
