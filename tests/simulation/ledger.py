"""Ledger: what clients were told and what they saw, and whether that fits together."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from bolide.client.gather import SendReceipt
from bolide.model.offsets import MessageQueue
from bolide.record.stored import StoredMessage


@dataclass
class Ledger:
    """Bodies are unique: one stands for one message."""

    attempts: set[bytes] = field(default_factory=set)
    receipts: dict[bytes, SendReceipt] = field(default_factory=dict)
    times: dict[bytes, float] = field(default_factory=dict)
    times_consumed: Counter[bytes] = field(default_factory=Counter)
    given_back: set[bytes] = field(default_factory=set)
    next_offsets: dict[MessageQueue, int] = field(default_factory=dict)
    disorder: list[str] = field(default_factory=list)
    places: dict[MessageQueue, dict[int, bytes]] = field(default_factory=dict)
    awaited: "dict[str, asyncio.Future[None]]" = field(default_factory=dict)

    def acknowledged(self, body: bytes, receipt: SendReceipt, now: float) -> None:
        self.receipts[body] = receipt
        self.times[body] = now
        self.places.setdefault(receipt.queue, {})[receipt.queue_offset] = body
        future = self.awaited.pop(receipt.queue.broker_name, None)
        if future is not None:
            future.set_result(None)

    def may_have_lost(self, broker_name: str, since: float) -> None:
        """What this broker has acknowledged since then is promised no more."""
        for body, receipt in list(self.receipts.items()):
            if receipt.queue.broker_name == broker_name and self.times[body] >= since:
                del self.receipts[body], self.places[receipt.queue][receipt.queue_offset]

    async def next_acknowledgement(self, broker_name: str, timeout_s: float) -> None:
        """Returns in the moment when a message of this broker is acknowledged, or when that takes too long."""
        future = self.awaited.setdefault(broker_name, asyncio.get_running_loop().create_future())
        await asyncio.wait((future,), timeout=timeout_s)

    def consumed(self, message: StoredMessage) -> None:
        self.times_consumed[message.body] += 1

    def failed(self, message: StoredMessage, now: float) -> None:
        """Its broker has it again, from now on, and promises no more than of any new message."""
        self.given_back.add(message.body)
        if message.body in self.times:
            self.times[message.body] = now

    def consumed_in_order(self, message: StoredMessage) -> None:
        """Messages may come again; none may come before one in front of it."""
        queue = MessageQueue(message.topic, message.broker_name, message.queue_id)
        due = self.next_offsets.get(queue, 0)
        if message.queue_offset > due:
            self.disorder.append(f"{queue}: {message.queue_offset} came before {due}")
        self.next_offsets[queue] = max(due, message.queue_offset + 1)
        self.consumed(message)

    def missing(self) -> list[bytes]:
        """Acknowledged and never consumed."""
        return [body for body in self.receipts if body not in self.times_consumed]

    def flaws(self, queues: dict[MessageQueue, dict[int, bytes]], copies_max: int) -> list[str]:
        """What contradicts the acknowledgements in the queues as they are now (offset to body)."""
        flaws: list[str] = []
        for body, receipt in self.receipts.items():
            found = queues.get(receipt.queue, {}).get(receipt.queue_offset)
            if found != body:
                flaws.append(
                    f"{body!r} was acknowledged at {receipt.queue} {receipt.queue_offset}, there is {found!r}"
                )
        copies = Counter(body for queue in queues.values() for body in queue.values())
        flaws += [f"{body!r} is there {count} times" for body, count in copies.items() if count > copies_max]
        flaws += [f"nobody has sent {body!r}" for body in copies if body not in self.attempts]
        return flaws + self._out_of_order()

    def _out_of_order(self) -> list[str]:
        """A producer that waits for each acknowledgement finds its messages in its order in every queue."""
        last: dict[tuple[bytes, MessageQueue], tuple[int, bytes]] = {}
        flaws: list[str] = []
        for body, receipt in self.receipts.items():  # in the order of the acknowledgements
            key = (body.split()[0], receipt.queue)
            offset, before = last.get(key, (-1, b""))
            if receipt.queue_offset <= offset:
                flaws.append(f"{body!r} stands before {before!r} in {receipt.queue}")
            last[key] = (receipt.queue_offset, body)
        return flaws
