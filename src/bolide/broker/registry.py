"""Which handler serves which request: one table, gathered from the handlers' own."""

from typing import TYPE_CHECKING

from bolide.broker.handlers import cleaning, group, offset, pull, query, runtime, send, settings, topic
from bolide.net.dispatch import Handler
from bolide.wire.codes import REQUESTS

if TYPE_CHECKING:
    from bolide.broker.app import Broker

FAMILIES = (send, pull, query, offset, group, topic, settings, runtime, cleaning)


def handlers_for(broker: "Broker") -> dict[int, Handler]:
    """Request code to a handler bound to this broker."""
    table: dict[int, Handler] = {}
    for family in FAMILIES:
        for code, handler in family.HANDLERS.items():
            assert code in REQUESTS, f"{code!r} is served but not in the table of requests"
            assert code not in table, f"two handlers for {code!r}"
            table[code] = _bind(handler, broker)
    return table


def _bind(handler: object, broker: "Broker") -> Handler:
    return lambda link, request: handler(broker, link, request)  # type: ignore[operator]
