"""One tree of errors.  Each knows the response code it becomes; the edge maps it once, in one place."""

from typing import ClassVar

from bolide.model.response_code import ResponseCode


class BolideError(Exception):
    """Anything this package raises on purpose."""


# ---- errors that a server answers with -------------------------------------------------------------------


class RequestError(BolideError):
    """A request that is refused; the text goes to the client as the remark."""

    code: ClassVar[ResponseCode] = ResponseCode.SYSTEM_ERROR


class InvalidRequest(RequestError):
    """A field is missing, malformed or out of its range."""

    code = ResponseCode.INVALID_PARAMETER


class MessageIllegal(RequestError):
    """The message itself cannot be stored: too large, malformed batch, forbidden properties."""

    code = ResponseCode.MESSAGE_ILLEGAL


class PermissionDenied(RequestError):
    code = ResponseCode.NO_PERMISSION


class TopicNotFound(RequestError):
    code = ResponseCode.TOPIC_NOT_EXIST


class GroupNotFound(RequestError):
    code = ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST


class NothingFound(RequestError):
    """The thing asked for is not stored (an offset, a key, a configuration value)."""

    code = ResponseCode.QUERY_NOT_FOUND


class SubscriptionMalformed(RequestError):
    """An expression that says which messages a group wants, and cannot."""

    code = ResponseCode.SUBSCRIPTION_PARSE_FAILED


class SubscriptionMissing(RequestError):
    code = ResponseCode.SUBSCRIPTION_NOT_EXIST


class SubscriptionOutdated(RequestError):
    code = ResponseCode.SUBSCRIPTION_NOT_LATEST


class ConsumerNotOnline(RequestError):
    code = ResponseCode.CONSUMER_NOT_ONLINE


class CodeNotSupported(RequestError):
    code = ResponseCode.REQUEST_CODE_NOT_SUPPORTED


class TooBusy(RequestError):
    """More is asked for at once than the server takes on; asking again later helps."""

    code = ResponseCode.SYSTEM_BUSY


class ServiceUnavailable(RequestError):
    """The store cannot take messages now: disk full, failed sync, shutting down."""

    code = ResponseCode.SERVICE_NOT_AVAILABLE


# ---- errors that end a connection, a start or a store ------------------------------------------------------


class ProtocolError(BolideError):
    """Bytes that are not a frame; the connection cannot go on."""


class StoreError(BolideError):
    """A store directory that cannot be opened or written as it is."""


class NotAStore(StoreError):
    """A directory without a log in it, or none at all."""


class RecoveryInterrupted(BolideError):
    """Somebody did not want to wait for the end of a recovery; the next one begins again."""


class ConfigError(BolideError):
    """A setting that is unknown or has an impossible value."""


# ---- errors that a client raises ---------------------------------------------------------------------------


class ClientError(BolideError):
    """An operation of a client failed."""


class CallTimeout(ClientError):
    """No answer within the deadline."""


class ConnectionLost(ClientError):
    """The connection closed before the answer came, or could not be made."""


class RouteNotFound(ClientError):
    """No name server knows where the topic lives."""


class ClientNotRunning(ClientError):
    """The client was not started, or is closed."""


class MalformedRecord(ClientError):
    """Bytes that should be a stored message are none, or its body does not unpack."""


class RemoteError(ClientError):
    """The other side answered with an error."""

    def __init__(self, response_code: int, remark: str) -> None:
        super().__init__(f"{_name_of(response_code)}: {remark}" if remark else _name_of(response_code))
        self.response_code = response_code
        self.remark = remark


def _name_of(response_code: int) -> str:
    try:
        return f"{ResponseCode(response_code).name} ({response_code})"
    except ValueError:
        return f"response code {response_code}"
