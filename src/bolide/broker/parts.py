"""What a broker consists of.  A new feature is a part of its own and one line here."""

from collections.abc import Callable

from bolide.broker.handlers.cleaning import Cleaning
from bolide.broker.handlers.client import Clients
from bolide.broker.handlers.delay import Delays
from bolide.broker.handlers.group import Groups
from bolide.broker.handlers.lock import Locks
from bolide.broker.handlers.offset import Offsets
from bolide.broker.handlers.pull import Pulling
from bolide.broker.handlers.query import Querying
from bolide.broker.handlers.relay import Relay
from bolide.broker.handlers.reply import Replies
from bolide.broker.handlers.reset import Resets
from bolide.broker.handlers.retry import Retrying
from bolide.broker.handlers.runtime import Runtime
from bolide.broker.handlers.send import Sending
from bolide.broker.handlers.settings import Settings
from bolide.broker.handlers.slow_consumers import SlowConsumers
from bolide.broker.handlers.stats import Stats
from bolide.broker.handlers.timer import Timers
from bolide.broker.handlers.topic import Topics
from bolide.broker.handlers.transaction import Transactions
from bolide.broker.handlers.write import BulkWrites
from bolide.broker.part import Part
from bolide.broker.state import BrokerState

PARTS: tuple[Callable[[BrokerState], Part], ...] = (
    Transactions,
    Sending,
    Retrying,
    Replies,
    Pulling,
    Querying,
    BulkWrites,
    Offsets,
    SlowConsumers,
    Resets,
    Clients,
    Relay,
    Locks,
    Timers,
    Delays,
    Groups,
    Topics,
    Settings,
    Cleaning,
    Runtime,
    Stats,
)
