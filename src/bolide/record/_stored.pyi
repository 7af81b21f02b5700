from bolide.record.stored_twin import StoredMessage as StoredMessage
from bolide.record.stored_twin import message_at as message_at
from bolide.record.stored_twin import messages_in as messages_in
from bolide.record.stored_twin import misplaced as misplaced
