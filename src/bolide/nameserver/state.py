"""What the handlers of a name server work on."""

from dataclasses import dataclass, field

from bolide.machines.routes import RouteTable
from bolide.model.clock import Clock
from bolide.nameserver.config import NameServerConfig
from bolide.nameserver.kv import KvTable
from bolide.nameserver.queue import ChangeQueue
from bolide.net.large_answers import LargeAnswers


@dataclass
class NameServerState:
    config: NameServerConfig
    routes: RouteTable
    kv: KvTable
    clock: Clock
    started_ms: int
    """On the monotonic clock, like every time in the route table."""
    large_answers: LargeAnswers = field(default_factory=LargeAnswers)
    changes: ChangeQueue = field(default_factory=ChangeQueue)
