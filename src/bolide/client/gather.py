"""Messages that are sent together.  Chooses the compiled module or its readable twin."""

from typing import TYPE_CHECKING

from bolide.compiled import use_compiled

if TYPE_CHECKING or not use_compiled("bolide.client._gather"):
    from bolide.client.gather_twin import Batch, Lane, Lanes, Pool, SendFuture, SendReceipt
else:
    from bolide.client._gather import Batch, Lane, Lanes, Pool, SendFuture, SendReceipt

__all__ = ["Batch", "Lane", "Lanes", "Pool", "SendFuture", "SendReceipt"]
