"""Settings: what the broker runs with, and the few that may change while it runs.

The original answers success to any key, also to one that nobody knows.  Here a change is made whole or refused with
the reason: an operator who mistypes `brokerPermision` before maintenance must hear of it.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import orjson

from bolide.model.errors import ConfigError, InvalidRequest
from bolide.net.link import Link
from bolide.wire.bodies.properties import format_settings, parse_settings
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command

if TYPE_CHECKING:
    from bolide.broker.app import Broker

log = logging.getLogger(__name__)

PERMISSION_KEY = "brokerPermission"


def update_settings(broker: "Broker", link: Link, request: Command) -> Command | Awaitable[Command]:
    """25: change settings at run time.

    The broker's permission masks that of every topic in its registration, so a change of it gives the topic table a
    new version and is registered before the answer: producers leave a drained broker with their next look at the
    route.
    """
    settings = parse_settings(request.body)
    try:
        changed = broker.config.changed(settings)
    except ConfigError as error:
        raise InvalidRequest(str(error)) from None
    log.info("%s changes settings: %s", link.remote, settings)
    broker.reconfigure(changed)
    if PERMISSION_KEY not in settings:
        return request.answer()
    broker.topics.touch()
    return _answer_when_registered(broker, request)


def all_settings(broker: "Broker", link: Link, request: Command) -> Command:
    """26: as lines of `key=value`, under the original's names."""
    version = orjson.dumps(broker.config_version.as_json()).decode()
    return request.answer(fields={"version": version}, body=format_settings(broker.config.as_settings()))


async def _answer_when_registered(broker: "Broker", request: Command) -> Command:
    await broker.registered()
    return request.answer()


HANDLERS: dict[RequestCode, Callable[["Broker", Link, Command], Command | Awaitable[Command]]] = {
    RequestCode.UPDATE_BROKER_CONFIG: update_settings,
    RequestCode.GET_BROKER_CONFIG: all_settings,
}
