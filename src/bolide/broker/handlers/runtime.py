"""The broker's state as text: what `mqadmin clusterList` and `brokerStatus` show."""

from bolide.broker.part import Part, Work, every
from bolide.broker.state import BrokerState
from bolide.machines.traffic import SAMPLE_MS
from bolide.net.link import Link
from bolide.net.registry import Handler
from bolide.store.figures import StoreFigures
from bolide.wire.bodies.route import encode_kv_table
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command

VERSION_TEXT = "V5_4_0"
"""The name of `wire.command.VERSION` in RocketMQ's MQVersion."""

_POOLS = ("send", "pull", "litePull", "query", "ack")

NOT_HERE = {
    **{f"{pool}ThreadPoolQueueSize": "0" for pool in _POOLS},
    **{f"{pool}ThreadPoolQueueHeadWaitTimeMills": "0" for pool in _POOLS},
    **{f"{pool}ThreadPoolQueueCapacity": "0" for pool in (*_POOLS, "EndTransaction")},
    "EndTransactionQueueSize": "0",
    "dispatchMaxBuffer": "0",
    "pageCacheLockTimeMills": "0",
    "remainTransientStoreBufferNumbs": "0",
    "timerDequeueTps": "0.0",
    "timerEnqueueTps": "0.0",
}
"""Queues, locks and pools that tools read and this broker does not have.  One loop serves all requests: who has to wait
for its turn is not read from, and a message is given to its queue in the step that stores it.  So 0 is the truth."""


class Runtime(Part):
    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._log_end = int(state.store.log.end)  # at the start

    def handlers(self) -> dict[RequestCode, Handler]:
        return {RequestCode.GET_BROKER_RUNTIME_INFO: self.runtime_info}

    def work(self) -> list[Work]:
        return [("traffic", every(SAMPLE_MS / 1000, self.sample_traffic))]

    def runtime_info(self, link: Link, request: Command) -> Command:
        """28: names to text."""
        figures = dict(NOT_HERE)
        for of_part in self._state.figures:
            figures |= of_part()
        return request.answer(body=encode_kv_table(dict(sorted(figures.items()))))

    def figures(self) -> dict[str, str]:
        state = self._state
        figures = {
            "brokerActive": "true",
            "brokerVersionDesc": VERSION_TEXT,
            "bootTimestamp": str(state.started_ms),
            "startAcceptSendRequestTimeStamp": "0",
            "runtime": format_duration(state.clock.now_ms() - state.started_ms),
            **store_state(state.store.figures()),
            **self._sizes(),
            **self._rates(),
        }
        _add_daily_totals(figures, "msgPut", state.store.messages_appended)
        _add_daily_totals(figures, "msgGet", state.traffic.transferred)
        return figures

    def _sizes(self) -> dict[str, str]:
        """How much the log has grown; the ends of segments, which stay empty, are little of it."""
        count, size = self._state.store.messages_appended, int(self._state.store.log.end) - self._log_end
        return {
            "putMessageSizeTotal": str(size),
            "putMessageAverageSize": str(size / count if count else 0.0),
        }

    def sample_traffic(self) -> None:
        """Remember where the counters stand."""
        traffic = self._state.traffic
        traffic.stored = self._state.store.messages_appended
        traffic.sample(self._state.clock.monotonic_ms())

    def _rates(self) -> dict[str, str]:
        """Each as three numbers: over ten seconds, a minute and ten minutes."""
        traffic = self._state.traffic
        traffic.stored = self._state.store.messages_appended
        spans = traffic.rates(self._state.clock.monotonic_ms())
        transferred = " ".join(f"{rates.transferred:.2f}" for rates in spans)
        return {
            "putTps": " ".join(f"{rates.stored:.2f}" for rates in spans),
            "getFoundTps": " ".join(f"{rates.found:.2f}" for rates in spans),
            "getMissTps": " ".join(f"{rates.missed:.2f}" for rates in spans),
            "getTotalTps": " ".join(f"{rates.found + rates.missed:.2f}" for rates in spans),
            "getTransferredTps": transferred,
            "getTransferedTps": transferred,  # what 4.9 tools look for
        }


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


def format_duration(duration_ms: int) -> str:
    """As the original writes how long it has been running."""
    seconds = max(0, duration_ms) // 1000
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"[ {days} days, {hours} hours, {minutes} minutes, {seconds} seconds ]"


def _add_daily_totals(state: dict[str, str], name: str, total: int) -> None:
    """Tools subtract the morning's count from today's.  Counts begin with the process, so the mornings are 0."""
    state[f"{name}TotalYesterdayMorning"] = "0"
    state[f"{name}TotalTodayMorning"] = "0"
    state[f"{name}TotalTodayNow"] = str(total)
