"""Requests of RocketMQ 4.9 and 5.5 that no server here knows, and why.

Whoever sends one is told the reason, and docs/compatibility.md lists them.
"""

_AREAS = (
    (
        "no POP consumption, which the proxy needs",
        """
        SET_MESSAGE_REQUEST_MODE=401 GET_ALL_MESSAGE_REQUEST_MODE=402 QUERY_ASSIGNMENT=400 POP_MESSAGE=200050
        ACK_MESSAGE=200051 PEEK_MESSAGE=200052 CHANGE_MESSAGE_INVISIBLETIME=200053 NOTIFICATION=200054
        POLLING_INFO=200055 POP_ROLLBACK=200056 BATCH_ACK_MESSAGE=200151
        """,
    ),
    (
        "no lite topics",
        """
        POP_LITE_MESSAGE=200070 LITE_SUBSCRIPTION_CTL=200071 ACK_LITE_MESSAGE=200072 NOTIFY_UNSUBSCRIBE_LITE=200073
        GET_BROKER_LITE_INFO=200074 GET_PARENT_TOPIC_INFO=200075 GET_LITE_TOPIC_INFO=200076
        GET_LITE_CLIENT_INFO=200077 GET_LITE_GROUP_INFO=200078 TRIGGER_LITE_DISPATCH=200079
        """,
    ),
    (
        "no replication: a broker has its name alone",
        """
        EXCHANGE_BROKER_HA_INFO=906 GET_BROKER_HA_STATUS=907 RESET_MASTER_FLUSH_OFFSET=908
        GET_BROKER_EPOCH_CACHE=1007
        """,
    ),
    (
        "no controller",
        """
        CONTROLLER_ALTER_SYNC_STATE_SET=1001 CONTROLLER_ELECT_MASTER=1002 CONTROLLER_REGISTER_BROKER=1003
        CONTROLLER_GET_REPLICA_INFO=1004 CONTROLLER_GET_METADATA_INFO=1005 CONTROLLER_GET_SYNC_STATE_DATA=1006
        NOTIFY_BROKER_ROLE_CHANGED=1008 UPDATE_CONTROLLER_CONFIG=1009 GET_CONTROLLER_CONFIG=1010
        CLEAN_BROKER_DATA=1011 CONTROLLER_GET_NEXT_BROKER_ID=1012 CONTROLLER_APPLY_BROKER_ID=1013
        """,
    ),
    ("no broker container: start a `bolide broker`", "ADD_BROKER=902 REMOVE_BROKER=903"),
    (
        "no access control",
        """
        UPDATE_AND_CREATE_ACL_CONFIG=50 DELETE_ACL_CONFIG=51 GET_BROKER_CLUSTER_ACL_INFO=52
        UPDATE_GLOBAL_WHITE_ADDRS_CONFIG=53 GET_BROKER_CLUSTER_ACL_CONFIG=54 AUTH_CREATE_USER=3001
        AUTH_UPDATE_USER=3002 AUTH_DELETE_USER=3003 AUTH_GET_USER=3004 AUTH_LIST_USER=3005 AUTH_CREATE_ACL=3006
        AUTH_UPDATE_ACL=3007 AUTH_DELETE_ACL=3008 AUTH_GET_ACL=3009 AUTH_LIST_ACL=3010
        """,
    ),
    (
        "nothing to control: what is cold is read through the page cache like everything else",
        """
        UPDATE_COLD_DATA_FLOW_CTR_CONFIG=2001 REMOVE_COLD_DATA_FLOW_CTR_CONFIG=2002 GET_COLD_DATA_FLOW_CTR_INFO=2003
        SET_COMMITLOG_READ_MODE=2004
        """,
    ),
    (
        "no RocksDB: tables are JSON files",
        "CHECK_ROCKSDB_CQ_WRITE_PROGRESS=354 EXPORT_ROCKSDB_CONFIG_TO_JSON=355",
    ),
    ("no static topics", "UPDATE_AND_CREATE_STATIC_TOPIC=513"),
    (
        "one timer of its own: nothing to switch or to show",
        "GET_TIMER_CHECK_POINT=60 GET_TIMER_METRICS=61 SWITCH_TIMER_ENGINE=5001",
    ),
    (
        "no server of the original answers it either",
        """
        QUERY_BROKER_OFFSET=13 GET_TOPIC_CONFIG_LIST=22 GET_TOPIC_NAME_LIST=23 TRIGGER_DELETE_FILES=27
        GET_CLIENT_CONFIG=47 SUSPEND_CONSUMER=209 RESUME_CONSUMER=210 RESET_CONSUMER_OFFSET_IN_CONSUMER=211
        RESET_CONSUMER_OFFSET_IN_BROKER=212 ADJUST_CONSUMER_THREAD_POOL=213 WHO_CONSUME_THE_MESSAGE=214
        """,
    ),
    (
        "no filter servers: classes of strangers are not run",
        "REGISTER_FILTER_SERVER=301 REGISTER_MESSAGE_FILTER_CLASS=302",
    ),
    ("groups are kept from topics by settings of the group", "UPDATE_AND_GET_GROUP_FORBIDDEN=353"),
)  # fmt: skip


def _rows() -> dict[int, tuple[str, str]]:
    words = ((reason, word.partition("=")) for reason, codes in _AREAS for word in codes.split())
    return {int(number): (name, reason) for reason, (name, _, number) in words}


ABSENT = _rows()
"""By code: its name in RocketMQ, and why it is not served."""
