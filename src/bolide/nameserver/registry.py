"""Request code to handler: the one table that dispatch, permissions and tests read."""

from collections.abc import Awaitable, Callable, Mapping

from bolide.nameserver.handlers import brokers, kv, routes, settings, topics
from bolide.nameserver.state import NameServerState
from bolide.net.link import Link
from bolide.net.registry import Outcome, Registry, bound
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command

Handle = Callable[[NameServerState, Link, Command], Outcome | Awaitable[Outcome]]

HANDLERS: Mapping[RequestCode, Handle] = {
    RequestCode.REGISTER_BROKER: brokers.register,
    RequestCode.UNREGISTER_BROKER: brokers.unregister,
    RequestCode.QUERY_DATA_VERSION: brokers.query_data_version,
    RequestCode.BROKER_HEARTBEAT: brokers.heartbeat,
    RequestCode.GET_BROKER_MEMBER_GROUP: brokers.member_group,
    RequestCode.REGISTER_TOPIC_IN_NAMESRV: brokers.register_topic,
    RequestCode.GET_ROUTEINFO_BY_TOPIC: routes.route,
    RequestCode.GET_BROKER_CLUSTER_INFO: routes.cluster_info,
    RequestCode.WIPE_WRITE_PERM_OF_BROKER: topics.wipe_write_permission,
    RequestCode.ADD_WRITE_PERM_OF_BROKER: topics.add_write_permission,
    RequestCode.DELETE_TOPIC_IN_NAMESRV: topics.delete,
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: topics.list_all,
    RequestCode.GET_TOPICS_BY_CLUSTER: topics.list_of_cluster,
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS: topics.list_system,
    RequestCode.GET_UNIT_TOPIC_LIST: topics.list_unit,
    RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST: topics.list_unit_subscription,
    RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: topics.list_unit_subscription_without_unit,
    RequestCode.PUT_KV_CONFIG: kv.put,
    RequestCode.GET_KV_CONFIG: kv.get,
    RequestCode.DELETE_KV_CONFIG: kv.delete,
    RequestCode.GET_KVLIST_BY_NAMESPACE: kv.list_namespace,
    RequestCode.UPDATE_NAMESRV_CONFIG: settings.update,
    RequestCode.GET_NAMESRV_CONFIG: settings.show,
}


def registry(state: NameServerState) -> Registry:
    return Registry(bound(state, HANDLERS))
