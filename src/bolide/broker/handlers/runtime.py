"""The broker's state as text: what `mqadmin clusterList` and `brokerStatus` show."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from bolide.broker.cleaner import RetentionFigures
from bolide.net.link import Link
from bolide.store.figures import StoreFigures
from bolide.wire.bodies.route import encode_kv_table
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command

if TYPE_CHECKING:
    from bolide.broker.app import Broker

VERSION_TEXT = "V5_4_0"
"""The name of `wire.command.VERSION` in RocketMQ's MQVersion."""

_POOLS = ("send", "pull", "litePull", "query", "ack")

NOT_HERE = {
    **{f"{pool}ThreadPoolQueueSize": "0" for pool in _POOLS},
    **{f"{pool}ThreadPoolQueueHeadWaitTimeMills": "0" for pool in _POOLS},
    "dispatchMaxBuffer": "0",
    "pageCacheLockTimeMills": "0",
    "remainTransientStoreBufferNumbs": "0",
    "timerCongestNum": "0",
    "timerDequeueTps": "0.0",
    "timerEnqueueTps": "0.0",
    "timerOffsetBehind": "0",
    "timerReadBehind": "0",
}
"""Queues, locks and pools that tools read and this broker does not have.  One loop serves all requests as they come
and gives a message to its queue in the step that stores it, so nothing ever waits there: 0 is the truth."""


def runtime_info(broker: "Broker", link: Link, request: Command) -> Command:
    """28: names to text."""
    state = NOT_HERE | store_state(broker.store.figures()) | retention_state(broker.cleaner.figures())
    state["brokerActive"] = "true"
    state["brokerVersionDesc"] = VERSION_TEXT
    state["bootTimestamp"] = str(broker.started_ms)
    state["startAcceptSendRequestTimeStamp"] = "0"
    state["runtime"] = format_duration(broker.clock.now_ms() - broker.started_ms)
    state |= _rates(broker)
    _add_daily_totals(state, "msgPut", broker.store.messages_appended)
    _add_daily_totals(state, "msgGet", broker.traffic.transferred)
    return request.answer(body=encode_kv_table(dict(sorted(state.items()))))


def store_state(figures: StoreFigures) -> dict[str, str]:
    """The store's figures, under the names that tools know."""
    ratio = f"{figures.disk_used_ratio:.4f}"
    return {
        "commitLogMinOffset": str(figures.log_start),
        "commitLogMaxOffset": str(figures.log_end),
        "commitLogDiskRatio": ratio,
        "consumeQueueDiskRatio": ratio,
        "remainHowManyDataToFlush": f"{figures.undurable_bytes} B",
        "dispatchBehindBytes": str(figures.unindexed_bytes),
        "putMessageTimesTotal": str(figures.messages_appended),
        "damagedMessagesPassedOver": str(figures.damaged_passed_over),
    }


def retention_state(figures: RetentionFigures) -> dict[str, str]:
    earliest_ms = figures.earliest_stored_ms
    state = {
        "earliestMessageTimeStamp": str(-1 if earliest_ms is None else earliest_ms),
        f"commitLogDiskRatio_{figures.log_folder}": f"{figures.disk_used_ratio:.4f}",
    }
    if figures.refusal is not None:
        state["putMessageRefusal"] = figures.refusal
    return state


def format_duration(duration_ms: int) -> str:
    """As the original writes how long it has been running."""
    seconds = max(0, duration_ms) // 1000
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"[ {days} days, {hours} hours, {minutes} minutes, {seconds} seconds ]"


def sample_traffic(broker: "Broker") -> None:
    """Remember where the counters stand; the broker calls this every second."""
    broker.traffic.stored = broker.store.messages_appended
    broker.traffic.sample(broker.clock.monotonic_ms())


def _rates(broker: "Broker") -> dict[str, str]:
    """Each as three numbers: over ten seconds, a minute and ten minutes."""
    broker.traffic.stored = broker.store.messages_appended
    spans = broker.traffic.rates(broker.clock.monotonic_ms())
    return {
        "putTps": " ".join(f"{rates.stored:.2f}" for rates in spans),
        "getFoundTps": " ".join(f"{rates.found:.2f}" for rates in spans),
        "getMissTps": " ".join(f"{rates.missed:.2f}" for rates in spans),
        "getTotalTps": " ".join(f"{rates.found + rates.missed:.2f}" for rates in spans),
        "getTransferredTps": " ".join(f"{rates.transferred:.2f}" for rates in spans),
        "getTransferedTps": " ".join(
            f"{rates.transferred:.2f}" for rates in spans
        ),  # what 4.9 tools look for
    }


def _add_daily_totals(state: dict[str, str], name: str, total: int) -> None:
    """Tools subtract the morning's count from today's.  Counts begin with the process, so the mornings are 0."""
    state[f"{name}TotalYesterdayMorning"] = "0"
    state[f"{name}TotalTodayMorning"] = "0"
    state[f"{name}TotalTodayNow"] = str(total)


HANDLERS: dict[RequestCode, Callable[["Broker", Link, Command], Command]] = {
    RequestCode.GET_BROKER_RUNTIME_INFO: runtime_info,
}
