"""Service and HotService: what a link hands over what it has received to."""

from typing import TYPE_CHECKING, Protocol

from bolide.wire.command import Command
from bolide.wire.pull_frame import PullFrame
from bolide.wire.send_run import SendRun

if TYPE_CHECKING:
    from bolide.net.link import Link


class Service(Protocol):
    """What a link serves."""

    def on_open(self, link: "Link") -> None: ...

    def on_request(self, link: "Link", request: Command) -> None: ...

    def on_close(self, link: "Link") -> None: ...


class HotService(Protocol):
    """What takes plain sends, ends and pulls without a `Command` for each."""

    def on_sends(self, link: "Link", run: SendRun, requests_max: int) -> tuple[int, int]:
        """Serve rows from the first on; those that are not plain are requests, and count.

        Gives the first row that was not served because there were too many of them, and how many there were.
        """
        ...

    def on_ends(self, link: "Link", run: SendRun, count: int) -> int:
        """Serve so many ends of transactions, the first of the run; gives for how many requests they count."""
        ...

    def on_pull(self, link: "Link", pull: PullFrame) -> None: ...
