"""One tree of errors.  What each becomes on the wire is for the edge to know (`net/error_codes.py`)."""

from collections.abc import Iterable
from typing import Self

from bolide.model.limits import REMARK_LENGTH_MAX
from bolide.model.printable import printable_lines, printable_part
from bolide.model.response_code import ResponseCode


class BolideError(Exception):
    """Anything this package raises on purpose.

    Example::

        try:
            producer.send(Message("orders", "text"))
        except BolideError as error:
            print("not sent:", error)

    Its text may hold names and remarks of strangers.  It reaches logs, terminals and users as it can be shown.
    """

    def __str__(self) -> str:
        return printable_lines(super().__str__())


# ---- errors that a server answers with -------------------------------------------------------------------


class RequestError(BolideError):
    """A request that is refused; the text goes to the client as the remark.

    Example::

        try:
            producer.send(Message("no topic!", b"paid"))
        except RequestError as error:
            print("a mistake in the program:", error)
    """


class InvalidRequest(RequestError):
    """A field is missing, malformed or out of its range.

    Example::

        try:
            reader.pull(queue, offset=-1)
        except InvalidRequest as error:
            print(error)
    """


class MessageIllegal(RequestError):
    """The message itself cannot be stored: too large, malformed batch, forbidden properties.

    Example::

        try:
            producer.send(Message("orders", "not bytes"))
        except MessageIllegal as error:
            print(error)
    """


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
    """An expression that says which messages a group wants, and cannot.

    Example::

        try:
            consumer.subscribe("orders", sql="price >")
        except SubscriptionMalformed as error:
            print(error)
    """


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
    """Bytes that are not a frame; the connection cannot go on.

    Example::

        try:
            producer.send(Message("orders", b"paid"))
        except ProtocolError as error:
            print("is that the port of a broker?", error)
    """


class StoreError(BolideError):
    """A store directory that cannot be opened or written as it is."""


class NotAStore(StoreError):
    """A directory without a log in it, or none at all."""


class Interrupted(BolideError):
    """Somebody did not want to wait; the text says how far it had come."""


class RecoveryInterrupted(Interrupted):
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
    """A setting that is unknown or has an impossible value.

    Example::

        try:
            Producer("127.0.0.1:9876", timeout_ms="soon")
        except ConfigError as error:
            print(error)
    """


# ---- errors that a client raises ---------------------------------------------------------------------------


class ClientError(BolideError):
    """An operation of a client failed.

    Example::

        try:
            producer.send(Message("orders", b"paid"))
        except ClientError as error:
            print("worth another try, mostly:", error)
    """


class Vetoed(ClientError):
    """Raised by a hook that runs before something, which then does not happen.

    Example::

        def office_hours(send: SendEvent) -> None:
            if not is_open():
                raise Vetoed("orders are taken from 8 to 18")
    """


class CallTimeout(ClientError):
    """No answer within the deadline.

    Example::

        try:
            producer.send(Message("orders", b"paid"))
        except CallTimeout as error:
            print("stored or not, nobody knows:", error)
    """


class NoRoom(ClientError):
    """As many messages wait to be sent as may wait, and none went in time.

    Example::

        try:
            producer.send_soon(Message("events", b"click"))
        except NoRoom:
            print("more comes than the brokers take")
    """


class NoReply(CallTimeout):
    """A request was sent, and nobody has replied in time.

    Example::

        try:
            print(producer.request(Message("prices", b"apples"), timeout_ms=100).body)
        except NoReply:
            print("the request is stored, and nobody has answered")
    """


class ConnectionLost(ClientError):
    """The connection closed before the answer came, or could not be made.

    Example::

        try:
            producer.send(Message("orders", b"paid"))
        except ConnectionLost as error:
            print("the broker is away:", error)
    """


class TlsFailed(ConnectionLost):
    """The other side does not speak TLS, or has a certificate that is not trusted.

    Example::

        try:
            Producer("127.0.0.1:9876", tls=True).start()
        except TlsFailed as error:
            print("no TLS there, or nobody we trust:", error)
    """


