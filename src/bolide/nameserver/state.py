"""What the handlers of a name server work on."""

from dataclasses import dataclass, field

from bolide.machines.routes import RouteTable
from bolide.machines.said import Said
from bolide.model.clock import Clock
from bolide.nameserver.changes import Changes
from bolide.nameserver.comings import Comings
from bolide.nameserver.config import NameServerConfig
from bolide.nameserver.kv import KvTable
from bolide.net.large_answers import LargeAnswers
from bolide.net.provoked import Provoked
from bolide.net.turns import Slices


@dataclass
class NameServerState:
    config: NameServerConfig
    routes: RouteTable
    kv: KvTable
    clock: Clock
    started_ms: int
    """On the monotonic clock, like every time in the route table."""
    large_answers: LargeAnswers = field(default_factory=LargeAnswers)
    changes: Changes = field(default_factory=Changes)
    rivals_said: Said = field(default_factory=Said)
    """Of its own: what else strangers provoke must not silence it."""

    def __post_init__(self) -> None:
        self.provoked = Provoked(self.clock)
        self.comings = Comings(self.clock)
        self.tidying = Slices(self.routes.tidy)
        """What brokers that left have left behind; `go` after one has."""
