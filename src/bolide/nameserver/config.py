"""Settings of a name server, under the original's key names, and which of them may change while it runs (318).

What the original has and this name server has not is taken, so that an existing file works, and reported; modes that
would change what it does are refused, unless they are said to be off.
"""

import dataclasses
from functools import partial

from bolide.model.addresses import PORT_MAX, check_host
from bolide.model.setting import flag, number, text
from bolide.model.settings_table import Foreign, SettingsTable

_WITHOUT_EFFECT = """
    rocketmqHome configStorePath configBlackList productEnvName clientRequestThreadPoolNums defaultThreadPoolNums
    clientRequestThreadPoolQueueCapacity defaultThreadPoolQueueCapacity unRegisterBrokerQueueCapacity
    notifyMinBrokerIdChanged serverWorkerThreads serverCallbackExecutorThreads serverSelectorThreads
    serverOnewaySemaphoreValue serverAsyncSemaphoreValue serverChannelMaxIdleTimeSeconds serverSocketSndBufSize
    serverSocketRcvBufSize writeBufferHighWaterMark writeBufferLowWaterMark serverSocketBacklog
    serverNettyWorkerGroupEnable serverPooledByteBufAllocatorEnable enableShutdownGracefully shutdownWaitTimeSeconds
    useEpollNativeSelector
"""
_MUST_BE_OFF = "clusterTest supportActingMaster enableControllerInNamesrv"

FOREIGN = {
    **{key: Foreign(key, (), "this has no effect here", refused=False) for key in _WITHOUT_EFFECT.split()},
    **{
        key: Foreign(key, ("false",), "this is not available, the name server has no such mode", refused=True)
        for key in _MUST_BE_OFF.split()
    },
}
"""Settings of the original that this name server does not have, by key."""


@dataclasses.dataclass(frozen=True)
class NameServerConfig(SettingsTable):
    SERVER = "name server"
    FOREIGN = FOREIGN

    # fmt: off
    host: str = text(
        "bindAddress", "0.0.0.0", "the address to listen on", length=(0, 255), more=partial(check_host, "bindAddress"))
    port: int = number("listenPort", 9876, 0, PORT_MAX, "the port to listen on")
    kv_config_path: str = text(
        "kvConfigPath", "", "the file of key-value settings; they are kept in memory alone if it is empty")
    scan_interval_ms: int = number(
        "scanNotActiveBrokerInterval", 5_000, 1, 3_600_000, "milliseconds between two looks for silent brokers")
    order_message_enable: bool = flag(
        "orderMessageEnable", False, "whether routes say which queues of ordered topics there are", live=True)
    return_order_topics: bool = flag(
        "returnOrderTopicConfigToBroker", True, "whether brokers that register are told of ordered topics", live=True)
    forget_absent_topics: bool = flag(
        "deleteTopicWithBrokerRegistration", False, "whether a topic goes that its broker does not name any more",
        live=True)
    enable_all_topic_list: bool = flag(
        "enableAllTopicList", True, "whether it lists all topics to whoever asks", live=True)
    enable_topic_list: bool = flag(
        "enableTopicList", True, "whether it lists the topics of a cluster, of the system and of units", live=True)
    need_wait_for_service: bool = flag(
        "needWaitForService", False, "whether it gives no routes for a while after its start", live=True)
    wait_seconds_for_service: int = number(
        "waitSecondsForService", 45, 0, 86_400, "seconds of that while, in which brokers register", live=True)
    # fmt: on
