"""Manner: whether a group shares its messages or every member gets all, in order or not, and the parts that follow.

A wrong combination is refused here, where it is given.
"""

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from bolide.client import checks, start
from bolide.client.assignment import Sharing
from bolide.client.delivery import Concurrently, Delivery, ListenerTerms
from bolide.client.instance import ClientInstance
from bolide.client.locking import Locking
from bolide.client.offsets import HOME_FOLDER, BrokerOffsets, LocalOffsets, Offsets
from bolide.client.orderly import Orderly
from bolide.client.queue_calls import QueueCalls
from bolide.client.returns import Returns
from bolide.model.errors import ConfigError
from bolide.model.numbers import INT32_MAX
from bolide.rules.allocate import Strategy
from bolide.wire.bodies.group import ConsumeFrom, MessageModel

ATTEMPTS = 16
"""How often a failed message comes again, unless somebody says otherwise."""

BROADCASTING_INSTANCE = "DEFAULT"
"""The original's name of an instance that has none, which stays the same from start to start."""


@dataclass(frozen=True)
class Manner:
    """How one consumer consumes."""

    orderly: bool
    broadcasting: bool
    auto_commit: bool
    attempts_max: int | None
    start_from: str | int

    @classmethod
    def checked(
        cls,
        *,
        orderly: object,
        broadcasting: object,
        auto_commit: object,
        attempts_max: object,
        start_from: str | int | datetime,
    ) -> "Manner":
        if attempts_max is not None:
            attempts_max = checks.number("attempts_max", attempts_max, 0, INT32_MAX)
        manner = cls(
            checks.flag("orderly", orderly),
            checks.flag("broadcasting", broadcasting),
            checks.flag("auto_commit", auto_commit),
            attempts_max,
            start.start_from(start_from),
        )
        if not manner.auto_commit and not manner.orderly:
            raise ConfigError(
                "auto_commit=False is for consumers with orderly=True: others commit by themselves"
            )
        if manner.broadcasting and attempts_max is not None:
            raise ConfigError(
                "attempts_max is for groups that share messages: broadcasting brings none again"
            )
        return manner

    @property
    def locks(self) -> bool:
        """Whether queues have to be locked."""
        return self.orderly and not self.broadcasting

    @property
    def message_model(self) -> MessageModel:
        return MessageModel.BROADCASTING if self.broadcasting else MessageModel.CLUSTERING

    @property
    def consume_from(self) -> ConsumeFrom:
        return start.told(self.start_from)

    def instance_name(self, value: str | None) -> str | None:
        """None for one that is chosen by chance."""
        return BROADCASTING_INSTANCE if value is None and self.broadcasting else value

    def delivery(self, terms: ListenerTerms, concurrency: int) -> Delivery:
        return Orderly(terms, concurrency) if self.orderly else Concurrently(terms, concurrency)

    def returns(self, instance: ClientInstance, calls: QueueCalls, group: str) -> Returns | None:
        if self.broadcasting:
            return None
        default = INT32_MAX if self.orderly else ATTEMPTS
        return Returns(instance, calls, group, default if self.attempts_max is None else self.attempts_max)

    def offsets(
        self,
        instance: ClientInstance,
        calls: QueueCalls,
        group: str,
        folder: str | os.PathLike[str] | None,
    ) -> Offsets:
        if not self.broadcasting:
            return BrokerOffsets(calls, zero_for_young=self.start_from == start.LAST)
        where = Path.home() / HOME_FOLDER if folder is None else Path(folder)
        return LocalOffsets(str(where), group, instance.surroundings)

    def sharing(self, instance: ClientInstance, group: str, offsets: Offsets, strategy: Strategy) -> Sharing:
        return Sharing(
            offsets,
            self.start_from,
            None if self.broadcasting else strategy,
            in_order=self.orderly,
            locking=Locking(instance, group) if self.locks else None,
        )
