"""Names of properties as rocketmq-client-python has them."""

from enum import Enum

from bolide.model.message import Property


class MessageProperty(Enum):
    """For `ReceivedMessage.get_property`."""

    TRACE_SWITCH = Property.TRACE_ON
    MSG_REGION = Property.MSG_REGION
    KEYS = Property.KEYS
    TAGS = Property.TAGS
    WAIT_STORE_MSG_OK = Property.WAIT
    DELAY_TIME_LEVEL = Property.DELAY
    RETRY_TOPIC = Property.RETRY_TOPIC
    REAL_TOPIC = Property.REAL_TOPIC
    REAL_QUEUE_ID = Property.REAL_QUEUE_ID
    TRANSACTION_PREPARED = Property.TRANSACTION_PREPARED
    PRODUCER_GROUP = Property.PRODUCER_GROUP
    MIN_OFFSET = "MIN_OFFSET"
    MAX_OFFSET = "MAX_OFFSET"
    BUYER_ID = "BUYER_ID"
    ORIGIN_MESSAGE_ID = Property.ORIGIN_MESSAGE_ID
    TRANSFER_FLAG = "TRANSFER_FLAG"
    CORRECTION_FLAG = "CORRECTION_FLAG"
    MQ2_FLAG = "MQ2_FLAG"
    RECONSUME_TIME = "RECONSUME_TIME"
    UNIQ_CLIENT_MESSAGE_ID_KEYIDX = Property.UNIQUE_KEY
    MAX_RECONSUME_TIMES = "MAX_RECONSUME_TIMES"
    CONSUME_START_TIMESTAMP = "CONSUME_START_TIME"
