"""One tree of errors.  What each becomes on the wire is for the edge to know (`net/error_codes.py`)."""

from collections.abc import Iterable
from typing import Self

from bolide.model.limits import REMARK_LENGTH_MAX
from bolide.model.printable import printable_lines, printable_part
from bolide.model.response_code import ResponseCode


class BolideError(Exception):
    """Anything this package raises on purpose.

    Its text may hold names and remarks of strangers.  It reaches logs, terminals and users as it can be shown.
    """

    def __str__(self) -> str:
        return printable_lines(super().__str__())


# ---- errors that a server answers with -------------------------------------------------------------------


class RequestError(BolideError):
    """A request that is refused; the text goes to the client as the remark."""


class InvalidRequest(RequestError):
    """A field is missing, malformed or out of its range."""


class MessageIllegal(RequestError):
    """The message itself cannot be stored: too large, malformed batch, forbidden properties."""


class OperationIllegal(RequestError):
    """It is not, or no longer, possible with this one: too late, or another one's."""


class PermissionDenied(RequestError):
    """Whoever asks may not do that."""


class TopicNotFound(RequestError):
    """No such topic, and it is not created on demand."""


class GroupNotFound(RequestError):
    """No such group, and it is not created on demand."""


class NothingFound(RequestError):
    """The thing asked for is not stored (an offset, a key, a configuration value)."""


class SubscriptionMalformed(RequestError):
    """An expression that says which messages a group wants, and cannot."""


class SubscriptionMissing(RequestError):
    """The group has not said what it wants of the topic."""


class SubscriptionOutdated(RequestError):
    """The group has said something newer."""


class ConsumerNotOnline(RequestError):
    """No member of the group is connected."""


class NoAnswer(RequestError):
    """A consumer that was asked on behalf of somebody has not answered in time."""


class CodeNotSupported(RequestError):
    """A kind of request that is not known here."""


class TooBusy(RequestError):
    """More is asked for at once than the server takes on; asking again later helps."""


# ---- errors of connections, starts and stores ------------------------------------------------------


class ProtocolError(BolideError):
    """Bytes that are not a frame; the connection cannot go on."""


class StoreError(BolideError):
    """A store directory that cannot be opened or written as it is."""


class NotAStore(StoreError):
    """A directory without a log in it, or none at all."""


class RecoveryInterrupted(BolideError):
    """Somebody did not want to wait for the end of a recovery; the next one begins again."""


class StoreRefusal(StoreError):
    """The store does not do what it was asked for."""


class StoreUnavailable(StoreRefusal):
    """It takes nothing now: the disk is full, or has failed."""


class RecordTooLarge(StoreRefusal):
    """It never takes this: more than a segment holds."""


class TableFull(StoreRefusal):
    """It keeps as many topics, groups or offsets as it ever will."""


class ConfigError(BolideError):
    """A setting that is unknown or has an impossible value."""


# ---- errors that a client raises ---------------------------------------------------------------------------


class ClientError(BolideError):
    """An operation of a client failed."""


class RetryLater(ClientError):
    """Raised by a listener that cannot handle its messages now; see `max_reconsume_times` of the consumer.

    Args:
        why: for the log.
        delay_level: how long to wait, as one of the broker's levels (`messageDelayLevel`; by default 1 is a second, 5
            a minute, 18 two hours); 0 waits longer from time to time, -1 makes dead letters of the messages.
    """

    def __init__(self, why: str = "", delay_level: int = 0) -> None:
        super().__init__(why)
        self.delay_level = delay_level


class CallTimeout(ClientError):
    """No answer within the deadline."""


class ConnectionLost(ClientError):
    """The connection closed before the answer came, or could not be made."""


class NoNameServer(ConnectionLost):
    """None answers, so no broker was asked for anything."""


class NotANameServer(NoNameServer):
    """A broker is there instead."""

    @classmethod
    def at(cls, address: str) -> Self:
        return cls(
            f"{address} knows no routes: it is a broker, not a name server (whose port is 9876 by default)"
        )


class RouteNotFound(ClientError):
    """No name server knows where the topic lives."""


class NotWritable(RouteNotFound):
    """The topic is there, and none of its queues may be sent to now."""


class NoBroker(RouteNotFound):
    """A name server answers, but no broker is registered with it: what the brokers have stored is unknown, not gone."""

    @classmethod
    def at(cls, nameservers: Iterable[str]) -> Self:
        return cls(
            f"the name server {';'.join(nameservers)} knows no broker now, so nobody can tell which topics and"
            " messages there are. They are where they were, in the brokers' stores: start the broker"
            " (`bolide up`, `bolide broker -n ADDRESS`), or let `bolide doctor` find out why it is not registered"
        )


class TopicExists(ClientError):
    """What was to be created is there already, and was left as it is."""


class GroupExists(ClientError):
    """A group that was to be created is there already."""


class MembersConnected(ClientError):
    """What was asked for would be undone by members of the group that are connected."""


class ClientNotRunning(ClientError):
    """The client was not started, runs already, or is closed."""


class MalformedRecord(ClientError):
    """Bytes that should be a stored message are none, or its body does not unpack."""


class RemoteError(ClientError):
    """The other side answered with an error.  `remark` is its reason, as far as it is of a reasonable length."""

    def __init__(self, response_code: int, remark: str) -> None:
        name = _name_of(response_code)
        super().__init__(f"{name}: {printable_part(remark, REMARK_LENGTH_MAX)}" if remark else name)
        self.response_code = response_code
        self.remark = remark[:REMARK_LENGTH_MAX]


def is_of_a_broker(error: Exception) -> bool:
    """Whether who was asked what every name server knows does not know the question: then it is a broker."""
    return isinstance(error, RemoteError) and error.response_code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED


def _name_of(response_code: int) -> str:
    try:
        return f"{ResponseCode(response_code).name} ({response_code})"
    except ValueError:
        return f"response code {response_code}"