class NoNameServer(ConnectionLost):
    """None answers, so no broker was asked for anything.

    Example::

        try:
            producer.send(Message("orders", b"paid"))
        except NoNameServer as error:
            print(error)
    """

    may_come = False
    """Whether one may answer in a moment: it starts, or could not be reached."""


class NotANameServer(NoNameServer):
    """A broker is there instead."""

    @classmethod
    def at(cls, address: str) -> Self:
        return cls(
            f"{address} knows no routes: it is a broker, not a name server (whose port is 9876 by default)"
        )


class RouteNotFound(ClientError):
    """No name server knows where the topic lives.

    Example::

        try:
            print(reader.queues("nobody-has-sent-here"))
        except RouteNotFound:
            print("no such topic")
    """


class NotWritable(RouteNotFound):
    """The topic is there, and none of its queues may be sent to now.

    Example::

        try:
            producer.send(Message("orders", b"paid"))
        except NotWritable as error:
            print("closed for now:", error)
    """


class NoBroker(RouteNotFound):
    """A name server answers, but no broker that could is registered: what the brokers have stored is unknown, not gone.

    Example::

        try:
            print(reader.queues("orders"))
        except NoBroker as error:
            print("nothing is lost, start the broker:", error)
    """

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


class StrategyFailed(ClientError):
    """A strategy of the application's own, which shares queues out among members, gave no answer that can be used.

    Example::

        mine = lambda queues, members, own: queues[members.index(own) :: len(members)]  # says so where it raises
        PushConsumer("127.0.0.1:9876", group="billing", listener=handle, strategy=mine)

    The consumer keeps the queues that it has, says so in its log and asks again.
    """


class DedupFailed(ClientError):
    """The file of a dedup window cannot be read or written: the disk is full, or the file was damaged meanwhile.

    Example::

        try:
            window = DedupWindow(path="billing.seen")
        except DedupFailed as error:
            print("the disk:", error)
    """


class SubscriptionConflict(ClientError):
    """A consumer that shares queues with its group was given queues of its own, or the other way round.

    Example::

        try:
            poller.assign([queue])  # after poller.subscribe("orders")
        except SubscriptionConflict as error:
            print(error)
    """


class NotOurQueue(ClientError):
    """The queue is not, or no longer, one of this consumer's: another member of the group may have it.

    Example::

        try:
            poller.seek(queue, "first")
        except NotOurQueue:
            print("another member has it now")
    """


class ClientNotRunning(ClientError):
    """The client was not started, runs already, or is closed.

    Example::

        try:
            Producer("127.0.0.1:9876").send(Message("orders", b"paid"))
        except ClientNotRunning as error:
            print(error)  # what to do instead
    """


class MalformedRecord(ClientError):
    """Bytes that should be a stored message are none, or its body does not unpack.

    Example::

        try:
            result = reader.pull(queue, offset=0)
        except MalformedRecord as error:
            print("damaged:", error)
    """


class BadBody(MalformedRecord):
    """A body that is marked as packed and does not unpack.  Only with `badBodies=fail` does it end a read of Spark."""


class BadRow(MessageIllegal):
    """A row that is no message: which one, counted from the first of what was given, its column, and why.

    Example::

        try:
            producer.send_arrow(pa.table({"body": ["first", None]}), topic="orders")
        except BadRow as error:
            print("row", error.row, "has a bad", error.column)
    """

    def __init__(self, row: int, column: str, why: str) -> None:
        super().__init__(f"row {row}: the column {column} {why}")
        self.row = row
        self.column = column
        self.why = why

    def __reduce__(self) -> tuple[type["BadRow"], tuple[int, str, str]]:
        return BadRow, (self.row, self.column, self.why)


class RequirementMissing(ClientError):
    """A library that is needed for what was asked is not there, or too old.

    Example::

        try:
            producer.send_arrow(pa.table({"body": ["first"]}), topic="orders")
        except RequirementMissing as error:
            print("install it:", error)
    """


class RemoteError(ClientError):
    """The other side answered with an error.  `remark` is its reason, as far as it is of a reasonable length.

    Example::

        try:
            producer.send(Message("orders", b"paid"))
        except RemoteError as error:
            print("a permission is missing" if error.response_code == ResponseCode.NO_PERMISSION else error.remark)
    """

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
