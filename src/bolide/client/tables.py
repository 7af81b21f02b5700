"""Tables: what a producer needs for rows instead of messages; pyarrow is imported when somebody has some."""

from typing import TYPE_CHECKING

from bolide.arrow.requirement import check_pyarrow
from bolide.client import checks
from bolide.client.instance import ClientInstance
from bolide.client.sending import Sending
from bolide.model.errors import InvalidRequest

if TYPE_CHECKING:
    from bolide.arrow.tables import Pieces
    from bolide.client.table_sending import TableSending


class Tables:
    """The tables of one producer; `names_messages` says whether somebody wants to know the ids of the messages."""

    def __init__(self, instance: ClientInstance, sending: Sending, *, names_messages: bool) -> None:
        self._instance = instance
        self._sending = sending
        self._names_messages = names_messages

    async def begin(
        self, table: object, topic: str | None, timeout_ms: int | None
    ) -> "tuple[Pieces, TableSending]":
        """A table to send, looked over, and what sends it."""
        self._instance.check_running()
        if self._sending.is_watched:
            raise InvalidRequest(
                "a hook of sends looks at messages, and send_arrow makes none of its rows: use send_many"
            )
        check_pyarrow("send_arrow")
        from bolide.arrow.tables import Pieces
        from bolide.client.table_sending import TableSending

        pieces = Pieces(table, None if topic is None else checks.topic(topic))
        return pieces, TableSending(
            self._instance, self._sending, pieces, timeout_ms, names_messages=self._names_messages
        )
