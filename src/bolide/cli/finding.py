"""Finding what a command is about: a message by one of its ids, a queue by its number."""

from typing import TYPE_CHECKING

from bolide.model.errors import ConfigError

if TYPE_CHECKING:
    from bolide.admin.connection import AdminConnection
    from bolide.admin.queues import Place
    from bolide.record.stored import StoredMessage


async def message_of(servers: "AdminConnection", message_id: str, topic: str | None) -> "StoredMessage":
    """By the unique id within a topic, or by the offset id, which says by itself where the message lies."""
    from bolide.admin.messages import message_by_offset_id, message_by_unique_id

    if topic is None:
        return await message_by_offset_id(servers, message_id)
    return await message_by_unique_id(servers, topic, message_id)


async def one_queue(servers: "AdminConnection", topic: str, queue_id: int, broker: str | None) -> "Place":
    """The queue with this number, where only one broker has it, or one was named."""
    from bolide.admin.cluster import listed
    from bolide.admin.queues import queues_of

    found = await queues_of(servers, topic, broker=broker, queue_id=queue_id)
    if len(found) > 1:
        names = listed([queue.place.queue.broker_name for queue in found])
        raise ConfigError(
            f"several brokers have a queue {queue_id} of {topic} ({names}): say which with --broker"
        )
    return found[0].place
