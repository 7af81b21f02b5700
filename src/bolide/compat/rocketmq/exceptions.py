"""Errors by the names of rocketmq-client-python.  Each is a `BolideError` too, and its cause is bolide's own."""

from bolide.model.errors import ClientError


class RocketMQException(ClientError):
    """Any error of these clients."""


class NotSupported(RocketMQException):
    """These clients cannot do what is asked for; the text says what to do instead."""


class NullPointerException(RocketMQException):
    """Never raised here; for code that expects it."""


class MallocFailed(RocketMQException):
    """Never raised here; for code that expects it."""


class ProducerException(RocketMQException):
    """Any error of a producer."""


class ProducerStartFailed(ProducerException):
    """A setting cannot be meant, or it runs already."""


class ProducerSendSyncFailed(ProducerException):
    """The message is not known to be stored."""


class ProducerSendOnewayFailed(ProducerException):
    """The message could not be handed to the network."""


class ProducerSendOrderlyFailed(ProducerException):
    """The message is not known to be stored."""


class ProducerSendAsyncFailed(ProducerException):
    """Never raised here; for code that expects it."""


class ConsumerException(RocketMQException):
    """Any error of a consumer."""


class PushConsumerStartFailed(ConsumerException):
    """It has no subscription, a setting cannot be meant, or it runs already."""


class PullConsumerStartFailed(ConsumerException):
    """A setting cannot be meant, or it runs already."""


class PullConsumerFetchMQFailed(ConsumerException):
    """The queues of the topic are not known."""


class PullConsumerFetchMessageFailed(ConsumerException):
    """A queue could not be read."""
