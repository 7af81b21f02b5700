"""What is run of each command, and how its two outputs are read; and why some commands are not run."""

from dataclasses import dataclass

from tests.interop.mqadmin.meaning import Reading, ends_well, figures, headings, json_keys, rows, words


@dataclass(frozen=True)
class Case:
    command: str
    lines: tuple[str, ...]
    """Run one after the other; together they show the command's effect.  Names in braces are those of a `Side`."""
    reading: Reading = rows
    more_is_fine: bool = False
    """bolide may say more than the original."""
    lines_of_5: tuple[str, ...] = ()
    """More of them, with what only 5.x has."""
    note: str = ""
    """What an operator should know; on the page."""
    endless: bool = False
    """It never ends by itself."""
    remember: str = ""
    """A pattern; what its group finds is the name `found` in the lines that follow."""
    until: str = ""
    """The last line is run again until it says this, for some seconds: some things show a moment later."""
    writes: str = ""
    """A file whose content is what counts."""


CASES = (
    # ---- topics
    Case("updateTopic", ("updateTopic -b {broker} -t made -r 3 -w 5 -p 6", "topicRoute -t made"),
         note="with fewer queues than before it hides what is in the others; `bolide topic update` does not"),
    Case("updateTopicList", ("updateTopicList -b {broker} -f {files}/topics.json", "topicRoute -t listed-1",
                             "topicRoute -t listed-2")),
    Case("updateTopicPerm", ("updateTopic -b {broker} -t perm -r 1 -w 1", "updateTopicPerm -b {broker} -t perm -p 4",
                             "topicRoute -t perm")),
    Case("deleteTopic", ("updateTopic -b {broker} -t brief -r 1 -w 1", "deleteTopic -c {cluster} -t brief",
                         "topicRoute -t brief")),
    Case("topicRoute", ("topicRoute -t {topic}", "topicRoute -t nowhere")),
    Case("topicStatus", ("topicStatus -t {topic}", "topicStatus -t nowhere")),
    Case("topicClusterList", ("topicClusterList -t {topic}",)),
    Case("topicList", ("topicList", "topicList -c")),
    Case("allocateMQ", ("allocateMQ -t {topic} -i 10.0.0.1,10.0.0.2",)),
    Case("updateOrderConf", ("updateOrderConf -t {topic} -m put -v {name}:4", "updateOrderConf -t {topic} -m get",
                             "updateOrderConf -t {topic} -m delete", "updateOrderConf -t {topic} -m get")),
    # ---- groups
    Case("updateSubGroup", ("updateSubGroup -b {broker} -g formed -r 5 -q 2", "getConsumerConfig -g formed")),
    Case("updateSubGroupList", ("updateSubGroupList -b {broker} -f {files}/groups.json",
                                "getConsumerConfig -g listed-group-2")),
    Case("deleteSubGroup", ("updateSubGroup -b {broker} -g brief-group", "deleteSubGroup -b {broker} -g brief-group")),
    Case("getConsumerConfig", ("getConsumerConfig -g {group}",),
         note="asking for a group that does not exist does not make it"),
    Case("consumerProgress", ("consumerProgress -g {offline}", "consumerProgress -g {group} -s true",
                              "consumerProgress"),
         lines_of_5=("consumerProgress -g {group} -t {topic}",),
         note="with `-g` the tool asks for the topic `%RETRY%GROUP`, and fails for a group that has none: one that"
              " only pulls"),
    Case("consumerConnection", ("consumerConnection -g {group}", "consumerConnection -g {offline}")),
    Case("consumerStatus", ("consumerStatus -g {group}", "consumerStatus -g {group} -i {client} -s",
                            "consumerStatus -g {offline}"), headings),
    Case("producerConnection", ("producerConnection -g makers -t ticks", "producerConnection -g nobody -t ticks")),
    Case("producer", ("producer -b {broker}",)),
    Case("cloneGroupOffset", ("updateSubGroup -b {broker} -g cloned",
                              "cloneGroupOffset -s {offline} -d cloned -t {topic} -o true",
                              "consumerProgress -g cloned"),
         note="the group that gets the offsets must exist, and the other one have a `%RETRY%` topic"),
    Case("resetOffsetByTime", ("resetOffsetByTime -g {offline} -t {topic} -s 0", "consumerProgress -g {offline}",
                               "resetOffsetByTime -g {offline} -t nowhere -s now"),
         lines_of_5=("resetOffsetByTime -g nobody -t {topic} -s now",
                     "resetOffsetByTime -g {group} -t {topic} -s now",
                     "resetOffsetByTime -g {offline} -t {topic} -s 0 -b {broker} -q 1 -o 99",
                     "resetOffsetByTime -g {offline} -t {topic} -s 0 -b {broker} -q 1 -o 1",
                     "consumerProgress -g {offline}"),
         note="the broker moves the group itself, online or not, as 5.x does; with `useServerSideResetOffset=false`"
              " its members do, as in 4.x"),
    Case("skipAccumulatedMessage", ("resetOffsetByTime -g {offline} -t {topic} -s 0",
                                    "skipAccumulatedMessage -g {offline} -t {topic}",
                                    "consumerProgress -g {offline}")),
    Case("startMonitoring", ("startMonitoring",), ends_well),
    # ---- messages
    Case("queryMsgById", ("queryMsgById {of_topic} -i {placed}",
                          "queryMsgById {of_topic} -i {placed} -g {group} -d {client}",
                          "queryMsgById {of_topic} -i 7F0000010000000000000000FFFFFFFF")),
    Case("queryMsgByKey", ("queryMsgByKey -t {topic} -k nothing", "queryMsgByKey -t {topic} -k key-order-000001")),
    Case("queryMsgByUniqueKey", ("queryMsgByUniqueKey -t {topic} -i {unique}",
                                 "queryMsgByUniqueKey -t {topic} -i {unique} -g {group} -d {client}")),
    Case("queryMsgByOffset", ("queryMsgByOffset -t {topic} -b {name} -i 1 -o 0",
                              "queryMsgByOffset -t {topic} -b {name} -i 1 -o 99")),
    Case("queryMsgTraceById", ("sendMessage -t traced -p hello -m true -b {name} -i 0",
                               "queryMsgTraceById -i {found}"), words,
         remember=r"SEND_OK\s+(\w+)", until=r"#Type|Pub"),
    Case("printMsg", ("printMsg -t {topic} -s red -d true",)),
    Case("printMsgByQueue", ("printMsgByQueue -t {topic} -a {name} -i 1 -p true -d true",)),
    Case("queryCq", ("queryCq -t {topic} -q 1 -i 0 -c 10 -b {broker}",
                     "queryCq -t {topic} -q 1 -i 0 -c 10 -b {broker} -g {group}",
                     "queryCq -t nowhere -q 1 -i 0 -c 10 -b {broker}")),
    Case("sendMessage", ("sendMessage -t made -p hello -k greeting -c green -b {name} -i 0",)),
    Case("consumeMessage", ("consumeMessage -t {topic} -b {name} -i 1 -o 0 -c 2",)),
    Case("sendMsgStatus", ("sendMsgStatus -b {name} -c 3",), words),
    Case("checkMsgSendRT", ("checkMsgSendRT -t made -a 3",), words,
         until=r"(?s)\A(?!.*\bfalse\b)"),
    Case("clusterRT", ("clusterRT -a 3 -i 1",), words, endless=True),
    # ---- the cluster and its brokers
    Case("clusterList", ("clusterList", "clusterList -m"), words),
    Case("brokerStatus", ("brokerStatus -b {broker}",), figures, more_is_fine=True,
         note="figures of queues and thread pools that bolide does not have are 0; times of single requests"
              " (`putLatency99`, `putMessageEntireTimeMax`, ...) are not measured; what is kept, against its limits,"
              " is told beside them"),
    Case("brokerConsumeStats", ("brokerConsumeStats -b {broker}",)),
    Case("statsAll", ("statsAll", "statsAll -a -t {topic}"), words,
         note="counts go up to the moment of the question, not to the last full ten seconds"),
    Case("getBrokerConfig", ("getBrokerConfig -b {broker}",), ends_well, note="shows bolide's own settings"),
    Case("updateBrokerConfig", ("updateBrokerConfig -b {broker} -k fileReservedTime -v 48",),
         note="changes what may change while it runs, says no to the rest; a change lasts until the broker stops"),
    Case("wipeWritePerm", ("wipeWritePerm -b {name}", "addWritePerm -b {name}")),
    Case("addWritePerm", ("addWritePerm -b {name}",)),
    Case("getNamesrvConfig", ("getNamesrvConfig",), ends_well, note="shows bolide's own settings"),
    Case("updateNamesrvConfig", ("updateNamesrvConfig -k deleteTopicWithBrokerRegistration -v false",),
         note="as `updateBrokerConfig`"),
    Case("updateKvConfig", ("updateKvConfig -s shelf -k key -v value",)),
    Case("deleteKvConfig", ("updateKvConfig -s shelf -k key -v value", "deleteKvConfig -s shelf -k key")),
    Case("cleanExpiredCQ", ("cleanExpiredCQ -b {broker}",),
         note="queues keep their numbers, see [retention](retention.md)"),
    Case("cleanUnusedTopic", ("cleanUnusedTopic -b {broker}",)),
    Case("deleteExpiredCommitLog", ("deleteExpiredCommitLog -b {broker}",)),
    Case("exportMetadata", ("exportMetadata -c {cluster} -f {files}",), json_keys, writes="metadata.json"),
    Case("exportConfigs", ("exportConfigs -c {cluster} -f {files}",), json_keys, writes="configs.json"),
    Case("exportMetrics", ("exportMetrics -c {cluster} -f {files}",), json_keys, writes="metrics.json"),
)  # fmt: skip

