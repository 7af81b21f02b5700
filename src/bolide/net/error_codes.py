"""The response code that an error becomes.

A subclass that is not listed has the code of its parent.  Whoever raises an error knows nothing of codes: a store has
no clients, and the same error may mean another thing to another caller.
"""

from bolide.model import errors
from bolide.model.response_code import ResponseCode

CODES: dict[type[errors.BolideError], ResponseCode] = {
    errors.RequestError: ResponseCode.SYSTEM_ERROR,
    errors.InvalidRequest: ResponseCode.INVALID_PARAMETER,
    errors.MessageIllegal: ResponseCode.MESSAGE_ILLEGAL,
    errors.OperationIllegal: ResponseCode.ILLEGAL_OPERATION,
    errors.PermissionDenied: ResponseCode.NO_PERMISSION,
    errors.TopicNotFound: ResponseCode.TOPIC_NOT_EXIST,
    errors.GroupNotFound: ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
    errors.NothingFound: ResponseCode.QUERY_NOT_FOUND,
    errors.SubscriptionMalformed: ResponseCode.SUBSCRIPTION_PARSE_FAILED,
    errors.SubscriptionMissing: ResponseCode.SUBSCRIPTION_NOT_EXIST,
    errors.SubscriptionOutdated: ResponseCode.SUBSCRIPTION_NOT_LATEST,
    errors.ConsumerNotOnline: ResponseCode.CONSUMER_NOT_ONLINE,
    errors.NoAnswer: ResponseCode.CONSUME_MSG_TIMEOUT,
    errors.CodeNotSupported: ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
    errors.TooBusy: ResponseCode.SYSTEM_BUSY,
    errors.StoreRefusal: ResponseCode.SERVICE_NOT_AVAILABLE,
}


def response_code_of(error: BaseException) -> ResponseCode | None:
    """The code of its class, or of the nearest one above; None for what nobody has foreseen."""
    return next((CODES[kind] for kind in type(error).__mro__ if kind in CODES), None)
