"""How long a request may wait for its turn before it is refused as busy.

A request is served when it is read, but the time of the loop is shared (`net/round.py`): whoever brings much waits.
What has waited for longer than its client has patience is refused, which costs little, so that the client can try
another broker.  The times and the words are those of the original's queues of requests.
"""

from collections.abc import Callable

from bolide.broker.config import BrokerConfig
from bolide.wire.codes import REQUESTS, RequestCode, Sender

_SENDS = (
    RequestCode.SEND_MESSAGE,
    RequestCode.SEND_MESSAGE_V2,
    RequestCode.SEND_BATCH_MESSAGE,
    RequestCode.CONSUMER_SEND_MSG_BACK,
)
_SETTINGS = {
    **dict.fromkeys(_SENDS, "send_patience_ms"),
    RequestCode.PULL_MESSAGE: "pull_patience_ms",
    RequestCode.LITE_PULL_MESSAGE: "lite_pull_patience_ms",
    RequestCode.HEART_BEAT: "heartbeat_patience_ms",
    RequestCode.END_TRANSACTION: "transaction_patience_ms",
    **{code: "admin_patience_ms" for code, kind in REQUESTS.items() if kind.sender is Sender.ADMIN},
}


class Patience:
    def __init__(self, now: Callable[[], BrokerConfig]) -> None:
        self._now = now

    def __call__(self, code: int) -> int | None:
        """Milliseconds; None for a request that is served however late."""
        settings = self._now()
        name = _SETTINGS.get(code) if settings.fails_fast else None  # type: ignore[call-overload]
        return None if name is None else int(getattr(settings, name))