_POP = "no POP consumption"
_STATIC = "no static topics"
_HA = "no replication: a broker has its name alone"
_CONTROLLER = "no controller"
_CONTAINER = "no broker container: start a `bolide broker`"
_ACCESS = "no access control"
_COLD = "nothing to control: what is cold is read through the page cache like everything else"
_ROCKSDB = "no RocksDB: tables are JSON files"
_LITE = "no lite topics"

NOT_HERE = {
    "setConsumeMode": _POP,
    "exportPopRecord": _POP,
    "updateStaticTopic": _STATIC,
    "remappingStaticTopic": _STATIC,
    **dict.fromkeys(("haStatus", "getSyncStateSet", "getBrokerEpoch", "resetMasterFlushOffset"), _HA),
    **dict.fromkeys(
        (
            "electMaster",
            "cleanBrokerMetadata",
            "getControllerMetaData",
            "getControllerConfig",
            "updateControllerConfig",
        ),
        _CONTROLLER,
    ),
    **dict.fromkeys(("addBroker", "removeBroker"), _CONTAINER),
    **dict.fromkeys(("createUser", "updateUser", "deleteUser", "getUser", "listUser", "copyUser"), _ACCESS),
    **dict.fromkeys(("createAcl", "updateAcl", "deleteAcl", "getAcl", "listAcl", "copyAcl"), _ACCESS),
    **dict.fromkeys(
        (
            "updateAclConfig",
            "deleteAclConfig",
            "clusterAclConfigVersion",
            "updateGlobalWhiteAddr",
            "getAclConfig",
        ),
        _ACCESS,
    ),
    **dict.fromkeys(
        ("getColdDataFlowCtrInfo", "updateColdDataFlowCtrGroupConfig", "removeColdDataFlowCtrGroupConfig"),
        _COLD,
    ),
    "setCommitLogReadAheadMode": _COLD,
    **dict.fromkeys(
        ("checkRocksdbCqWriteProgress", "exportMetadataInRocksDB", "rocksDBConfigToJson"), _ROCKSDB
    ),
    **dict.fromkeys(
        (
            "getBrokerLiteInfo",
            "getLiteClientInfo",
            "getLiteGroupInfo",
            "getLiteTopicInfo",
            "getParentTopicInfo",
        ),
        _LITE,
    ),
    "triggerLiteDispatch": _LITE,
    "dumpCompactionLog": "no compacted topics; the command reads a local file of the original",
    "switchTimerEngine": "one timer engine: nothing to switch",
}
"""Commands that belong to what bolide does not have."""
