from bolide.client.blocking import Producer as Producer
from bolide.client.blocking import PullConsumer as PullConsumer
from bolide.client.blocking import PushConsumer as PushConsumer
from bolide.client.results import PullBlock as PullBlock
from bolide.client.results import PullResult as PullResult
from bolide.client.results import PullStatus as PullStatus
from bolide.client.results import SendReceipt as SendReceipt
from bolide.client.results import SendStatus as SendStatus
from bolide.model.errors import BolideError as BolideError
from bolide.model.errors import CallTimeout as CallTimeout
from bolide.model.errors import ClientError as ClientError
from bolide.model.errors import ClientNotRunning as ClientNotRunning
from bolide.model.errors import ConfigError as ConfigError
from bolide.model.errors import ConnectionLost as ConnectionLost
from bolide.model.errors import InvalidRequest as InvalidRequest
from bolide.model.errors import MalformedRecord as MalformedRecord
from bolide.model.errors import MessageIllegal as MessageIllegal
from bolide.model.errors import NoBroker as NoBroker
from bolide.model.errors import NoNameServer as NoNameServer
from bolide.model.errors import NotWritable as NotWritable
from bolide.model.errors import ProtocolError as ProtocolError
from bolide.model.errors import RemoteError as RemoteError
from bolide.model.errors import RequestError as RequestError
from bolide.model.errors import RetryLater as RetryLater
from bolide.model.errors import RouteNotFound as RouteNotFound
from bolide.model.errors import SubscriptionMalformed as SubscriptionMalformed
from bolide.model.message import Message as Message
from bolide.model.message import StoredMessage as StoredMessage
from bolide.model.offsets import MessageQueue as MessageQueue
from bolide.model.response_code import ResponseCode as ResponseCode

__version__: str
__all__: list[str]
