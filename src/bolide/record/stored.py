"""Messages as queues hold them.  Chooses the compiled module or its readable twin."""

from typing import TYPE_CHECKING

from bolide.compiled import use_compiled

if TYPE_CHECKING or not use_compiled("bolide.record._stored"):
    from bolide.record.stored_twin import StoredMessage, message_at, messages_in, misplaced
else:
    from bolide.record._stored import StoredMessage, message_at, messages_in, misplaced

__all__ = ["StoredMessage", "message_at", "messages_in", "misplaced"]
